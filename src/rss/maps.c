/* SPDX-License-Identifier: MIT */
#include "rss/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/proc.h"

/* ---- files of /proc, which have no length ---- */

/* All of it, terminated, to be freed; NULL and errno. */
static char *read_file(int dir, const char *name)
{
	const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char *text = NULL, *grown;
	size_t n = 0, room = 0;
	ssize_t got = 1;

	if (fd < 0)
		return NULL;
	while (got > 0) {
		if (room - n < 2) {
			room = 2 * room + 65536;
			grown = realloc(text, room);
			if (!grown) {
				errno = ENOMEM;
				got = -1;
				break;
			}
			text = grown;
		}
		got = read(fd, text + n, room - n - 1);
		if (got > 0)
			n += (size_t)got;
	}
	if (got < 0) {
		const int error = errno;

		free(text);
		close(fd);
		errno = error;
		return NULL;
	}
	close(fd);
	text[n] = '\0';
	return text;
}

/* ---- smaps ---- */

/* A line that begins a mapping: "7f00-7f10 rw-p 00000000 00:00 0   [heap]". */
static bool parse_head(char *line, struct sp_rss_map *ret)
{
	char mode[5];
	int at = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64 "%n",
		   &ret->start, &ret->end, mode, &ret->inode, &at) != 4 ||
	    ret->end <= ret->start)
		return false;
	ret->can_read = mode[0] == 'r';
	ret->can_write = mode[1] == 'w';
	ret->can_execute = mode[2] == 'x';
	ret->is_shared = mode[3] == 's';
	ret->path = line + at + strspn(line + at, " ");
	return true;
}

/* "Rss:     12 kB" in bytes. */
static bool take_amount(const char *line, const char *name, uint64_t *ret)
{
	const size_t n = strlen(name);
	uint64_t kib;

	if (strncmp(line, name, n) != 0 || line[n] != ':' ||
	    sscanf(line + n + 1, "%" SCNu64, &kib) != 1)
		return false;
	*ret += kib * 1024;
	return true;
}

static void take_line(struct sp_rss_maps *maps, struct sp_rss_map *m,
		      const char *line)
{
	if (!m->inode && (take_amount(line, "Shared_Dirty", &maps->shared) ||
			  take_amount(line, "Shared_Clean", &maps->shared)))
		return;
	if (take_amount(line, "Rss", &m->rss) ||
	    take_amount(line, "Swap", &m->swap) ||
	    take_amount(line, "Anonymous", &m->anonymous) ||
	    take_amount(line, "AnonHugePages", &m->huge) ||
	    take_amount(line, "Shared_Hugetlb", &maps->hugetlb) ||
	    take_amount(line, "Private_Hugetlb", &maps->hugetlb))
		return;
	if (strncmp(line, "VmFlags:", 8) == 0)
		m->no_reserve = strstr(line, " nr") != NULL;
}

int sp_rss_maps_parse(char *text, struct sp_rss_maps *ret)
{
	struct sp_rss_map head;
	size_t room = 0;
	char *next;

	for (char *line = text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		memset(&head, 0, sizeof(head));
		if (!parse_head(line, &head)) {
			if (ret->n)
				take_line(ret, &ret->list[ret->n - 1], line);
			continue;
		}
		if (sp_array_reserve((void **)&ret->list, &room, ret->n,
				     sizeof(head)) < 0)
			return -ENOMEM;
		ret->list[ret->n++] = head;
	}
	for (size_t i = 0; i < ret->n; i++) {
		ret->rss += ret->list[i].rss;
		ret->swap += ret->list[i].swap;
	}
	return 0;
}

static void parse_status(const char *text, struct sp_rss_maps *ret)
{
	const char *at = strstr(text, "\nVmRSS:");

	if (at)
		take_amount(at + 1, "VmRSS", &ret->vm_rss);
	at = strstr(text, "\nThreads:");
	if (at)
		sscanf(at, "\nThreads: %" SCNu64, &ret->threads);
	if (strncmp(text, "Name:\t", 6) == 0)
		snprintf(ret->name, sizeof(ret->name), "%.*s",
			 (int)strcspn(text + 6, "\n"), text + 6);
}

static int explain_error(uint64_t pid, int error, struct sp_error *err)
{
	switch (error) {
	case EACCES:
	case EPERM:
		if (geteuid() == 0)
			return sp_error_set(
				err, -EACCES, NULL,
				"the kernel does not show the memory of "
				"process %" PRIu64
				" to this root: CAP_SYS_PTRACE is missing, as "
				"in a container, or a security module forbids "
				"it",
				pid);
		return sp_error_set(err, -EACCES, NULL,
				    "the memory of process %" PRIu64
				    " cannot be read: run as its user, or root",
				    pid);
	case ENOENT:
		return sp_error_set(err, -ESRCH, NULL,
				    "there is no process %" PRIu64, pid);
	case ESRCH:
		return sp_error_set(err, -ESRCH, NULL,
				    "process %" PRIu64 " has ended", pid);
	default:
		return sp_error_set(err, -error, NULL, "/proc/%" PRIu64 ": %s",
				    pid, strerror(error));
	}
}

/* 0 or -errno. */
static int read_maps(int dir, struct sp_rss_maps *ret)
{
	char *status;

	ret->texts = read_file(dir, "smaps");
	if (!ret->texts)
		return -errno;
	status = read_file(dir, "status");
	if (!status)
		return -errno;
	parse_status(status, ret);
	free(status);
	return sp_rss_maps_parse(ret->texts, ret);
}

int sp_rss_maps_read(uint64_t pid, struct sp_rss_maps *ret,
		     struct sp_error *err)
{
	const int dir = sp_proc_open(pid);
	int r = dir;

	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	if (dir >= 0) {
		r = read_maps(dir, ret);
		close(dir);
	}
	if (r == -ENOMEM)
		return sp_error_memory(err, NULL);
	if (r < 0)
		return explain_error(pid, -r, err);
	if (!ret->n)
		return sp_error_set(err, -ESRCH, NULL,
				    "process %" PRIu64
				    " has no memory of its own: it has ended, "
				    "or is a thread of the kernel",
				    pid);
	return 0;
}

void sp_rss_maps_free(struct sp_rss_maps *maps)
{
	free(maps->list);
	free(maps->texts);
	memset(maps, 0, sizeof(*maps));
}
