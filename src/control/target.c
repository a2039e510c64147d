/* SPDX-License-Identifier: MIT */
#include "control/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/parse.h"
#include "base/patience.h"
#include "base/regular.h"
#include "base/served.h"
#include "control/mapped.h"
#include "format/record.h"

/* 0; -ENOENT: it is none; or -errno. */
static int read_header(int fd, struct sp_file_header *ret)
{
	const ssize_t n = sp_patience_read(fd, ret, sizeof(*ret), 0);

	if (n < 0)
		return (int)n;
	return n == (ssize_t)sizeof(*ret) &&
			       memcmp(ret->magic, SP_FORMAT_MAGIC,
				      SP_FORMAT_MAGIC_BYTES) == 0 &&
			       ret->version == SP_FORMAT_VERSION &&
			       ret->check == sp_format_check(ret->file_id,
							     SP_CHECK_HEADER,
							     ret, sizeof(*ret))
		       ? 0
		       : -ENOENT;
}

bool sp_target_read_header(int fd, struct sp_file_header *ret)
{
	return read_header(fd, ret) == 0;
}

/* ---- the profile of a process ---- */

struct looker {
	int dir; /* of the process */
	struct sp_proc_identity identity;
	bool is_other; /* another user's */
	/* On its file system no other is tried; inode 0: none. */
	struct sp_proc_file silent;
};

static bool has_uid(const struct looker *l, uid_t uid)
{
	for (size_t i = 0; i < 4; i++)
		if (l->identity.uids[i] == uid)
			return true;
	return false;
}

/* Did that process make the file, which is there still?  It may have been root
 * then.  0; -ENOENT: no; or -errno. */
static int check_owner(const struct looker *l, int fd,
		       const struct sp_file_header *header)
{
	const struct sp_proc_identity *i = &l->identity;
	struct stat st;
	int r;

	if (header->pid != i->own_pid ||
	    (header->process_start_ticks && i->start_ticks &&
	     header->process_start_ticks != i->start_ticks))
		return -ENOENT;
	r = sp_patience_stat(fd, "", &st);
	if (r < 0)
		return r;
	return st.st_nlink && (!l->is_other || st.st_uid == 0 ||
			       has_uid(l, st.st_uid))
		       ? 0
		       : -ENOENT;
}

/* The name is untrusted, and only said. */
static void set_path(struct sp_target *target, const char *path, bool is_other)
{
	if (sp_mapped_is_at(path, target->fd, is_other))
		snprintf(target->path, sizeof(target->path), "%s", path);
	else
		snprintf(target->path, sizeof(target->path),
			 "/proc/%" PRIu64 "/root%s", target->pid, path);
	snprintf(target->file, sizeof(target->file), "/proc/self/fd/%d",
		 target->fd);
}

static bool is_silent(const struct looker *l, const struct sp_proc_map *map)
{
	return l->silent.inode && l->silent.major == map->file.major &&
	       l->silent.minor == map->file.minor;
}

/* 0, or -errno as of sp_mapped_open(). */
static int try_mapping(struct sp_target *target, struct looker *l,
		       const struct sp_proc_map *map)
{
	const int fd = is_silent(l, map)
			       ? -ETIMEDOUT
			       : sp_mapped_open(l->dir, map, l->is_other);
	int r = fd < 0 ? fd : read_header(fd, &target->header);

	if (r == 0)
		r = check_owner(l, fd, &target->header);
	if (r == -ETIMEDOUT && !l->silent.inode)
		snprintf(target->path, sizeof(target->path), "%s", map->path);
	if (r == -ETIMEDOUT)
		l->silent = map->file;
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return fd < 0 || r == -ETIMEDOUT ? r : -ENOENT;
	}
	target->fd = fd;
	target->mapped = map->file;
	set_path(target, map->path, l->is_other);
	return 0;
}

/* Of several reasons the one about which somebody can do something. */
static int worse_of(int r, int found)
{
	if (found == -EPERM)
		found = -EACCES;
	return r != -ETIMEDOUT && (found == -EACCES || found == -EXDEV ||
				   found == -ETIMEDOUT)
		       ? found
		       : r;
}

static int search_maps(struct sp_target *target, struct looker *l)
{
	struct sp_proc_lines maps = {.in = sp_proc_stream(l->dir, "maps")};
	struct sp_proc_map map;
	int r = -ENOENT;

	if (!maps.in)
		return errno == EACCES || errno == EPERM ? -EPERM : -ESRCH;
	while (target->fd < 0 && sp_proc_next_map(&maps, &map))
		if (sp_proc_map_is_written(&map))
			r = worse_of(r, try_mapping(target, l, &map));
	sp_proc_end_lines(&maps);
	return target->fd >= 0 ? 0 : r;
}

static int find_profile(struct sp_target *target)
{
	struct looker l = {.dir = sp_proc_open(target->pid)};
	int r;

	if (l.dir < 0)
		return l.dir == -ENOENT ? -ESRCH : -ECHILD;
	if (!sp_proc_identify(target->pid, &l.identity)) {
		close(l.dir);
		return -ESRCH;
	}
	l.is_other = sp_proc_is_other(&l.identity);
	r = search_maps(target, &l);
	close(l.dir);
	return r;
}

int sp_target_explain_silence(uint64_t pid, const char *path,
			      struct sp_error *err)
{
	return sp_error_set(err, -ETIMEDOUT, NULL,
			    "process %" PRIu64
			    ": its file %.120s was not answered in %u ms: a "
			    "process serves its file system, which may be "
			    "stopped",
			    pid, path, sp_patience_waited_ms());
}

static int explain(uint64_t pid, const char *path, int r, struct sp_error *err)
{
	switch (-r) {
	case ESRCH:
		return sp_error_set(err, r, NULL,
				    "there is no process %" PRIu64, pid);
	case ECHILD:
		return sp_error_set(err, -ESRCH, NULL,
				    "process %" PRIu64 " has ended", pid);
	case EPERM:
		return sp_error_set(
			err, -EACCES, NULL,
			geteuid() == 0 ? "the kernel does not show process "
					 "%" PRIu64
					 " to this root: CAP_SYS_PTRACE is "
					 "missing, as in a container, or a "
					 "security module forbids it"
				       : "process %" PRIu64
					 " belongs to another user: run "
					 "as that user, or root",
			pid);
	case EACCES:
		return sp_error_set(err, r, NULL,
				    "the files of process %" PRIu64
				    " cannot be read: run as its user, or root",
				    pid);
	case ETIMEDOUT:
		return sp_target_explain_silence(pid, path, err);
	case EXDEV:
		return sp_error_set(
			err, -EACCES, NULL,
			"a file of process %" PRIu64
			" is not opened, since a process of its user may serve "
			"the file system, and never answer: run as its user",
			pid);
	default:
		return sp_error_set(
			err, -ENOENT, NULL,
			"process %" PRIu64
			" has no profile open: it was not started under "
			"sampleprof (sampleprof run), has not taken a sample "
			"yet, or its profile was deleted",
			pid);
	}
}

int sp_target_open(struct sp_target *target, uint64_t pid, struct sp_error *err)
{
	int r;

	memset(target, 0, sizeof(*target));
	target->pid = pid;
	target->fd = target->copy = -1;
	r = find_profile(target);
	return r < 0 ? explain(pid, target->path, r, err) : 0;
}

void sp_target_close(struct sp_target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	if (target->copy >= 0)
		close(target->copy);
	target->fd = target->copy = -1;
}

int sp_target_read(struct sp_target *target, struct sp_error *err)
{
	struct sp_served_room room = sp_served_room();

	/* sp_served_keep() closes what it copies. */
	if (sp_patience_is_place(target->fd) && target->copy < 0) {
		target->copy = sp_served_keep(
			fcntl(target->fd, F_DUPFD_CLOEXEC, 0), &room);
		if (target->copy < 0)
			return explain(target->pid, target->path, target->copy,
				       err);
		snprintf(target->file, sizeof(target->file), "/proc/self/fd/%d",
			 target->copy);
	}
	return 0;
}

static bool writes(uint64_t pid, const struct sp_proc_file *file)
{
	const int dir = sp_proc_open(pid);
	const bool r = dir >= 0 && sp_proc_writes(dir, file);

	if (dir >= 0)
		close(dir);
	return r;
}

bool sp_target_is_there(const struct sp_target *target)
{
	return writes(target->pid, &target->mapped);
}

/* ---- all processes ---- */

/* All process ids; *ret is to be freed. */
static int read_pids(uint64_t **ret, size_t *ret_n)
{
	DIR *proc = opendir("/proc");
	size_t room = 0, n = 0;
	uint64_t *pids = NULL, pid;
	struct dirent *entry;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc)) != NULL) {
		if (!sp_parse_u64(entry->d_name, &pid))
			continue;
		if (n == room) {
			uint64_t *grown;

			room = 2 * room + 256;
			grown = realloc(pids, room * sizeof(*pids));
			if (!grown) {
				free(pids);
				closedir(proc);
				return -ENOMEM;
			}
			pids = grown;
		}
		pids[n++] = pid;
	}
	closedir(proc);
	if (n)
		qsort(pids, n, sizeof(*pids), sp_array_compare_u64);
	*ret = pids;
	*ret_n = n;
	return 0;
}

int sp_target_list(sp_target_found *found, sp_target_silent *silent, void *arg,
		   struct sp_error *err)
{
	struct sp_error why;
	struct sp_target target;
	uint64_t *pids = NULL;
	size_t n = 0;
	int r = read_pids(&pids, &n);

	if (r < 0)
		return sp_error_set(err, r, "/proc", "%s", strerror(-r));
	for (size_t i = 0; i < n; i++) {
		r = sp_target_open(&target, pids[i], &why);
		if (r == 0)
			found(arg, &target);
		else if (r == -ETIMEDOUT)
			silent(arg, &why);
		sp_target_close(&target);
	}
	free(pids);
	return 0;
}

static int identify_file(const char *path, struct sp_proc_file *ret,
			 struct sp_file_header *ret_header)
{
	const int fd = sp_regular_open(path, O_RDONLY);
	int r;

	if (fd < 0)
		return fd;
	r = sp_proc_name_file(fd, ret);
	if (r == 0 && !sp_target_read_header(fd, ret_header))
		r = -EINVAL;
	close(fd);
	return r;
}

int sp_target_writer(const char *path, uint64_t *ret_pid)
{
	struct sp_proc_identity identity;
	struct sp_file_header header;
	struct sp_proc_file file;
	uint64_t *pids = NULL;
	size_t n = 0;
	int r = identify_file(path, &file, &header);

	*ret_pid = 0;
	if (r == 0)
		r = read_pids(&pids, &n);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (writes(pids[i], &file) &&
		    sp_proc_identify(pids[i], &identity) &&
		    (!*ret_pid || identity.own_pid == header.pid))
			*ret_pid = pids[i];
	free(pids);
	return r;
}

bool sp_target_is_written(const char *path)
{
	uint64_t pid;

	return sp_target_writer(path, &pid) < 0 || pid;
}
