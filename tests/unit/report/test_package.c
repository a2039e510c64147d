/* SPDX-License-Identifier: MIT */
/* Which package has the debug symbols of a file, by dpkg's lists. */
#include <unistd.h>

#include "report/package.h"
#include "support/test.h"

static const struct {
	const char *list;
	const char *files;
} lists[] = {
	{"libz1:amd64.list", "/.\n/lib\n/lib/x/libz.so.1.2\n"},
	{"libc6:amd64.list", "/usr/lib/x/libc.so.6\n"},
	{"tool.list", "/usr/bin/tool\n/usr/bin/tool-more"},
	{"tool.md5sums", "/usr/bin/other\n"},
	{"some-suite.list", "/usr/bin/far/away/\n/usr/bin/far\n"},
};

#define N_LISTS (sizeof(lists) / sizeof(*lists))

static char directory[] = "/tmp/sampleprof-lists-XXXXXX";

static void path_of(size_t i, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", directory, lists[i].list);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	for (size_t i = 0; i < N_LISTS; i++) {
		FILE *list;

		path_of(i, path, sizeof(path));
		list = fopen(path, "w");
		if (!list)
			return -1;
		fputs(lists[i].files, list);
		fclose(list);
	}
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	for (size_t i = 0; i < N_LISTS; i++) {
		path_of(i, path, sizeof(path));
		unlink(path);
	}
	return rmdir(directory);
}

static void belongs_to(const char *path, const char *want)
{
	char name[SP_PACKAGE_NAME_MAX];

	assert_int_equal(sp_package_of_debug(directory, path, name), !!want);
	if (want)
		assert_string_equal(name, want);
}

TEST(packages)
{
	/* With /usr or without it, on either side. */
	belongs_to("/lib/x/libz.so.1.2", "libz1-dbgsym");
	belongs_to("/usr/lib/x/libz.so.1.2", "libz1-dbgsym");
	belongs_to("/lib/x/libc.so.6", "libc6-dbg");
	belongs_to("/usr/bin/tool", "tool-dbgsym");
	belongs_to("/usr/bin/tool-more", "tool-dbgsym");
	belongs_to("/usr/bin/too", NULL);
	belongs_to("/usr/bin/other", NULL);
	belongs_to("/usr/bin/far", "some-suite-dbgsym");
	belongs_to("/bin/far", "some-suite-dbgsym");
	belongs_to("/usr/bin/far/away", NULL);
	belongs_to("/far", NULL);
	belongs_to("/usr/bin", NULL);
	belongs_to("", NULL);
}

TEST(no_lists)
{
	char name[SP_PACKAGE_NAME_MAX];

	assert_false(sp_package_of_debug("/nonexistent", "/bin/sh", name));
}

TEST_MAIN(setup, teardown)
