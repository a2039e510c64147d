/* SPDX-License-Identifier: MIT */
/* The messages of allocators in files, wherever they stand; none in what is no
 * such file, or in what only has a part of one. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/brought.h"
#include "support/test.h"

#define BYTES (5u << 20)
#define AT    4096u /* of the segment */

static int make_file(const char *text, size_t at, uint32_t flags)
{
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {.p_type = PT_LOAD,
				    .p_flags = flags,
				    .p_offset = AT,
				    .p_filesz = BYTES};
	char path[] = "/tmp/brought-XXXXXX";
	const int fd = mkstemp(path);

	assert_true(fd >= 0 && unlink(path) == 0);
	assert_int_equal(ftruncate(fd, AT + BYTES), 0);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0),
			 sizeof(header));
	assert_int_equal(pwrite(fd, &segment, sizeof(segment), sizeof(header)),
			 sizeof(segment));
	assert_int_equal(pwrite(fd, text, strlen(text), (off_t)(AT + at)),
			 strlen(text));
	return fd;
}

static void expect_name(const char *text, size_t at, uint32_t flags,
			const char *name)
{
	const int fd = make_file(text, at, flags);
	const char *found = sp_brought_find(fd);

	close(fd);
	if (name)
		assert_string_equal(found ? found : "", name);
	else
		assert_null(found);
}

TEST(names)
{
	expect_name("<jemalloc>: Error", 100, PF_R, "jemalloc");
	expect_name("mimalloc: warning: ", 0, PF_R, "mimalloc");
	expect_name("tcmalloc: large", BYTES - 15, PF_R, "tcmalloc");
	expect_name("<jemalloc>: Error", 100, PF_R | PF_X, "jemalloc");
	expect_name("mimalloc: ", BYTES - 10, PF_R, "mimalloc");
}

TEST(none)
{
	int fd;

	expect_name("malloc: jemalloc: <jemalloc> mimalloc:", 100, PF_R, NULL);
	expect_name("<jemalloc>: Error", 100, PF_R | PF_W, NULL);
	expect_name("<jemalloc>:", BYTES - 11, PF_R, NULL);
	fd = open("/dev/null", O_RDONLY);
	assert_null(sp_brought_find(fd));
	close(fd);
}

/* A file is read in parts. */
TEST(everywhere)
{
	for (size_t part = 1; part < 4; part++)
		for (size_t i = 0; i < 180; i++)
			expect_name("<jemalloc>: Error", (part << 20) + 40 - i,
				    PF_R, "jemalloc");
}

TEST_MAIN(NULL, NULL)
