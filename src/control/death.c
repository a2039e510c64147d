/* SPDX-License-Identifier: MIT */
#include "control/death.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/place.h"
#include "base/proc.h"
#include "control/target.h"
#include "format/record.h"

#define TEXT_BYTES 65536
#define PATH_BYTES 4096

/* False: it cannot be read. */
static bool read_text(const char *path, char text[TEXT_BYTES])
{
	return sp_proc_read(text, TEXT_BYTES, "%s", path) >= 0;
}

/* The number behind "oom_kill " at the beginning of a line. */
static bool find_kills(const char *text, uint64_t *ret)
{
	static const char key[] = "oom_kill ";

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, sizeof(key) - 1) != 0)
			continue;
		*ret = strtoull(line + sizeof(key) - 1, NULL, 10);
		return true;
	}
	return false;
}

/* The second version counts the kills of a group with those below it, the first
 * one those of each group alone. */
static bool count_in_group(char text[TEXT_BYTES], uint64_t *ret)
{
	char path[PATH_BYTES];
	const char *group;
	bool is_v1;
	size_t n;
	int at;

	if (!read_text("/proc/self/cgroup", text))
		return false;
	n = sp_cgroup_memory(text, &group, &is_v1);
	if (!n)
		return false;
	at = snprintf(path, sizeof(path), "%s%.*s/%s", SP_CGROUP_ROOT(is_v1),
		      (int)n, group,
		      is_v1 ? "memory.oom_control" : "memory.events");
	if (at > 0 && (size_t)at < sizeof(path) && read_text(path, text) &&
	    find_kills(text, ret))
		return true;
	/* In a container without a namespace of groups the mount is its own. */
	snprintf(path, sizeof(path), "%s/%s", SP_CGROUP_ROOT(is_v1),
		 is_v1 ? "memory.oom_control" : "memory.events");
	return read_text(path, text) && find_kills(text, ret);
}

void sp_death_count_kills(struct sp_death_kills *ret)
{
	static char text[TEXT_BYTES];

	*ret = (struct sp_death_kills){0};
	ret->is_group_known = count_in_group(text, &ret->group);
	ret->is_known = ret->is_group_known;
	if (read_text("/proc/vmstat", text) && find_kills(text, &ret->machine))
		ret->is_known = true;
}

uint64_t sp_death_kind(int status, const struct sp_death_kills *before,
		       bool *is_elsewhere)
{
	struct sp_death_kills now;

	*is_elsewhere = false;
	if (!WIFSIGNALED(status))
		return SP_END_EXIT;
	if (WTERMSIG(status) == SIGKILL) {
		sp_death_count_kills(&now);
		if (now.group > before->group)
			return SP_END_NO_MEMORY;
		*is_elsewhere = now.machine > before->machine;
		if (*is_elsewhere && !now.is_group_known)
			return SP_END_NO_MEMORY;
	}
	return SP_END_SIGNAL + (uint64_t)WTERMSIG(status);
}

static bool is_valid(const struct sp_status *s, uint64_t file_id, uint64_t copy)
{
	return s->seq && (s->seq & 1) == copy &&
	       s->check ==
		       sp_format_check(file_id, SP_CHECK_STATUS, s, sizeof(*s));
}

/* The last valid status once more, in the place of the one before. */
static int store_end(int fd, uint64_t file_id, uint64_t kind)
{
	struct sp_status copies[2], *last;
	off_t at;

	for (int i = 0; i < 2; i++)
		if (pread(fd, &copies[i], sizeof(copies[i]),
			  SP_FORMAT_STATUS_OFFSET +
				  i * (off_t)SP_FORMAT_STATUS_STRIDE) !=
		    (ssize_t)sizeof(copies[i]))
			return -EIO;
	last = &copies[is_valid(&copies[1], file_id, 1) &&
		       (!is_valid(&copies[0], file_id, 0) ||
			copies[1].seq > copies[0].seq)];
	if (!is_valid(last, file_id, last == &copies[1]) || last->end_kind)
		return 0;
	last->seq++;
	last->end_kind = kind;
	last->check =
		sp_format_check(file_id, SP_CHECK_STATUS, last, sizeof(*last));
	at = SP_FORMAT_STATUS_OFFSET +
	     (off_t)(last->seq & 1) * SP_FORMAT_STATUS_STRIDE;
	if (pwrite(fd, last, sizeof(*last), at) != (ssize_t)sizeof(*last))
		return errno ? -errno : -EIO;
	return 0;
}

static int fail_store(const char *path, int r, struct sp_error *err)
{
	return sp_error_set(
		err, r, path, "the end of the process was not added: %s",
		r == -EPERM ? "the profile is now another file" : strerror(-r));
}

/* It may be another user's, but a file with a second name may be anything. */
static int open_profile(const struct sp_place *place)
{
	struct stat st;
	int fd;

	if (place->is_given || !S_ISREG(place->there.st_mode))
		return -EPERM;
	fd = openat(place->dir, place->name,
		    O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	close(fd);
	return -EPERM;
}

int sp_death_store(const char *path, pid_t pid, uint64_t kind,
		   struct sp_error *err)
{
	struct sp_file_header header;
	struct sp_place place;
	int fd, r = sp_place_find(path, &place, err);

	if (r < 0) {
		sp_place_close(&place);
		return r;
	}
	fd = open_profile(&place);
	sp_place_close(&place);
	if (fd < 0)
		return fail_store(path, fd, err);
	errno = 0;
	if (sp_target_read_header(fd, &header) && header.pid == (uint64_t)pid)
		r = store_end(fd, header.file_id, kind);
	close(fd);
	return r < 0 ? fail_store(path, r, err) : 0;
}
