/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Follow the profiles of a directory, and put into a database what is new.
 *
 * The directory is polled: profiles are written through memory mappings, of
 * which neither inotify nor a network file system tells.  What was sent is
 * known by the database alone, so that nothing counts twice, whenever this or
 * the database is killed.
 */

#define SP_WATCH_INTERVAL_NS   10000000000ull
#define SP_WATCH_RUNNING_NS    60000000000ull
#define SP_WATCH_BACKLOG_BYTES (1ull << 30)

struct sp_watch_options {
	const char *url;
	const char *dir;        /* as of sp_files_directory(), borrowed */
	uint64_t interval_ns;   /* between two looks at the directory */
	uint64_t running_ns;    /* between two states of a process that runs;
				 * 0: only what has ended is sent */
	uint64_t backlog_bytes; /* limit of what is kept for a database that
				 * is away after it was deleted */
};

/*
 * Until SIGINT or SIGTERM, which are blocked.  Writes a line to `log` for each
 * thing that happens.  0; negative errno and *err: the directory or the
 * database cannot be used at the start (a server that is away can be).
 */
int sp_watch_run(const struct sp_watch_options *options, FILE *log,
		 struct sp_error *err);
