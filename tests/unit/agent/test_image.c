/* SPDX-License-Identifier: MIT */
/*
 * A library that is mapped without the loader: bound to functions of ours, each
 * copy with data of its own.  Truncated and damaged ones are refused, or bound,
 * without a word outside of them being touched.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/sys/image.h"
#include "base/rng.h"
#include "support/test.h"

#define FILE_MAX (1u << 20)
#define MORE     8192u

static uint8_t file[FILE_MAX];
static size_t file_bytes;
static int damaged;

static long give(long n)
{
	return n * 100;
}

static long other(void)
{
	return -1;
}

static void *get_tls(void *const *index)
{
	return (char *)index[0] + (uintptr_t)index[1];
}

static const struct sp_image_import imports[] = {
	{"false_given", (void (*)(void))give},
	{"__tls_get_addr", (void (*)(void))get_tls},
	{NULL, NULL},
};

static const char *load(int fd, struct sp_image *image, char **base)
{
	const char *why = sp_image_read(image, fd);

	*base = NULL;
	if (why)
		return why;
	*base = sp_image_map(image, fd, MORE);
	if (!*base)
		return "not mapped";
	why = sp_image_bind(image, *base, imports, (void (*)(void))other,
			    *base + image->bytes);
	if (!why)
		sp_image_function(image, *base, "false_nothing");
	return why;
}

static long call(const struct sp_image *image, char *base, const char *name,
		 long n)
{
	void *at = sp_image_function(image, base, name);
	long (*function)(long);

	assert_non_null(at);
	memcpy(&function, &at, sizeof(at));
	return function(n);
}

static void write_damaged(const uint8_t *from, size_t bytes)
{
	assert_int_equal(ftruncate(damaged, 0), 0);
	assert_int_equal(pwrite(damaged, from, bytes, 0), bytes);
}

TEST(bound_to_ours)
{
	struct sp_image image, again;
	char *base, *copy;
	size_t bytes;

	write_damaged(file, file_bytes);
	assert_null(load(damaged, &image, &base));
	assert_null(load(damaged, &again, &copy));
	/* 40, what was given, and how often it was called. */
	assert_int_equal(call(&image, base, "false_add", 7), 741);
	assert_int_equal(call(&image, base, "false_add", 7), 742);
	assert_int_equal(call(&again, copy, "false_add", 7), 741);
	assert_int_equal(call(&image, base, "false_has_absent", 0), 0);
	assert_in_range(call(&image, base, "false_own", 0),
			(uintptr_t)base + image.bytes,
			(uintptr_t)base + image.bytes + image.tls.bytes);
	assert_null(sp_image_function(&image, base, "false_given"));
	assert_non_null(sp_image_data(&image, base, &bytes));
	assert_in_range(bytes, 24000, image.bytes);
	sp_image_unmap(&image, base, MORE);
	sp_image_unmap(&again, copy, MORE);
}

TEST(truncated)
{
	struct sp_image image;
	char *base;

	for (size_t n = 0; n < file_bytes; n += n < 4096 ? 1 : 509) {
		write_damaged(file, n);
		/* What follows the segments is not missed. */
		if (load(damaged, &image, &base))
			assert_true(!base || n < file_bytes);
		if (base)
			sp_image_unmap(&image, base, MORE);
	}
	write_damaged(file, 64);
	assert_non_null(load(damaged, &image, &base));
	assert_null(base);
}

/* The headers, tables and relocations: where the file begins and where its data
 * are. */
TEST(hostile)
{
	static uint8_t bytes[FILE_MAX];
	uint64_t state = 4711;
	unsigned int refused = 0;

	for (int i = 0; i < 4000; i++) {
		struct sp_image image;
		char *base;

		memcpy(bytes, file, file_bytes);
		for (int k = 0; k < 1 + i % 4; k++) {
			uint64_t r = sp_splitmix64(&state);
			size_t room = i % 2 ? 2048 : file_bytes;

			bytes[(r >> 16) % room] = (uint8_t)r;
		}
		write_damaged(bytes, file_bytes);
		refused += load(damaged, &image, &base) != NULL;
		if (base)
			sp_image_unmap(&image, base, MORE);
	}
	assert_in_range(refused, 100, 3900);
}

static void refuse(size_t at, uint64_t value, size_t bytes)
{
	static uint8_t changed[FILE_MAX];
	struct sp_image image;
	char *base;

	memcpy(changed, file, file_bytes);
	memcpy(changed + at, &value, bytes);
	write_damaged(changed, file_bytes);
	assert_non_null(load(damaged, &image, &base));
	if (base)
		sp_image_unmap(&image, base, MORE);
}

/* What is known to be wrong is refused, each by its check. */
TEST(refused)
{
	const ElfW(Ehdr) *h = (const void *)file;
	const ElfW(Phdr) *p = (const void *)(file + h->e_phoff);

	refuse(offsetof(ElfW(Ehdr), e_machine), EM_386, 2);
	refuse(offsetof(ElfW(Ehdr), e_type), ET_EXEC, 2);
	refuse(offsetof(ElfW(Ehdr), e_phnum), 1000, 2);
	refuse(offsetof(ElfW(Ehdr), e_phoff), UINT64_MAX - 8, 8);
	for (unsigned int i = 0; i < h->e_phnum; i++) {
		const size_t at = (size_t)((const uint8_t *)&p[i] - file);

		if (p[i].p_type == PT_DYNAMIC) {
			refuse(at + offsetof(ElfW(Phdr), p_vaddr), 1ul << 40,
			       8);
			refuse(at + offsetof(ElfW(Phdr), p_filesz), 0, 8);
		}
		if (p[i].p_type != PT_LOAD)
			continue;
		refuse(at + offsetof(ElfW(Phdr), p_vaddr), 1ul << 40, 8);
		refuse(at + offsetof(ElfW(Phdr), p_memsz), UINT64_MAX, 8);
		refuse(at + offsetof(ElfW(Phdr), p_filesz), 1ul << 30, 8);
		refuse(at + offsetof(ElfW(Phdr), p_offset), 1ul << 62, 8);
		refuse(at + offsetof(ElfW(Phdr), p_flags), PF_R | PF_W | PF_X,
		       4);
	}
}

static int begin(void **state)
{
	int fd = open(FALSE_UNWIND, O_RDONLY);
	ssize_t n = read(fd, file, sizeof(file));

	(void)state;
	if (n <= 0 || n == (ssize_t)sizeof(file))
		return -1;
	file_bytes = (size_t)n;
	close(fd);
	damaged = memfd_create("damaged", MFD_CLOEXEC);
	return damaged < 0;
}

TEST_MAIN(begin, NULL)
