/* SPDX-License-Identifier: MIT */
#include "control/room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/proc.h"

#define PATH_BYTES  4096
#define TEXT_BYTES  8192
#define UNKNOWN     UINT64_MAX
#define UNLIMITED   (1ull << 62)
#define MEMINFO_KIB 1024

/* A group's files.  The kernel writes "max", or nearly 2^63, for no limit. */
struct group_files {
	const char *limit, *usage;
	const char *swap_limit, *swap_usage;
	const char *stat_prefix; /* with the groups below it */
};

static const struct group_files versions[2] = {
	{"memory.max", "memory.current", "memory.swap.max",
	 "memory.swap.current", ""},
	/* Here the limit and usage of swap have those of memory in them. */
	{"memory.limit_in_bytes", "memory.usage_in_bytes",
	 "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes",
	 "total_"},
};

static bool read_file(const char *group, const char *name,
		      char text[TEXT_BYTES])
{
	return sp_proc_read(text, TEXT_BYTES, "%s/%s", group, name) > 0;
}

/* UNKNOWN: there is no such file, or no limit. */
static uint64_t read_bytes(const char *group, const char *name)
{
	char text[TEXT_BYTES];
	uint64_t bytes;

	if (!read_file(group, name, text) || *text < '0' || *text > '9')
		return UNKNOWN;
	bytes = strtoull(text, NULL, 10);
	return bytes >= UNLIMITED ? UNKNOWN : bytes;
}

/* The number in the line "PREFIX" "NAME" of a text; 0: it is not there. */
static uint64_t find_number(const char *text, const char *prefix,
			    const char *name)
{
	const size_t n = strlen(prefix), m = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, prefix, n) == 0 &&
		    strncmp(line + n, name, m) == 0)
			return strtoull(line + n + m, NULL, 10);
	}
	return 0;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Pages of files that need not be written first. */
static uint64_t droppable_bytes(const char *group,
				const struct group_files *files)
{
	const char *prefix = files->stat_prefix;
	const bool is_v1 = *prefix;
	char text[TEXT_BYTES];

	if (!read_file(group, "memory.stat", text))
		return 0;
	return difference(
		find_number(text, prefix, "inactive_file ") +
			find_number(text, prefix, "active_file "),
		find_number(text, prefix, is_v1 ? "dirty " : "file_dirty ") +
			find_number(text, prefix,
				    is_v1 ? "writeback " : "file_writeback "));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t swap_bytes(const char *group, const struct group_files *files)
{
	const uint64_t limit = read_bytes(group, files->swap_limit);
	char text[TEXT_BYTES];
	uint64_t machine = 0;

	if (sp_proc_read(text, sizeof(text), "/proc/meminfo") > 0)
		machine = find_number(text, "", "SwapFree:") * MEMINFO_KIB;
	if (!machine || limit == UNKNOWN)
		return machine;
	return least(machine,
		     difference(limit, read_bytes(group, files->swap_usage)));
}

/* What a group may take; UNKNOWN: it has no limit. */
static uint64_t room_of_group(const char *group,
			      const struct group_files *files)
{
	const uint64_t limit = read_bytes(group, files->limit);
	const uint64_t usage = read_bytes(group, files->usage);

	if (limit == UNKNOWN || usage == UNKNOWN)
		return UNKNOWN;
	return difference(limit, usage) + droppable_bytes(group, files) +
	       swap_bytes(group, files);
}

/* The least of the group `path` and of those above it.  `root`: the part of
 * `path` that is where groups are mounted.  The path is shortened. */
static uint64_t room_up_to_root(char *path, const char *root,
				const struct group_files *files)
{
	uint64_t room = room_of_group(path, files);

	while (strlen(path) > strlen(root)) {
		*strrchr(path, '/') = '\0';
		room = least(room, room_of_group(path, files));
	}
	return room;
}

static uint64_t room_of_process(pid_t pid)
{
	char text[TEXT_BYTES], path[PATH_BYTES];
	const char *group;
	bool is_v1;
	size_t n;

	if (sp_proc_read(text, sizeof(text), "/proc/%d/cgroup", pid) <= 0)
		return UNKNOWN;
	n = sp_cgroup_memory(text, &group, &is_v1);
	if (!n || n > PATH_BYTES - 64)
		return UNKNOWN;
	snprintf(path, sizeof(path), "%s%.*s", SP_CGROUP_ROOT(is_v1), (int)n,
		 group);
	return room_up_to_root(path, SP_CGROUP_ROOT(is_v1), &versions[is_v1]);
}

int sp_room_check(pid_t pid, uint64_t bytes, const char *what,
		  struct sp_error *err)
{
	const uint64_t room = room_of_process(pid);

	if (room >= bytes)
		return 0;
	return sp_error_set(err, -ENOMEM, NULL,
			    "process %d may take only %" PRIu64 " KiB more in "
			    "its control group, and %s can need %" PRIu64 " "
			    "KiB: the kernel would kill it; raise the limit "
			    "of the group first",
			    pid, room / 1024, what, bytes / 1024);
}
