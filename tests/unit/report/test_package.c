/* SPDX-License-Identifier: MIT */
/* Which package has the debug symbols of a file, by dpkg's lists. */
#include <sys/stat.h>
#include <unistd.h>

#include "report/package.h"
#include "support/test.h"

static const struct {
	const char *list;
	const char *files;
} lists[] = {
	{"libz1:amd64.list", "/.\n/lib\n/lib/x/libz.so.1.2\n"},
	{"libc6:amd64.list", "/usr/lib/x/libc.so.6\n"},
	{"tool.list", "/usr/bin/tool\n/usr/bin/tool-more\n/homes/tool\n"
		      "/home/user/tool\n/memfd:tool\n/tmp/tool"},
	{"tool.md5sums", "/usr/bin/other\n"},
	{"some-suite.list", "/usr/bin/far/away/\n/usr/bin/far\n"},
	/* Made in an order that is not that of their names. */
	{"owner-7.list", "/opt/shared\n"},
	{"owner-3.list", "/opt/shared\n"},
	{"owner-1.list", "/opt/shared\n"},
	{"owner-9.list", "/opt/shared\n"},
	{"owner-5.list", "/opt/shared\n"},
};

#define N_LISTS (sizeof(lists) / sizeof(*lists))

static char etc[] = "/tmp/sampleprof-etc-XXXXXX";
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
	belongs_to("/opt/shared", "owner-1-dbgsym");
	belongs_to("/homes/tool", "tool-dbgsym");
	/* Where no package has files, whatever a list says. */
	belongs_to("/home/user/tool", NULL);
	belongs_to("/memfd:tool", NULL);
	belongs_to("/tmp/tool", NULL);
	belongs_to("/usr/bin", NULL);
	belongs_to("", NULL);
}

TEST(no_lists)
{
	char name[SP_PACKAGE_NAME_MAX];

	assert_false(sp_package_of_debug("/nonexistent", "/bin/sh", name));
}

static void write_setting(const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", etc, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void check_install(size_t n, const char *want)
{
	static const char names[][SP_PACKAGE_NAME_MAX] = {
		"libc6-dbg", "libpear1-dbgsym", "libapple2-dbgsym",
		"libc6-dbg"};
	FREED char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	sp_package_print_install(out, etc, names, n);
	fclose(out);
	assert_string_equal(text, want);
}

static void remove_settings(void)
{
	static const char *const names[] = {"/os-release",
					    "/apt/sources.list",
					    "/apt/sources.list.d/x.sources",
					    "/apt/sources.list.d",
					    "/apt",
					    ""};
	char path[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s%s", etc, names[i]);
		assert_int_equal(remove(path), 0);
	}
}

/* The archive is named only where it is needed and missing; the words of the
 * settings are no commands. */
TEST(what_to_install)
{
	char path[256];

	assert_non_null(mkdtemp(etc));
	assert_string_equal(sp_package_server(etc),
			    "https://debuginfod.elfutils.org");
	check_install(2, "apt-get install libc6-dbg libpear1-dbgsym");
	snprintf(path, sizeof(path), "%s/apt", etc);
	assert_int_equal(mkdir(path, 0755), 0);
	strcat(path, "/sources.list.d");
	assert_int_equal(mkdir(path, 0755), 0);
	write_setting("os-release", "NAME=\"D\"\nID=debian\n"
				    "VERSION_CODENAME=bookworm\n");
	write_setting("apt/sources.list", "deb http://a/debian bookworm main");
	assert_string_equal(sp_package_server(etc),
			    "https://debuginfod.debian.net");
	check_install(1, "apt-get install libc6-dbg");
	check_install(4, "(echo deb http://deb.debian.org/debian-debug "
			 "bookworm-debug main) "
			 ">/etc/apt/sources.list.d/debug.list && "
			 "apt-get update && apt-get install libapple2-dbgsym "
			 "libc6-dbg libpear1-dbgsym");
	/* A release that is out. */
	write_setting("os-release", "ID=debian\nVERSION_ID=\"12\"\n"
				    "VERSION_CODENAME=bookworm\n");
	check_install(2, "(echo deb http://deb.debian.org/debian-debug "
			 "bookworm-debug main; echo deb "
			 "http://deb.debian.org/debian-security-debug "
			 "bookworm-security-debug main) "
			 ">/etc/apt/sources.list.d/debug.list && "
			 "apt-get update && apt-get install libc6-dbg "
			 "libpear1-dbgsym");
	write_setting("apt/sources.list.d/x.sources",
		      "URIs: http://mirror/debian-debug\n");
	check_install(2, "apt-get install libc6-dbg libpear1-dbgsym");
	write_setting("os-release", "ID=\"mint\"\nID_LIKE=\"ubuntu debian\"\n"
				    "VERSION_CODENAME=noble\n");
	check_install(2, "apt-get install libc6-dbg libpear1-dbgsym");
	write_setting("os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n");
	check_install(2, "(echo deb http://ddebs.ubuntu.com noble main "
			 "restricted universe multiverse) "
			 ">/etc/apt/sources.list.d/debug.list && "
			 "apt-get update && apt-get install libc6-dbg "
			 "libpear1-dbgsym");
	write_setting("os-release", "ID=debian\nVERSION_CODENAME=$(reboot)\n");
	write_setting("apt/sources.list.d/x.sources", "");
	check_install(2, "apt-get install libc6-dbg libpear1-dbgsym");
	write_setting("os-release", "ID=fedora\n");
	assert_string_equal(sp_package_server(etc),
			    "https://debuginfod.fedoraproject.org");
	remove_settings();
}

TEST_MAIN(setup, teardown)
