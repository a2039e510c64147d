/* SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/patience.h"

#define PATH_BYTES 4200
#define STAT_BYTES 1024

/* ---- files ---- */

static int open_path(const char *format, va_list args)
{
	char path[PATH_BYTES];
	int fd;

	if (vsnprintf(path, sizeof(path), format, args) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

long sp_proc_read(char *text, size_t size, const char *path_format, ...)
{
	ssize_t n = 1;
	size_t have = 0;
	va_list args;
	long r = 0;
	int fd;

	va_start(args, path_format);
	fd = open_path(path_format, args);
	va_end(args);
	while (fd >= 0 && n > 0 && have < size - 1) {
		n = read(fd, text + have, size - 1 - have);
		r = n < 0 ? -errno : 0;
		have += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0)
		r = fd;
	else
		close(fd);
	text[r < 0 ? 0 : have] = '\0';
	return r < 0 ? r : (long)have;
}

static FILE *stream_of(int fd)
{
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !in)
		close(fd);
	return in;
}

FILE *sp_proc_stream(int dir, const char *name)
{
	return stream_of(openat(dir, name, O_RDONLY | O_CLOEXEC));
}

FILE *sp_proc_open_file(const char *path_format, ...)
{
	va_list args;
	int fd;

	va_start(args, path_format);
	fd = open_path(path_format, args);
	va_end(args);
	return stream_of(fd);
}

bool sp_proc_next(struct sp_proc_lines *l)
{
	if (l->in && getline(&l->line, &l->room, l->in) > 0)
		return true;
	sp_proc_end_lines(l);
	return false;
}

void sp_proc_end_lines(struct sp_proc_lines *l)
{
	free(l->line);
	if (l->in)
		fclose(l->in);
	*l = (struct sp_proc_lines){.in = NULL};
}

/* ---- threads ---- */

/* The fields of a file stat behind the name, which may be anything: of a thread
 * or, if tid is 0, of the process.  NULL: there is no such file. */
static const char *read_stat(uint64_t pid, uint64_t tid, char text[STAT_BYTES])
{
	const char *name_end;

	if (tid)
		sp_proc_read(text, STAT_BYTES,
			     "/proc/%" PRIu64 "/task/%" PRIu64 "/stat", pid,
			     tid);
	else
		sp_proc_read(text, STAT_BYTES, "/proc/%" PRIu64 "/stat", pid);
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

/* 0: there is none. */
static char read_state(uint64_t pid, uint64_t tid)
{
	char text[STAT_BYTES];
	const char *fields = read_stat(pid, tid, text);

	return fields ? fields[0] : '\0';
}

static bool is_alive(char state)
{
	return state && !strchr("ZXx", state);
}

/* Only of a main thread does the kernel keep what has ended. */
static pid_t find_living_thread(uint64_t pid)
{
	char path[64];
	struct dirent *entry;
	pid_t found = -ESRCH;
	uint64_t tid;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", pid);
	tasks = opendir(path);
	while (tasks && found < 0 && (entry = readdir(tasks)) != NULL)
		if (sp_parse_u64(entry->d_name, &tid) &&
		    is_alive(read_state(pid, tid)))
			found = (pid_t)tid;
	if (tasks)
		closedir(tasks);
	return found;
}

pid_t sp_proc_thread(uint64_t pid)
{
	const char state = read_state(pid, pid);

	if (!state)
		return -ENOENT;
	return is_alive(state) ? (pid_t)pid : find_living_thread(pid);
}

/* The number of a line "NAME:\t123 ..." of status; false: there is none. */
static bool read_status(int dir, const char *name, uint64_t *ret)
{
	struct sp_proc_lines l = {.in = sp_proc_stream(dir, "status")};
	const size_t n = strlen(name);
	bool is_found = false;

	while (!is_found && sp_proc_next(&l))
		is_found = strncmp(l.line, name, n) == 0 && l.line[n] == ':' &&
			   sscanf(l.line + n + 1, "%" SCNu64, ret) == 1;
	sp_proc_end_lines(&l);
	return is_found;
}

int sp_proc_open(uint64_t pid)
{
	const pid_t tid = sp_proc_thread(pid);
	uint64_t group = pid;
	char path[64];
	int dir;

	if (tid < 0)
		return tid;
	snprintf(path, sizeof(path), "/proc/%ld", (long)tid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	/* Another process may have the number of a thread by now. */
	if ((uint64_t)tid == pid ||
	    (read_status(dir, "Tgid", &group) && group == pid))
		return dir;
	close(dir);
	return -ESRCH;
}

char sp_proc_state(uint64_t pid)
{
	const pid_t tid = sp_proc_thread(pid);

	return tid < 0 ? '\0' : read_state(pid, (uint64_t)tid);
}

uint64_t sp_proc_parent(uint64_t pid)
{
	char text[STAT_BYTES];
	const char *fields = read_stat(pid, 0, text);
	uint64_t parent = 0;

	if (!fields || sscanf(fields, "%*c %" SCNu64, &parent) != 1)
		return 0;
	return parent;
}

/* ---- who it is ---- */

bool sp_proc_start_ticks(uint64_t pid, uint64_t *ret)
{
	char text[STAT_BYTES];
	const char *fields = read_stat(pid, 0, text); /* from field 3 on */

	for (int field = 3; fields && field < 22; field++) {
		fields = strchr(fields, ' ');
		fields = fields ? fields + 1 : NULL;
	}
	return fields && sscanf(fields, "%" SCNu64, ret) == 1;
}

/* The last number is the innermost namespace's. */
static void take_own_pid(const char *numbers, uint64_t *ret)
{
	int n = 0;

	while (sscanf(numbers, "%" SCNu64 "%n", ret, &n) == 1)
		numbers += n;
}

/* Ticks count from another moment in another time namespace. */
static bool has_our_clock(uint64_t pid)
{
	char path[64], theirs[64], ours[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/ns/time", pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/ns/time", ours, sizeof(ours));
	return n <= 0 || m <= 0 ||
	       (n == m && memcmp(theirs, ours, (size_t)n) == 0);
}

bool sp_proc_identify(uint64_t pid, struct sp_proc_identity *ret)
{
	struct sp_proc_lines l = {.in = NULL};
	bool has_uids = false;

	*ret = (struct sp_proc_identity){.own_pid = pid};
	if (!sp_proc_start_ticks(pid, &ret->start_ticks))
		return false;
	if (!has_our_clock(pid))
		ret->start_ticks = 0;
	l.in = sp_proc_open_file("/proc/%" PRIu64 "/status", pid);
	while (sp_proc_next(&l)) {
		if (strncmp(l.line, "NSpid:", 6) == 0)
			take_own_pid(l.line + 6, &ret->own_pid);
		has_uids |= sscanf(l.line, "Uid: %u %u %u %u", &ret->uids[0],
				   &ret->uids[1], &ret->uids[2],
				   &ret->uids[3]) == 4;
	}
	return has_uids;
}

bool sp_proc_is_other(const struct sp_proc_identity *identity)
{
	for (size_t i = 0; i < 4; i++)
		if (identity->uids[i] != geteuid())
			return true;
	return false;
}

/* ---- files that are mapped ---- */

bool sp_proc_parse_map(char *line, struct sp_proc_map *ret)
{
	int at = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64
		   " %n",
		   &ret->start, &ret->end, ret->mode, &ret->offset,
		   &ret->file.major, &ret->file.minor, &ret->file.inode,
		   &at) != 7 ||
	    !at)
		return false;
	line[strcspn(line, "\n")] = '\0';
	ret->path = line + at;
	return true;
}

bool sp_proc_map_is_written(const struct sp_proc_map *map)
{
	return strcmp(map->mode, "rw-s") == 0 && !map->offset &&
	       map->path[0] == '/';
}

bool sp_proc_next_map(struct sp_proc_lines *lines, struct sp_proc_map *ret)
{
	while (sp_proc_next(lines))
		if (sp_proc_parse_map(lines->line, ret))
			return true;
	return false;
}

/* The mapping at that address in this process. */
static int find_own_map(uint64_t at, struct sp_proc_file *ret)
{
	struct sp_proc_lines l = {.in = fopen("/proc/self/maps", "re")};
	struct sp_proc_map map;
	int r = l.in ? -ENOENT : -errno;

	while (r < 0 && sp_proc_next_map(&l, &map))
		if (at >= map.start && at < map.end) {
			*ret = map.file;
			r = 0;
		}
	sp_proc_end_lines(&l);
	return r;
}

int sp_proc_name_file(int fd, struct sp_proc_file *ret)
{
	/* A sealed memory file cannot be shared by who could write to it. */
	void *at = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, fd, 0);
	struct stat st;
	int r = -errno;

	/* By O_PATH it cannot be mapped.  Of a file that a process serves maps
	 * shows the same. */
	if (at == MAP_FAILED && r == -EBADF && sp_patience_know(fd, &st) == 0) {
		ret->major = major(st.st_dev);
		ret->minor = minor(st.st_dev);
		ret->inode = st.st_ino;
		return 0;
	}
	if (at == MAP_FAILED)
		return r;
	r = find_own_map((uint64_t)(uintptr_t)at, ret);
	munmap(at, 1);
	return r;
}

bool sp_proc_is_file(const struct sp_proc_file *a, const struct sp_proc_file *b)
{
	return a->major == b->major && a->minor == b->minor &&
	       a->inode == b->inode;
}

bool sp_proc_writes(int dir, const struct sp_proc_file *file)
{
	struct sp_proc_lines l = {.in = sp_proc_stream(dir, "maps")};
	struct sp_proc_map map;
	bool is_found = false;

	while (!is_found && sp_proc_next_map(&l, &map))
		is_found = sp_proc_map_is_written(&map) &&
			   sp_proc_is_file(&map.file, file);
	sp_proc_end_lines(&l);
	return is_found;
}
