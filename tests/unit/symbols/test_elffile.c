/* SPDX-License-Identifier: MIT */
/*
 * Which module and debug file is opened: build ids, links, CRCs; special files,
 * hostile links, modules elsewhere.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/elffile.h"
#include "support/test.h"

#define WHOLE       SP_SYMBOL_FIXTURES "/libfixture_c.so"
#define NO_ID       SP_SYMBOL_FIXTURES "/no_id/libfixture_linked.so"
#define DEBUG       SP_SYMBOL_FIXTURES "/libfixture_linked.debug"
#define NO_ID_DEBUG SP_SYMBOL_FIXTURES "/no_id/libfixture_linked.debug"
#define BY_ID       SP_SYMBOL_FIXTURES "/by_id"

static const uint8_t id_bytes[20] = {0x5a, 0,  1,  2,  3,  4,  5,  6,  7,  8,
				     9,    10, 11, 12, 13, 14, 15, 16, 17, 18};
static const struct sp_build_id fixture_id = {id_bytes, sizeof(id_bytes)};
static const struct sp_build_id no_id = {NULL, 0};

/* A directory of this run. */
static char scratch[64];

static int make_scratch(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/test_elffile.XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}

/* scratch/name in one of a few buffers that are used in turn. */
static const char *in_scratch(const char *name)
{
	static char paths[16][256];
	static unsigned turn;
	char *path = paths[turn++ % 16];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
	return path;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

/* The whole file; the caller frees it. */
static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	long size;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	assert_true(size > 0);
	rewind(file);
	bytes = malloc((size_t)size);
	assert_non_null(bytes);
	*ret_size = fread(bytes, 1, (size_t)size, file);
	assert_int_equal(*ret_size, size);
	fclose(file);
	return bytes;
}

static void copy_file(const char *from, const char *to)
{
	size_t size;
	FREED uint8_t *bytes = read_file(from, &size);

	write_file(to, bytes, size);
}

static void check_open(const char *path, const struct sp_build_id *want,
		       int code, const char *reason)
{
	struct sp_error err;
	int fd = sp_elffile_open(path, want, &err);

	if (fd >= 0)
		fail_msg("%s was opened", path);
	assert_int_equal(fd, code);
	if (!strstr(err.message, reason))
		fail_msg("\"%s\" lacks \"%s\"", err.message, reason);
}

static void check_opens(const char *path, const struct sp_build_id *want)
{
	struct sp_error err;
	int fd = sp_elffile_open(path, want, &err);

	if (fd < 0)
		fail_msg("%s %s", path, err.message);
	close(fd);
}

TEST(build_id_must_match_if_there_is_one)
{
	uint8_t other_bytes[sizeof(id_bytes)];
	struct sp_build_id other = {other_bytes, sizeof(other_bytes)};

	memcpy(other_bytes, id_bytes, sizeof(id_bytes));
	check_opens(WHOLE, &fixture_id);
	check_opens(WHOLE, &no_id);
	check_opens(WHOLE, &other);
	check_opens(NO_ID, &no_id);
	check_open(NO_ID, &other, -ESTALE, ", now none)");
	other.len--;
	check_open(WHOLE, &other, -ESTALE, "changed since");
	other.len++;
	other_bytes[19]++;
	check_open(WHOLE, &other, -ESTALE,
		   "(build id 5a000102030405060708090a0b0c0d0e0f101113, "
		   "now 5a000102030405060708090a0b0c0d0e0f101112)");
}

TEST(what_is_no_regular_file)
{
	assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
	check_open(in_scratch("fifo"), &no_id, -EINVAL, "not a regular file");
	check_open("/dev/zero", &no_id, -EINVAL, "not a regular file");
	check_open(scratch, &no_id, -EINVAL, "not a regular file");
	check_open("/nonexistent/libx.so", &no_id, -ENOENT,
		   "cannot be opened: No such file");
	check_open("", &no_id, -ENOENT, "cannot be opened");
}

TEST(what_is_no_executable_or_library)
{
	const char *path = in_scratch("contents");
	FREED uint8_t *elf;
	size_t size;

	check_open("/proc/self/environ", &no_id, -ENOEXEC, "is not an ELF");
	write_file(path, "", 0);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");
	write_file(path, "#!/bin/sh\nexit 0\n", 17);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");
	write_file(path, "\037\213\010\0\0\0\0\0\0\003", 10);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");
	write_file(path, "!<arch>\n", 8);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");
	write_file(path, "\177ELF\2\1\1", 7);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");

	/* e_type, at offset 16: an object file or a core is no use. */
	elf = read_file(WHOLE, &size);
	elf[16] = 1;
	write_file(path, elf, size);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");
	elf[16] = 4;
	write_file(path, elf, size);
	check_open(path, &no_id, -ENOEXEC, "is not an ELF");
}

/* As its definition has it: bit by bit. */
static uint32_t model_crc(const char *path)
{
	size_t size, i;
	uint8_t *bytes = read_file(path, &size);
	uint32_t crc = UINT32_MAX;
	int bit;

	for (i = 0; i < size; i++) {
		crc ^= bytes[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	free(bytes);
	return ~crc;
}

/* The debug file found is `expected`, or none if that is NULL. */
static void check_debug(const struct sp_debug_query *query,
			const char *expected)
{
	struct sp_debug_query q = *query;
	char *path = NULL;
	struct stat st;
	int fd;

	assert_int_equal(stat(q.main_path, &st), 0);
	q.main_stat = &st;
	fd = sp_elffile_find_debug(&q, &path);
	if (!expected) {
		assert_int_equal(fd, -ENOENT);
		assert_null(path);
		return;
	}
	assert_true(fd >= 0);
	assert_string_equal(path, expected);
	close(fd);
	free(path);
}

TEST(debug_file_by_build_id)
{
	struct sp_debug_query query = {
		.main_path = WHOLE,
		.build_id = fixture_id,
		.roots = ":/nonexistent::" BY_ID,
	};

	check_debug(&query, BY_ID "/.build-id/5a/"
				  "000102030405060708090a0b0c0d0e0f101112"
				  ".debug");
	query.roots = "/nonexistent";
	check_debug(&query, NULL);
	query.roots = "";
	check_debug(&query, NULL);
}

TEST(file_at_a_build_id_must_have_it)
{
	static const uint8_t bytes[] = {0x12, 0x34};
	const struct sp_debug_query query = {
		.main_path = WHOLE,
		.build_id = {bytes, 2},
		.roots = scratch,
	};

	assert_int_equal(mkdir(in_scratch(".build-id"), 0700), 0);
	assert_int_equal(mkdir(in_scratch(".build-id/12"), 0700), 0);
	copy_file(DEBUG, in_scratch(".build-id/12/34.debug"));
	check_debug(&query, NULL);
}

TEST(link_beside_the_file)
{
	struct sp_debug_query query = {
		.main_path = in_scratch("lib.so"),
		.link_name = "lib.debug",
		.roots = "/nonexistent",
		.build_id = fixture_id,
	};

	copy_file(WHOLE, in_scratch("lib.so"));
	check_debug(&query, NULL);
	assert_int_equal(mkdir(in_scratch(".debug"), 0700), 0);
	copy_file(DEBUG, in_scratch(".debug/lib.debug"));
	check_debug(&query, in_scratch(".debug/lib.debug"));
	copy_file(DEBUG, in_scratch("lib.debug"));
	check_debug(&query, in_scratch("lib.debug"));
	/* One of another build does not hide the right one. */
	copy_file(NO_ID_DEBUG, in_scratch("lib.debug"));
	check_debug(&query, in_scratch(".debug/lib.debug"));
}

TEST(link_to_itself_is_passed_over)
{
	const struct sp_debug_query query = {
		.main_path = in_scratch("self"),
		.link_name = "self",
		.roots = in_scratch("root"),
		.build_id = fixture_id,
	};
	char command[512];

	copy_file(WHOLE, in_scratch("self"));
	check_debug(&query, NULL);
	/* ROOT/directory/of/the/file/self */
	snprintf(command, sizeof(command),
		 "mkdir -p %s/root%s && cp %s %s/root%s/self", scratch, scratch,
		 DEBUG, scratch, scratch);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/root/%s/self", scratch, scratch);
	check_debug(&query, command);
}

TEST(without_build_id_the_crc_decides)
{
	struct sp_debug_query query = {
		.main_path = NO_ID,
		.link_name = "libfixture_linked.debug",
		.link_crc = model_crc(NO_ID_DEBUG),
		.roots = "/nonexistent",
	};

	check_debug(&query, NO_ID_DEBUG);
	query.link_crc ^= 1u << 31;
	check_debug(&query, NULL);
}

TEST(hostile_links)
{
	struct sp_debug_query query = {
		.main_path = in_scratch("hostile.so"),
		.roots = "/nonexistent",
		.build_id = fixture_id,
	};

	copy_file(WHOLE, in_scratch("hostile.so"));
	assert_int_equal(mkdir(in_scratch("sub"), 0700), 0);
	copy_file(DEBUG, in_scratch("sub/x.debug"));
	query.link_name = "sub/x.debug";
	check_debug(&query, NULL);
	query.link_name = "sub";
	check_debug(&query, NULL);
	query.link_name = "";
	check_debug(&query, NULL);
	assert_int_equal(mkfifo(in_scratch("pipe"), 0600), 0);
	query.link_name = "pipe";
	check_debug(&query, NULL);
}

/* The module that was at `path` is found at `expected`, below scratch/roots;
 * NULL: not at all. */
static void check_module(const char *path, const struct sp_build_id *id,
			 const char *roots, const char *expected)
{
	struct sp_error err = {0};
	char *found = NULL;
	int fd = sp_elffile_find(path, id, roots, &found, &err);

	if (!expected) {
		assert_int_equal(fd, -ENOENT);
		assert_null(found);
		assert_non_null(strstr(err.message, "No such file"));
		return;
	}
	assert_true(fd >= 0);
	assert_non_null(found);
	assert_string_equal(found, expected);
	close(fd);
	free(found);
}

/* Each place is better than those before it; what is no such module is passed
 * over at any of them. */
TEST(module_elsewhere)
{
	static const char *const places[] = {
		".build-id/5a/000102030405060708090a0b0c0d0e0f101112.debug",
		"libx.so",
		"opt/lib/libx.so",
		".build-id/5a/000102030405060708090a0b0c0d0e0f101112",
	};
	const char *path = "/opt/lib/libx.so", *best = NULL;
	char roots[256], command[512], at[4][256], hostile[256];
	char *found = NULL;
	int fd;

	snprintf(roots, sizeof(roots), "/nonexistent:%s/bad:%s/good", scratch,
		 scratch);
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p bad/opt/lib bad/.build-id/5a good/opt/lib "
		 "good/.build-id/5a",
		 scratch);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(at[i], sizeof(at[i]), "%s/good/%s", scratch,
			 places[i]);
		snprintf(hostile, sizeof(hostile), "%s/bad/%s", scratch,
			 places[i]);
		check_module(path, &fixture_id, roots, best);
		if (i == 0)
			assert_int_equal(mkfifo(hostile, 0600), 0);
		else if (i == 1)
			assert_int_equal(mkdir(hostile, 0700), 0);
		else if (i == 2)
			copy_file(NO_ID, hostile);
		else
			assert_int_equal(symlink("/dev/zero", hostile), 0);
		check_module(path, &fixture_id, roots, best);
		copy_file(WHOLE, at[i]);
		check_module(path, &fixture_id, roots, at[i]);
		best = at[i];
	}
	/* Where it was is better still. */
	copy_file(WHOLE, in_scratch("there.so"));
	fd = sp_elffile_find(in_scratch("there.so"), &fixture_id, roots, &found,
			     NULL);
	assert_true(fd >= 0);
	assert_null(found);
	close(fd);
}

/* Names are no proof, and do not lead out of a root. */
TEST(module_without_proof)
{
	const struct sp_build_id short_id = {id_bytes, 1};
	char *found = NULL;

	check_module("/opt/lib/libx.so", &no_id, in_scratch("good"), NULL);
	check_module("/opt/lib/libx.so", &short_id, in_scratch("good"), NULL);
	check_module("/opt/lib/libx.so", &fixture_id, "", NULL);
	copy_file(WHOLE, in_scratch("outside.so"));
	check_module("../outside.so", &fixture_id, in_scratch("bad"), NULL);
	/* Another build in its place: the error is that, if there is none. */
	assert_int_equal(sp_elffile_find(NO_ID, &fixture_id, in_scratch("bad"),
					 &found, NULL),
			 -ESTALE);
	assert_null(found);
}

/* What is mapped of this very program is at those places of its file. */
TEST(code)
{
	uint8_t *here = (uint8_t *)(uintptr_t)test_hostile_links;
	struct sp_elf_segment s[4];
	int fd = open("/proc/self/exe", O_RDONLY);
	uint8_t bytes[16];
	Dl_info info;
	uint64_t at;

	assert_true(dladdr(here, &info) != 0);
	assert_int_equal(sp_elffile_code("/proc/self/exe", &no_id, s, 4), 1);
	assert_int_equal(s[0].address % 4096, 0);
	assert_int_equal(s[0].offset % 4096, 0);
	at = (uint64_t)(here - (uint8_t *)info.dli_fbase) - s[0].address;
	assert_true(at < s[0].bytes);
	assert_int_equal(
		pread(fd, bytes, sizeof(bytes), (off_t)(s[0].offset + at)),
		sizeof(bytes));
	assert_memory_equal(bytes, here, sizeof(bytes));
	close(fd);
	assert_int_equal(sp_elffile_code("/proc/self/exe", &no_id, s, 0), 0);
	assert_int_equal(sp_elffile_code("/proc/self/exe", &fixture_id, s, 4),
			 -ESTALE);
	assert_int_equal(sp_elffile_code("/nonexistent", &no_id, s, 4),
			 -ENOENT);
	assert_int_equal(sp_elffile_code(WHOLE, &fixture_id, s, 4), 1);
}

TEST_MAIN(make_scratch, remove_scratch)
