/* SPDX-License-Identifier: MIT */
/*
 * The smallest limit of memory from a control group up to the root of its
 * mount, in directories of the test's own, and whether it is read again.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/process/memory_limit.h"
#include "support/test.h"

#define NAME "/memory.max"

static char root[] = "/tmp/sampleprof-limit-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* A group with that limit; NULL: without. */
static void put_group(const char *group, const char *limit)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", root, group);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s%s%s", root, group, NAME);
	if (!limit) {
		unlink(path);
		return;
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(limit, file);
	fclose(file);
}

static struct sp_memory_limit climb(const char *group)
{
	struct sp_memory_limit limit = {.group_bytes = SP_MEMORY_LIMIT_NONE};

	sp_memory_limit_climb(&limit, root, group, strlen(group), NAME);
	return limit;
}

static void check_file(const struct sp_memory_limit *limit, const char *group)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", root, group, NAME);
	assert_string_equal(limit->group_file, path);
}

TEST(smallest)
{
	struct sp_memory_limit limit;

	put_group("", "max\n");
	put_group("/a", "300\n");
	put_group("/a/b", "500\n");
	put_group("/a/b/c", "max\n");
	limit = climb("/a/b/c");
	assert_int_equal(limit.group_bytes, 300);
	check_file(&limit, "/a");
	put_group("/a/b/c", "200\n");
	limit = climb("/a/b/c");
	assert_int_equal(limit.group_bytes, 200);
	check_file(&limit, "/a/b/c");
	put_group("", "100\n");
	limit = climb("/a/b/c/");
	assert_int_equal(limit.group_bytes, 100);
	check_file(&limit, "");
	limit = climb("/");
	assert_int_equal(limit.group_bytes, 100);
	put_group("", "max\n");
	assert_true(climb("/").group_bytes == SP_MEMORY_LIMIT_NONE);
	assert_true(climb("/").group_file[0] == '\0');
}

/* A container sees its own group as the root, and not the one that is named. */
TEST(not_there)
{
	struct sp_memory_limit limit;

	put_group("", "400\n");
	limit = climb("/docker/1234/deep");
	assert_int_equal(limit.group_bytes, 400);
	check_file(&limit, "");
}

TEST(words)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"9223372036854771712\n", SP_MEMORY_LIMIT_NONE},
		{"99999999999999999999999\n", SP_MEMORY_LIMIT_NONE},
		{"max", SP_MEMORY_LIMIT_NONE},
		{"", SP_MEMORY_LIMIT_NONE},
		{"-1\n", SP_MEMORY_LIMIT_NONE},
		{"0\n", 0},
		{"536870912", 536870912},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put_group("", cases[i].text);
		assert_true(climb("/").group_bytes == cases[i].bytes);
	}
}

TEST(too_long)
{
	char group[SP_MEMORY_LIMIT_FILE_BYTES + 1];

	memset(group, 'x', sizeof(group) - 1);
	group[0] = '/';
	group[sizeof(group) - 1] = '\0';
	put_group("", "100\n");
	assert_true(climb(group).group_bytes == SP_MEMORY_LIMIT_NONE);
}

TEST(again)
{
	struct sp_memory_limit limit;

	put_group("", "max\n");
	put_group("/z", "100\n");
	limit = climb("/z");
	put_group("/z", "150\n");
	assert_int_equal(sp_memory_limit_again(&limit), 150);
	put_group("/z", "max\n");
	assert_true(sp_memory_limit_again(&limit) == SP_MEMORY_LIMIT_NONE);
	/* Gone: what it was. */
	put_group("/z", NULL);
	assert_int_equal(sp_memory_limit_again(&limit), 100);
}

/* A quarter of what is left, or a little. */
TEST(of_a_file)
{
	struct sp_memory_limit limit = {.address_space_bytes = 1ull << 50};

	assert_true(sp_memory_limit_of_file(&limit) > 1ull << 47);
	assert_true(sp_memory_limit_of_file(&limit) <= 1ull << 48);
	limit.address_space_bytes = 4096;
	assert_int_equal(sp_memory_limit_of_file(&limit), 1 << 20);
	limit.address_space_bytes = SP_MEMORY_LIMIT_NONE;
	assert_true(sp_memory_limit_of_file(&limit) == SP_MEMORY_LIMIT_NONE);
}

/* Whatever this machine has: it is read without harm. */
TEST(of_this_process)
{
	struct sp_memory_limit limit;

	sp_memory_limit_find(&limit);
	assert_true(limit.address_space_bytes > 1 << 20);
	assert_true((limit.group_bytes == SP_MEMORY_LIMIT_NONE) ==
		    !limit.group_file[0]);
}

TEST_MAIN(make_root, remove_root)
