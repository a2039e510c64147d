/* SPDX-License-Identifier: MIT */
/* Names for several profiles: all of them together have one end, of which each
 * is told what is left; behind it none is tried. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"
#include "tools/names.h"

#define HOUR_NS 3600000000000u

/* What the command was called with, in the file of that name. */
static char script[] = "/tmp/sampleprof-names-XXXXXX";
static char called[sizeof(script) + 5];

static int make_script(void **state)
{
	const int fd = mkstemp(script);

	(void)state;
	snprintf(called, sizeof(called), "%s.did", script);
	if (fd < 0 || dprintf(fd, "#!/bin/sh\necho \"$@\" >%s\n", called) < 0 ||
	    fchmod(fd, 0700) != 0)
		return -1;
	return close(fd);
}

static int remove_script(void **state)
{
	(void)state;
	unlink(called);
	return unlink(script);
}

/* Microseconds that it was told are left. */
static uint64_t left_us(void)
{
	FILE *file = fopen(called, "r");
	uint64_t us;

	assert_non_null(file);
	assert_int_equal(fscanf(file,
				"symbolize --timeout %" SCNu64
				"us -o profile -- profile",
				&us),
			 1);
	fclose(file);
	return us;
}

static struct names begin(uint64_t within_ns)
{
	struct names names;

	assert_true(names_begin(&names, NULL, within_ns));
	names.command[0] = script;
	return names;
}

TEST(one_end_for_all)
{
	char profile[] = "profile";
	FREED_BY(names_end) struct names names = begin(HOUR_NS);
	uint64_t before;

	assert_true(names_add(&names, profile));
	before = left_us();
	assert_in_range(before, 1, HOUR_NS / 1000);
	assert_true(names_add(&names, profile));
	assert_in_range(left_us(), 1, before - 1);
}

TEST(none_behind_it)
{
	char profile[] = "profile";
	FREED_BY(names_end) struct names names = begin(0);

	unlink(called);
	assert_false(names_add(&names, profile));
	assert_int_not_equal(access(called, F_OK), 0);
}

TEST_MAIN(make_script, remove_script)
