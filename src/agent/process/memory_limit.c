/* SPDX-License-Identifier: MIT */
#include "agent/process/memory_limit.h"

#include <string.h>
#include <sys/resource.h>

#include "agent/sys/sys.h"
#include "base/cgroup.h"

#include "agent/sys/poison.h"

#define V1_FILE "/memory.limit_in_bytes"
#define V2_FILE "/memory.max"

#define FILE_SHARE 4u
#define FILE_MIN   (1ull << 20)

/* The first version writes "no limit" as nearly 2^63. */
#define UNLIMITED (1ull << 62)

/* "max" is no number. */
static uint64_t parse_limit(const char *text)
{
	uint64_t bytes = 0;

	if (*text < '0' || *text > '9')
		return SP_MEMORY_LIMIT_NONE;
	for (; *text >= '0' && *text <= '9' && bytes < UNLIMITED; text++)
		bytes = bytes * 10 + (uint64_t)(*text - '0');
	return bytes >= UNLIMITED ? SP_MEMORY_LIMIT_NONE : bytes;
}

static bool read_limit(const char *path, uint64_t *ret)
{
	char text[32];

	if (sp_sys_read_file(path, text, sizeof(text)) <= 0)
		return false;
	*ret = parse_limit(text);
	return true;
}

void sp_memory_limit_climb(struct sp_memory_limit *ret, const char *root,
			   const char *group, size_t group_bytes,
			   const char *name)
{
	const size_t top = strlen(root), tail = strlen(name) + 1;
	char path[SP_MEMORY_LIMIT_FILE_BYTES];
	size_t at = top + group_bytes;
	uint64_t bytes;

	if (at + tail > sizeof(path))
		return;
	memcpy(path, root, top);
	memcpy(path + top, group, group_bytes);
	for (;;) {
		while (at > top && path[at - 1] == '/')
			at--;
		memcpy(path + at, name, tail);
		if (read_limit(path, &bytes) && bytes < ret->group_bytes) {
			ret->group_bytes = bytes;
			memcpy(ret->group_file, path, at + tail);
		}
		if (at == top)
			return;
		/* The names of the group are still there before `at`. */
		while (at > top && path[at - 1] != '/')
			at--;
	}
}

void sp_memory_limit_find(struct sp_memory_limit *ret)
{
	static char text[4096];
	struct rlimit space;
	const char *group;
	size_t n = 0;
	bool is_v1;

	*ret = (struct sp_memory_limit){SP_MEMORY_LIMIT_NONE, "",
					SP_MEMORY_LIMIT_NONE};
	if (SP_SYS4(prlimit64, 0, RLIMIT_AS, 0, &space) == 0 &&
	    space.rlim_cur != RLIM_INFINITY)
		ret->address_space_bytes = space.rlim_cur;
	if (sp_sys_read_file("/proc/self/cgroup", text, sizeof(text)) > 0)
		n = sp_cgroup_memory(text, &group, &is_v1);
	if (n)
		sp_memory_limit_climb(ret, SP_CGROUP_ROOT(is_v1), group, n,
				      is_v1 ? V1_FILE : V2_FILE);
}

uint64_t sp_memory_limit_of_file(const struct sp_memory_limit *limit)
{
	char text[128];
	uint64_t used = 0, left;

	if (limit->address_space_bytes == SP_MEMORY_LIMIT_NONE)
		return SP_MEMORY_LIMIT_NONE;
	if (sp_sys_read_file("/proc/self/statm", text, sizeof(text)) > 0)
		used = parse_limit(text) * sp_sys_page_bytes();
	left = limit->address_space_bytes > used
		       ? limit->address_space_bytes - used
		       : 0;
	return left / FILE_SHARE > FILE_MIN ? left / FILE_SHARE : FILE_MIN;
}

uint64_t sp_memory_limit_again(const struct sp_memory_limit *limit)
{
	uint64_t bytes = limit->group_bytes;

	if (limit->group_file[0])
		read_limit(limit->group_file, &bytes);
	return bytes;
}
