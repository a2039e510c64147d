/* SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/parse.h"

#define STAT_BYTES 1024

/* ---- threads ---- */

/* The fields of a file stat behind the name, which may be anything; NULL: there
 * is no such file. */
static const char *read_stat(const char *path, char text[STAT_BYTES])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, STAT_BYTES - 1);
	char *name_end;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

/* 0: there is none. */
static char read_state(uint64_t pid, uint64_t tid)
{
	char path[64], text[STAT_BYTES];
	const char *fields;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%" PRIu64 "/stat",
		 pid, tid);
	fields = read_stat(path, text);
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
	FILE *in = sp_proc_stream(dir, "status");
	const size_t n = strlen(name);
	char *line = NULL;
	bool is_found = false;
	size_t room = 0;

	while (in && !is_found && getline(&line, &room, in) > 0)
		is_found = strncmp(line, name, n) == 0 && line[n] == ':' &&
			   sscanf(line + n + 1, "%" SCNu64, ret) == 1;
	free(line);
	if (in)
		fclose(in);
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

FILE *sp_proc_stream(int dir, const char *name)
{
	const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !in)
		close(fd);
	return in;
}

char sp_proc_state(uint64_t pid)
{
	const pid_t tid = sp_proc_thread(pid);

	return tid < 0 ? '\0' : read_state(pid, (uint64_t)tid);
}

uint64_t sp_proc_parent(uint64_t pid)
{
	char path[64], text[STAT_BYTES];
	const char *fields;
	uint64_t parent = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	fields = read_stat(path, text);
	if (!fields || sscanf(fields, "%*c %" SCNu64, &parent) != 1)
		return 0;
	return parent;
}

/* ---- who it is ---- */

/* Field 22; the text begins with field 3. */
static bool find_start(const char *fields, uint64_t *ret)
{
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
	char path[64], text[STAT_BYTES], *line = NULL;
	bool has_uids = false;
	size_t room = 0;
	FILE *in;

	*ret = (struct sp_proc_identity){.own_pid = pid};
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	if (!find_start(read_stat(path, text), &ret->start_ticks))
		return false;
	if (!has_our_clock(pid))
		ret->start_ticks = 0;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/status", pid);
	in = fopen(path, "re");
	while (in && getline(&line, &room, in) > 0) {
		if (strncmp(line, "NSpid:", 6) == 0)
			take_own_pid(line + 6, &ret->own_pid);
		has_uids |= sscanf(line, "Uid: %u %u %u %u", &ret->uids[0],
				   &ret->uids[1], &ret->uids[2],
				   &ret->uids[3]) == 4;
	}
	free(line);
	if (in)
		fclose(in);
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

/* The mapping at that address in this process. */
static int find_own_map(uint64_t at, struct sp_proc_file *ret)
{
	FILE *in = fopen("/proc/self/maps", "re");
	struct sp_proc_map map;
	char *line = NULL;
	size_t room = 0;
	int r = -ENOENT;

	if (!in)
		return -errno;
	while (r < 0 && getline(&line, &room, in) > 0)
		if (sp_proc_parse_map(line, &map) && at >= map.start &&
		    at < map.end) {
			*ret = map.file;
			r = 0;
		}
	free(line);
	fclose(in);
	return r;
}

int sp_proc_name_file(int fd, struct sp_proc_file *ret)
{
	/* A sealed memory file cannot be shared by who could write to it. */
	void *at = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, fd, 0);
	int r;

	if (at == MAP_FAILED)
		return -errno;
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
	FILE *in = sp_proc_stream(dir, "maps");
	struct sp_proc_map map;
	bool is_found = false;
	char *line = NULL;
	size_t room = 0;

	while (in && !is_found && getline(&line, &room, in) > 0)
		is_found = sp_proc_parse_map(line, &map) &&
			   sp_proc_map_is_written(&map) &&
			   sp_proc_is_file(&map.file, file);
	free(line);
	if (in)
		fclose(in);
	return is_found;
}
