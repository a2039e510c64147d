/* SPDX-License-Identifier: MIT */
/*
 * Modules whose link to a shared debug file (dwz) leads to a pipe, outside the
 * roots, to another build: the right file below the roots, or none. libdw alone
 * would open the path of the link, and wait if it is a FIFO.
 */

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/debuginfo.h"
#include "support/test.h"

#define MODULE SP_SYMBOL_FIXTURES "/libfixture_dwz.so"
#define SHARED SP_SYMBOL_FIXTURES "/shared.debug"
#define LINK   "/a/long/way/from/here/to/the/.dwz/dir/shared.debug"
#define HEX19  "77777777777777777777777777777777777777"

static const uint8_t id_bytes[] = {0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77,
				   0x77, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77,
				   0x77, 0x77, 0x77, 0x77, 0x77, 0x77};
static const struct sp_build_id shared_id = {id_bytes, sizeof(id_bytes)};
static const struct sp_build_id any_id = {0};

/* A directory of this test, with a root for debug files in it. */
static char scratch[] = "/tmp/test_debugaltlink.XXXXXX";
static char root[64];

static int make_scratch(void **state)
{
	(void)state;
	strcpy(strrchr(scratch, '.'), ".XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	snprintf(root, sizeof(root), "%s/root", scratch);
	alarm(HUNG_S); /* nothing here may wait */
	return mkdir(root, 0700);
}

static int remove_scratch(void **state)
{
	char command[128];

	(void)state;
	alarm(0);
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}

static const char *in_scratch(const char *name)
{
	static char paths[4][256];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
	return path;
}

static char *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	char *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	*ret_size = (size_t)st.st_size;
	bytes = malloc(*ret_size);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *ret_size, file), *ret_size);
	fclose(file);
	return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The alternate file at scratch/path, whose directory is made; `id`: the first
 * byte of its build id. */
static void put_shared(const char *path, uint8_t id)
{
	char command[512];
	size_t size;
	FREED char *bytes = read_file(SHARED, &size);
	char *at = memmem(bytes, size, id_bytes, sizeof(id_bytes));

	assert_non_null(at);
	*at = (char)id;
	snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s)", scratch,
		 path);
	assert_int_equal(system(command), 0);
	write_file(in_scratch(path), bytes, size);
}

/* Over LINK, as the build id follows it: with more slashes in front, or more
 * dots and slashes where it is relative. */
static void write_link(char *at, const char *link)
{
	size_t n = sizeof(LINK) - 1 - strlen(link);

	assert_true(strlen(link) < sizeof(LINK));
	assert_true(link[0] == '/' || n % 2 == 0);
	for (size_t i = 0; i < n; i++)
		at[i] = link[0] == '/' || i % 2 ? '/' : '.';
	memcpy(at + n, link, strlen(link));
}

/* A module whose link says `link`; then what its function is called. */
static void check_name(const char *link, const char *expected)
{
	const struct sp_symbolizer_options options = {.debug_path = root};
	struct sp_location locations[SP_LOCATION_MAX];
	struct sp_debuginfo *info;
	struct sp_error err;
	uint64_t address;
	size_t size;
	char *bytes = read_file(MODULE, &size);
	char *at = memmem(bytes, size, LINK, sizeof(LINK));

	assert_non_null(at);
	write_link(at, link);
	write_file(in_scratch("module.so"), bytes, size);
	free(bytes);

	assert_int_equal(sp_debuginfo_open(in_scratch("module.so"), &any_id,
					   &options, &info, &err),
			 0);
	for (address = 0; address < 0x10000; address++) {
		assert_int_equal(sp_debuginfo_lookup(info, address, locations),
				 1);
		if (locations[0].function)
			break;
	}
	assert_string_equal(locations[0].function, expected);
	sp_debuginfo_close(info);
}

TEST_BETWEEN(by_build_id, make_scratch, remove_scratch)
{
	check_name(LINK, "dwz_symbol");
	put_shared("root/.build-id/77/" HEX19 ".debug", 0x77);
	check_name(LINK, "name_in_the_alternate_file");
	check_name("elsewhere!", "name_in_the_alternate_file");
}

TEST_BETWEEN(by_name_below_a_root, make_scratch, remove_scratch)
{
	put_shared("root/.dwz/dir/shared.debug", 0x77);
	check_name(LINK, "name_in_the_alternate_file");
	check_name("../..//.dwz/dir/shared.debug",
		   "name_in_the_alternate_file");
	check_name("../.dwz/shared.debug", "dwz_symbol");
}

TEST_BETWEEN(other_build_is_not_used, make_scratch, remove_scratch)
{
	put_shared("root/.build-id/77/" HEX19 ".debug", 0x78);
	put_shared("root/.dwz/dir/shared.debug", 0x78);
	check_name(LINK, "dwz_symbol");
}

TEST_BETWEEN(nothing_outside_the_roots, make_scratch, remove_scratch)
{
	put_shared("common.debug", 0x77);
	check_name(in_scratch("common.debug"), "dwz_symbol");
	/* Beside the module is the one place. */
	check_name("common.debug", "name_in_the_alternate_file");
	check_name("xx/.dwz/../../common.debug", "dwz_symbol");
	assert_int_equal(mkdir(in_scratch("root/.dwz"), 0700), 0);
	check_name("xx/.dwz/../../common.debug", "dwz_symbol");
}

TEST_BETWEEN(pipe_does_not_block, make_scratch, remove_scratch)
{
	assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
	check_name(in_scratch("fifo"), "dwz_symbol");
	check_name("./././fifo", "dwz_symbol");
	assert_int_equal(mkdir(in_scratch("root/.dwz"), 0700), 0);
	assert_int_equal(mkfifo(in_scratch("root/.dwz/fifo"), 0600), 0);
	check_name("xx/.dwz/fifo", "dwz_symbol");
}

TEST_BETWEEN(found_by_elffile, make_scratch, remove_scratch)
{
	const struct sp_build_id short_id = {id_bytes, 1};
	int fd;

	put_shared("root/.dwz/a/.dwz/b", 0x77);
	put_shared("root/.dwz/b", 0x78);
	/* The last one counts; its file is another build. */
	assert_int_equal(sp_elffile_find_debugaltlink(&shared_id,
						      "x/.dwz/a/.dwz/b", root,
						      "/nowhere/app"),
			 -ENOENT);
	put_shared("root/.dwz/b", 0x77);
	fd = sp_elffile_find_debugaltlink(&shared_id, "x/.dwz/a/.dwz/b", root,
					  "/nowhere/app");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sp_elffile_find_debugaltlink(&short_id, "x/.dwz/b",
						      root, "/nowhere/app"),
			 -ENOENT);
	assert_int_equal(sp_elffile_find_debugaltlink(&shared_id, "x/.dwz/b",
						      ":", "/nowhere/app"),
			 -ENOENT);
	/* It is no program. */
	assert_int_equal(
		sp_elffile_open(in_scratch("root/.dwz/b"), &shared_id, NULL),
		-ENOEXEC);
}

TEST_MAIN(NULL, NULL)
