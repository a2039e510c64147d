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
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/parse.h"
#include "format/record.h"

/* A line of /proc/PID/maps: the start of a shared writable mapping of a file,
 * from its beginning; false for all others. */
struct mapping {
	unsigned int major, minor;
	uint64_t inode;
	const char *path; /* into the line */
};

static bool parse_mapping(char *line, struct mapping *ret)
{
	uint64_t offset;
	char mode[8];
	int at = 0;

	if (sscanf(line, "%*x-%*x %7s %" SCNx64 " %x:%x %" SCNu64 " %n", mode,
		   &offset, &ret->major, &ret->minor, &ret->inode, &at) != 5 ||
	    strcmp(mode, "rw-s") != 0 || offset || line[at] != '/')
		return false;
	line[strcspn(line, "\n")] = '\0';
	ret->path = line + at;
	return true;
}

bool sp_target_read_header(int fd, struct sp_file_header *ret)
{
	return pread(fd, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret) &&
	       memcmp(ret->magic, SP_FORMAT_MAGIC, SP_FORMAT_MAGIC_BYTES) ==
		       0 &&
	       ret->version == SP_FORMAT_VERSION &&
	       ret->check == sp_format_check(ret->file_id, SP_CHECK_HEADER, ret,
					     sizeof(*ret));
}

/* Open it under this name if it is the mapped file. */
static bool open_as(struct sp_target *target, const char *path,
		    const struct mapping *mapping)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat st;
	int fd = open(path, flags);

	if (fd < 0)
		return false;
	/* Not the device: on some file systems maps has another number. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_ino == mapping->inode &&
	    sp_target_read_header(fd, &target->header)) {
		target->fd = fd;
		snprintf(target->path, sizeof(target->path), "%s", path);
		return true;
	}
	close(fd);
	return false;
}

static bool try_mapping(struct sp_target *target, const struct mapping *mapping)
{
	char path[SP_TARGET_PATH_MAX];
	int n = snprintf(path, sizeof(path), "/proc/%" PRIu64 "/root%s",
			 target->pid, mapping->path);

	if (open_as(target, mapping->path, mapping))
		return true;
	return n > 0 && (size_t)n < sizeof(path) &&
	       open_as(target, path, mapping);
}

static int search_maps(struct sp_target *target, FILE *maps)
{
	struct mapping mapping;
	char *line = NULL;
	size_t room = 0;
	bool denied = false;

	errno = 0;
	while (target->fd < 0 && getline(&line, &room, maps) > 0) {
		if (!parse_mapping(line, &mapping))
			continue;
		errno = 0;
		if (!try_mapping(target, &mapping))
			denied |= errno == EACCES || errno == EPERM;
	}
	free(line);
	return target->fd >= 0 ? 0 : denied ? -EACCES : -ENOENT;
}

int sp_target_open(struct sp_target *target, uint64_t pid, struct sp_error *err)
{
	char path[64];
	FILE *maps;
	int r;

	memset(target, 0, sizeof(*target));
	target->pid = pid;
	target->fd = -1;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/maps", pid);
	maps = fopen(path, "re");
	if (!maps && errno != EACCES && errno != EPERM)
		return sp_error_set(err, -ESRCH, NULL,
				    "there is no process %" PRIu64, pid);
	if (!maps)
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
	r = search_maps(target, maps);
	fclose(maps);
	if (r == -EACCES)
		return sp_error_set(
			err, r, NULL,
			"the files of process %" PRIu64
			" cannot be written: run as its user, or root",
			pid);
	if (r < 0)
		return sp_error_set(
			err, r, NULL,
			"process %" PRIu64
			" has no profile open: it was not started under "
			"sampleprof (sampleprof run), has not taken a sample "
			"yet, or its profile was deleted",
			pid);
	return 0;
}

void sp_target_close(struct sp_target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
}

static int compare_pids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

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
		qsort(pids, n, sizeof(*pids), compare_pids);
	*ret = pids;
	*ret_n = n;
	return 0;
}

int sp_target_list(sp_target_found *found, void *arg, struct sp_error *err)
{
	struct sp_target target;
	uint64_t *pids = NULL;
	size_t n = 0;
	int r = read_pids(&pids, &n);

	if (r < 0)
		return sp_error_set(err, r, "/proc", "%s", strerror(-r));
	for (size_t i = 0; i < n; i++) {
		if (sp_target_open(&target, pids[i], NULL) == 0)
			found(arg, &target);
		sp_target_close(&target);
	}
	free(pids);
	return 0;
}

struct written {
	struct stat file;
	bool is_written;
};

static void compare_file(void *arg, const struct sp_target *target)
{
	struct written *w = arg;
	struct stat st;

	w->is_written |= fstat(target->fd, &st) == 0 &&
			 st.st_dev == w->file.st_dev &&
			 st.st_ino == w->file.st_ino;
}

bool sp_target_is_written(const char *path)
{
	struct written w = {.is_written = false};

	if (stat(path, &w.file) != 0 ||
	    sp_target_list(compare_file, &w, NULL) < 0)
		return true;
	return w.is_written;
}
