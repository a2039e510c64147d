/* SPDX-License-Identifier: MIT */
/* Untrusted names of source files: which are opened, and their lines. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/sourcefile.h"
#include "support/test.h"

static char dir[] = "/tmp/sourcefile-XXXXXX";
static char path[256];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(in_dir(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mkdir(in_dir("lib"), 0700), 0);
	write_file("lib/a.c", "one\ntwo\r\n\nfour", 14);
	write_file("empty", "", 0);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {"lib/a.c", "empty", "pipe",
					    "large",   "lib",   ""};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove(in_dir(names[i]));
	return 0;
}

static int open_as(const char *name, const char *dirs)
{
	struct sp_sourcefile *s = NULL;
	struct sp_error err = {0};
	int r = sp_sourcefile_new(name, dirs, true, &s, &err);

	if (r < 0)
		assert_true(*err.message);
	sp_sourcefile_free(s);
	return r;
}

TEST(lines)
{
	static const char *const lines[] = {"one", "two", "", "four"};
	struct sp_sourcefile *s;
	size_t n;

	assert_int_equal(
		sp_sourcefile_new(in_dir("lib/a.c"), NULL, true, &s, NULL), 0);
	assert_int_equal(sp_sourcefile_lines(s), 4);
	for (uint32_t i = 0; i < 4; i++) {
		const char *text = sp_sourcefile_line(s, i + 1, &n);

		assert_int_equal(n, strlen(lines[i]));
		assert_memory_equal(text, lines[i], n);
	}
	assert_true(sp_sourcefile_changed_ns(s) > 0);
	sp_sourcefile_free(s);
	assert_int_equal(
		sp_sourcefile_new(in_dir("empty"), NULL, true, &s, NULL), 0);
	assert_int_equal(sp_sourcefile_lines(s), 0);
	sp_sourcefile_free(s);
}

/* With fewer and fewer of the directories in front. */
TEST(search)
{
	char dirs[128];

	snprintf(dirs, sizeof(dirs), "/nonexistent::%s", dir);
	assert_int_equal(open_as("/build/x/lib/a.c", dirs), 0);
	assert_int_equal(open_as("../x/lib/a.c", dirs), 0);
	assert_int_equal(open_as("lib/a.c", dirs), 0);
	assert_int_equal(open_as("/build/x/a.c", dirs), -ENOENT);
	assert_int_equal(open_as("/build/x/lib/a.c", NULL), -ENOENT);
	assert_int_equal(open_as("/build/x/lib/a.c", "/nonexistent"), -ENOENT);
	/* Never out of a directory that was given. */
	snprintf(dirs, sizeof(dirs), "%s/lib", dir);
	assert_int_equal(open_as("x/../empty", dirs), -ENOENT);
	assert_int_equal(open_as("x/../lib/a.c", dirs), 0);
}

/* A name that a profile brought: below the directories or not at all. */
TEST(not_anywhere)
{
	struct sp_sourcefile *s = NULL;
	struct sp_error err = {0};

	assert_int_equal(
		sp_sourcefile_new(in_dir("lib/a.c"), NULL, false, &s, &err),
		-ENOENT);
	assert_non_null(strstr(err.message, "--source-path"));
	assert_int_equal(
		sp_sourcefile_new(in_dir("lib/a.c"), dir, false, &s, &err), 0);
	sp_sourcefile_free(s);
}

TEST(what_is_no_file)
{
	FILE *f;

	assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
	assert_int_equal(open_as(in_dir("pipe"), NULL), -ENOENT);
	assert_int_equal(open_as(dir, NULL), -ENOENT);
	assert_int_equal(open_as("/dev/zero", NULL), -ENOENT);
	f = fopen(in_dir("large"), "w");
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), SP_SOURCEFILE_BYTES_MAX + 1), 0);
	fclose(f);
	assert_int_equal(open_as(in_dir("large"), NULL), -EFBIG);
}

TEST_MAIN(setup, teardown)
