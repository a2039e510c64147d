/* SPDX-License-Identifier: MIT */
/*
 * Which control group limits the memory of a process, by the text of
 * /proc/PID/cgroup: both versions, hybrids, containers, damaged text.
 */
#include <string.h>

#include "base/cgroup.h"
#include "support/test.h"

static void check_group(const char *text, const char *group, bool is_v1)
{
	const char *found = NULL;
	bool found_v1 = !is_v1;
	size_t n = sp_cgroup_memory(text, &found, &found_v1);

	assert_int_equal(n, strlen(group));
	if (!n)
		return;
	assert_memory_equal(found, group, n);
	assert_true(found_v1 == is_v1);
}

TEST(versions)
{
	check_group("0::/user.slice/a.scope\n", "/user.slice/a.scope", false);
	check_group("0::/\n", "/", false);
	check_group("4:memory:/docker/7\n3:cpu:/x\n", "/docker/7", true);
	check_group("5:cpu,memory,pids:/both\n", "/both", true);
	/* The first version has it, wherever it stands. */
	check_group("4:memory:/a\n1:name=systemd:/b\n0::/c\n", "/a", true);
	check_group("0::/c\n4:memory:/a\n", "/a", true);
	check_group("3:cpu:/x\n0::/c\n", "/c", false);
}

TEST(other_controllers)
{
	check_group("4:memory_x:/a\n", "", false);
	check_group("4:xmemory:/a\n", "", false);
	check_group("4:name=memory:/a\n", "", false);
}

/* A group above the root of the namespace cannot be found below the mount. */
TEST(outside)
{
	check_group("0::/../other\n", "", false);
	check_group("0::/..\n", "", false);
	check_group("0::/...\n", "", false);
	check_group("0::/.x\n", "/.x", false);
}

TEST(damaged)
{
	check_group("", "", false);
	check_group("\n", "", false);
	check_group("memory", "", false);
	check_group("4:memory", "", false);
	check_group("4:\nmemory:/a", "", false);
	check_group("0::/no/end", "/no/end", false);
	check_group("0::/a\n4:mem", "/a", false);
	check_group("0:::x:/y\n", ":x:/y", false);
}

TEST_MAIN(NULL, NULL)
