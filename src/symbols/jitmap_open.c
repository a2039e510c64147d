/* SPDX-License-Identifier: MIT */
/*
 * Where runtimes put their files, and which of them belong to a profile.
 * Anybody can write to /tmp, and process ids are reused.  So a file is used
 * only if it belongs to the profile's owner or root, and was written while the
 * process ran.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/regular.h"
#include "symbols/jitmap.h"

/* Clocks of file systems lag; a runtime may write while its process ends. */
#define BEFORE_S 2
#define AFTER_S  10

#define FILE_BYTES_MAX ((off_t)1 << 30)

/* NULL: the file belongs to the profile; else why not. */
static const char *why_not(const struct sp_profile *profile,
			   const struct stat *st)
{
	const time_t start = (time_t)(profile->start_unix_ns / 1000000000);
	const time_t end =
		(time_t)((profile->start_unix_ns + profile->duration_ns) /
			 1000000000);

	if (st->st_uid && st->st_uid != profile->owner)
		return "belongs to another user than the profile";
	if (st->st_mtime < start - BEFORE_S)
		return "is older than the process";
	if (profile->end != SP_PROFILE_END_RUNNING &&
	    st->st_mtime > end + AFTER_S)
		return "was written after the process had ended";
	return NULL;
}

/* Not mapped: its owner could cut it meanwhile. */
static int add_contents(struct sp_jitmap *map, const char *path, int fd,
			size_t bytes, bool is_dump)
{
	char *data = malloc(bytes + 1);
	size_t used = 0;
	ssize_t n = 1;
	int r = -ENOMEM;

	while (data && n > 0 && used < bytes) {
		n = read(fd, data + used, bytes - used);
		used += n > 0 ? (size_t)n : 0;
	}
	if (data)
		r = is_dump ? sp_jitmap_add_dump(map, (uint8_t *)data, used)
			    : sp_jitmap_add_map(map, data, used);
	free(data);
	if (r == -EBADMSG) {
		snprintf(map->problem, sizeof(map->problem),
			 "%.150s is not a jitdump of this machine", path);
		r = 0;
	}
	return r;
}

static int add_file(struct sp_jitmap *map, const struct sp_profile *profile,
		    const char *path, bool is_dump)
{
	struct stat st;
	const int fd =
		sp_regular_open_foreign(path, O_NOFOLLOW, FILE_BYTES_MAX, &st);
	const char *why;
	int r = 0;

	if (fd == -EINVAL)
		snprintf(map->problem, sizeof(map->problem),
			 "%.150s is not a regular file", path);
	if (fd == -EFBIG)
		snprintf(map->problem, sizeof(map->problem),
			 "%.150s is larger than 1 GiB", path);
	if (fd == -ETIMEDOUT)
		snprintf(map->problem, sizeof(map->problem),
			 "%.150s was not answered in time by who serves it "
			 "(FUSE)",
			 path);
	if (fd < 0)
		return 0;
	why = why_not(profile, &st);
	if (why)
		snprintf(map->problem, sizeof(map->problem), "%.150s %s", path,
			 why);
	else
		r = add_contents(map, path, fd, (size_t)st.st_size, is_dump);
	close(fd);
	return r;
}

/* Of the JVM's agent: DIRECTORY/.debug/jit/java-jit-DATE.X/jit-PID.dump. */
static int add_java(struct sp_jitmap *map, const struct sp_profile *profile)
{
	const char *directory = getenv("JITDUMPDIR");
	char pattern[4096];
	glob_t found;
	int r = 0;

	if (!directory)
		directory = getenv("HOME");
	if (!directory || directory[0] != '/' || strpbrk(directory, "*?[\\") ||
	    (size_t)snprintf(pattern, sizeof(pattern),
			     "%s/.debug/jit/*/jit-%" PRIu64 ".dump", directory,
			     profile->pid) >= sizeof(pattern))
		return 0;
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; !r && i < found.gl_pathc; i++)
		r = add_file(map, profile, found.gl_pathv[i], true);
	globfree(&found);
	return r;
}

int sp_jitmap_open(struct sp_jitmap *map, const struct sp_profile *profile)
{
	char path[64];
	int r;

	if (!sp_profile_is_of_this_host(profile))
		return 0;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu64 ".map", profile->pid);
	r = add_file(map, profile, path, false);
	if (!r) {
		snprintf(path, sizeof(path), "/tmp/jit-%" PRIu64 ".dump",
			 profile->pid);
		r = add_file(map, profile, path, true);
	}
	if (!r) {
		/* node --perf-prof writes it where it was started. */
		snprintf(path, sizeof(path), "jit-%" PRIu64 ".dump",
			 profile->pid);
		r = add_file(map, profile, path, true);
	}
	if (!r)
		r = add_java(map, profile);
	return r ? r : sp_jitmap_seal(map);
}
