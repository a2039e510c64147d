/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Other processes as /proc shows them: offline code only.  What a process can
 * choose is untrusted: its name, its arguments, and the paths of its files.
 */

/*
 * The number under which /proc shows the memory and the files of a process: its
 * own, or after the end of its main thread that of a thread which lives.
 * -ENOENT: there is no such process; -ESRCH: it has ended, and its parent has
 * not waited for it.
 */
pid_t sp_proc_thread(uint64_t pid);

/* That directory of /proc, for openat().  It stays with the process, whoever
 * has the number later.  A descriptor, or the errors above, or -errno. */
int sp_proc_open(uint64_t pid);

/* Read a file of such a directory; NULL and errno. */
FILE *sp_proc_stream(int dir, const char *name);

/* The whole of a small file, terminated; what does not fit is left out.  Its
 * length or -errno, and then "". */
long sp_proc_read(char *text, size_t size, const char *path_format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Lines, each with its line feed, while `in` is open; NULL is an empty file:
 *
 *	struct sp_proc_lines l = {.in = sp_proc_open_file(format, pid)};
 *
 *	while (sp_proc_next(&l))
 *		...l.line...
 *
 * The last call frees all; a loop that ends before that calls
 * sp_proc_end_lines().
 */
struct sp_proc_lines {
	FILE *in;
	char *line;
	size_t room;
};

FILE *sp_proc_open_file(const char *path_format, ...)
	__attribute__((format(printf, 1, 2)));
bool sp_proc_next(struct sp_proc_lines *lines);
void sp_proc_end_lines(struct sp_proc_lines *lines);

/* The state of the thread that stands for the process, such as 'T' for one that
 * is stopped; 0: it has gone. */
char sp_proc_state(uint64_t pid);

/* The process that began it, or took it over; 0: it has gone, or there is none
 * that we see. */
uint64_t sp_proc_parent(uint64_t pid);

/* Field 22 of /proc/PID/stat, which the first process has as 0; false: it has
 * gone. */
bool sp_proc_start_ticks(uint64_t pid, uint64_t *ret);

struct sp_proc_identity {
	uint64_t own_pid; /* the id that it has in its own namespace */
	/* As sp_proc_start_ticks(); 0: its clock is another than ours. */
	uint64_t start_ticks;
	uint32_t uids[4]; /* real, effective, saved, of files */
};

/* False: the process has gone. */
bool sp_proc_identify(uint64_t pid, struct sp_proc_identity *ret);

/* Is it of another user than us, in any way?  Then it may want to lead us
 * astray. */
bool sp_proc_is_other(const struct sp_proc_identity *identity);

/* A file as maps names it, which has another device than stat() on some file
 * systems. */
struct sp_proc_file {
	unsigned int major, minor;
	uint64_t inode;
};

bool sp_proc_is_file(const struct sp_proc_file *a,
		     const struct sp_proc_file *b);

/* How maps names the file, which is open for reading, or by O_PATH if a process
 * serves it.  0 or -errno. */
int sp_proc_name_file(int fd, struct sp_proc_file *ret);

/* A line of maps. */
struct sp_proc_map {
	uint64_t start, end, offset;
	char mode[8]; /* "rw-s" */
	struct sp_proc_file file;
	const char *path; /* into the line */
};

/* Cuts the line feed off.  False: it is no such line. */
bool sp_proc_parse_map(char *line, struct sp_proc_map *ret);

/* The next such line; as sp_proc_next(). */
bool sp_proc_next_map(struct sp_proc_lines *lines, struct sp_proc_map *ret);

/* Is it mapped from its beginning, shared and for writing, as a process maps
 * the profile that it writes? */
bool sp_proc_map_is_written(const struct sp_proc_map *map);

/* Does the process with that directory have the file mapped so? */
bool sp_proc_writes(int dir, const struct sp_proc_file *file);
