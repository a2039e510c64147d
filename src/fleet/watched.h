/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * The profiles of a watched directory, and those that are kept while the
 * database cannot be reached (the backlog).  The backlog is a second hard link
 * of each such file, in DIR/.sampleprof-backlog.  It costs nothing while the
 * first name exists, and keeps the profile when that is deleted.  Files are
 * identified by their inode, so both names are one file.
 */

enum sp_watched_state {
	SP_WATCHED_ENDED,   /* its end was recorded */
	SP_WATCHED_RUNNING, /* its process is visible from here */
	SP_WATCHED_SILENT,  /* killed, or in another namespace of processes */
};

struct sp_watched {
	dev_t dev;
	ino_t ino;
	char *path; /* to read it by */
	char *link; /* its name in the backlog; NULL: it is not kept */
	uint64_t disk_bytes;
	struct timespec
		mtime; /* at the last look, as are `bytes` and `n_links` */
	off_t bytes;
	nlink_t n_links;
	bool is_there; /* at the last look */
	/* The state of sending it; all zero for a new file. */
	bool is_sent;    /* some state of it is in the database */
	bool is_refused; /* it can not be sent before it changes */
	bool waits;      /* for a database that is away */
	enum sp_watched_state sent_state;
	struct timespec sent_mtime;
	off_t sent_bytes;
	struct timespec read_mtime; /* when it was last read to be sent */
	off_t read_bytes;
	unsigned int n_failures; /* since it was sent last */
	uint64_t wait_ns;        /* between two states of it */
	uint64_t due_ns;         /* time of the next one */
};

struct sp_watched_files {
	const char *dir;    /* as of sp_files_directory(), borrowed */
	char *backlog;      /* with a slash at its end */
	uint64_t max_bytes; /* limit of files that only the backlog holds */
	struct sp_watched **list;
	size_t n;
};

/* `dir` is borrowed. 0; -ENOMEM, or -EPERM if the backlog of that directory is
 * another user's, and *err. */
int sp_watched_init(struct sp_watched_files *files, const char *dir,
		    uint64_t max_bytes, struct sp_error *err);
void sp_watched_done(struct sp_watched_files *files);

/*
 * Read the directory and the backlog.  Calls `gone` for each file that was
 * there and has disappeared, and then frees it. 0; negative errno and *err, and
 * the list is unchanged.
 */
typedef void sp_watched_fn(void *arg, const struct sp_watched *file);
int sp_watched_look(struct sp_watched_files *files, sp_watched_fn *gone,
		    void *arg, struct sp_error *err);

/* The state of the process that writes it, now. */
enum sp_watched_state sp_watched_state(const struct sp_watched *file);

/* Link it into the backlog. 0, or negative errno and *err. */
int sp_watched_keep(struct sp_watched_files *files, struct sp_watched *file,
		    struct sp_error *err);

/* It was sent: remove it from the backlog. */
void sp_watched_release(const struct sp_watched_files *files,
			struct sp_watched *file);

/* Delete files that only the backlog holds, oldest first, until they have at
 * most max_bytes.  Calls `dropped` for each; the next look removes it from the
 * list. */
void sp_watched_limit(struct sp_watched_files *files, sp_watched_fn *dropped,
		      void *arg);

/* The name for messages: without directories, as in the watched directory. */
const char *sp_watched_name(const struct sp_watched *file);
