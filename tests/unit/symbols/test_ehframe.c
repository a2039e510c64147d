/* SPDX-License-Identifier: MIT */
/*
 * Where functions begin by the unwind tables, against a naive search; gaps,
 * damaged headers.
 */

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include "symbols/ehframe.h"
#include "support/test.h"

#define BARE SP_SYMBOL_FIXTURES "/libfixture_bare.so"

/* A table made by hand: starts relative to a base. */
struct table {
	int32_t pairs[8][2];
	struct sp_ehframe e;
};

static void make(struct table *t, uint64_t base, const int32_t *starts,
		 size_t n)
{
	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < n; i++)
		t->pairs[i][0] = starts[i];
	t->e = (struct sp_ehframe){
		.table = (const uint8_t *)t->pairs, .count = n, .base = base};
}

TEST(find_against_naive)
{
	static const int32_t starts[] = {-0x900, -0x800, -0x10, 0x20, 0x21};
	struct table t;

	make(&t, 0x1000, starts, 5);
	for (uint64_t at = 0x600; at < 0x1100; at++) {
		uint64_t found = 0, expected = 0;

		for (int i = 0; i < 5; i++) {
			uint64_t start = 0x1000 + (uint64_t)(int64_t)starts[i];

			if (start <= at)
				expected = start;
		}
		assert_int_equal(sp_ehframe_find(&t.e, at, &found),
				 expected != 0);
		assert_int_equal(found, expected);
	}
}

TEST(gaps_and_emptiness)
{
	static const int32_t starts[] = {0};
	struct table t;
	uint64_t found;

	make(&t, 0x1000, starts, 1);
	assert_true(sp_ehframe_find(&t.e, 0x1000 + (16 << 20), &found));
	assert_false(sp_ehframe_find(&t.e, 0x1001 + (16 << 20), &found));
	assert_false(sp_ehframe_find(&t.e, UINT64_MAX, &found));
	make(&t, 0x1000, starts, 0);
	assert_false(sp_ehframe_find(&t.e, 0x1000, &found));
}

/* Descriptions of 16 bytes behind a table, the last of them of another kind. */
TEST(sizes)
{
	static const int32_t starts[] = {0x100, 0x200, 0x300};
	uint32_t bytes[3][4];
	uint64_t found;
	struct table t;

	make(&t, 0x1000, starts, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t at = 16 * i;

		t.pairs[i][1] = (int32_t)at;
		memcpy(bytes[i],
		       (uint32_t[]){12, 4, (uint32_t)starts[i] - at - 8, 0x20},
		       16);
	}
	bytes[2][2]++;
	t.e.bytes = (const uint8_t *)bytes;
	t.e.n_bytes = sizeof(bytes);
	assert_true(sp_ehframe_find(&t.e, 0x111f, &found));
	assert_int_equal(found, 0x1100);
	assert_false(sp_ehframe_find(&t.e, 0x1120, &found));
	assert_false(sp_ehframe_find(&t.e, 0x11ff, &found));
	assert_true(sp_ehframe_find(&t.e, 0x1200, &found));
	assert_false(sp_ehframe_find(&t.e, 0x1220, &found));
	assert_true(sp_ehframe_find(&t.e, 0x1400, &found));
	assert_int_equal(found, 0x1300);
	/* One that is cut off says no size. */
	t.e.n_bytes = 2 * 16 - 1;
	assert_true(sp_ehframe_find(&t.e, 0x1220, &found));
}

static Elf *open_copy(char *bytes, size_t n)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory(bytes, n);
	assert_non_null(elf);
	return elf;
}

/* Every byte of the header and of the program header that leads to it, changed:
 * never outside the file (the sanitizers watch), never a table that does not
 * fit. */
TEST(damaged_headers)
{
	char file[1 << 16];
	int fd = open(BARE, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, file, sizeof(file));
	struct sp_ehframe e;
	size_t phdrs, header = 0, usable = 0;
	Elf *elf;

	close(fd);
	assert_true(n > 4096);
	elf = open_copy(file, (size_t)n);
	assert_true(sp_ehframe_open(elf, &e));
	assert_true(e.count > 3);
	assert_int_equal(elf_getphdrnum(elf, &phdrs), 0);
	for (size_t i = 0; i < phdrs; i++) {
		GElf_Phdr phdr;

		assert_non_null(gelf_getphdr(elf, (int)i, &phdr));
		if (phdr.p_type == PT_GNU_EH_FRAME)
			header = phdr.p_offset;
	}
	elf_end(elf);
	for (size_t at = 0; at < 64 + phdrs * 56 + 12; at++) {
		size_t where = at < 64 + phdrs * 56
				       ? at
				       : header + at - 64 - phdrs * 56;
		FREED char *copy = malloc((size_t)n);

		memcpy(copy, file, (size_t)n);
		copy[where] = (char)~copy[where];
		elf = open_copy(copy, (size_t)n);
		if (sp_ehframe_open(elf, &e)) {
			uint64_t found;

			usable++;
			for (uint64_t a = 0x1000; a < 0x1400; a += 16)
				sp_ehframe_find(&e, a, &found);
		}
		elf_end(elf);
	}
	/* The four bytes of the kind always matter, others do not. */
	assert_in_range(usable, 1, 64 + phdrs * 56 + 12 - 4);
}

TEST_MAIN(NULL, NULL)
