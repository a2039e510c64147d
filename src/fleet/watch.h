/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Follow the profiles of a directory, and put new data into a database.
 *
 * The directory is polled, because profiles are written through memory
 * mappings, and neither inotify nor a network file system reports such writes.
 * Only the database knows what was sent, so that nothing counts twice if this
 * process or the database is killed.
 */

#define SP_WATCH_INTERVAL_NS   10000000000ull
#define SP_WATCH_RUNNING_NS    60000000000ull
#define SP_WATCH_BACKLOG_BYTES (1ull << 30)

struct sp_watch_options {
	const char *url;
	const char *dir;      /* as of sp_files_directory(), borrowed */
	uint64_t interval_ns; /* between two looks at the directory */
	uint64_t running_ns; /* between two states of a running process; 0: only
				ended ones are sent */
	uint64_t backlog_bytes; /* limit for deleted files that are kept while
				   the database cannot be reached */
};

/*
 * Run until SIGINT or SIGTERM, which the caller has blocked.  Writes a line to
 * `log` for each event. 0; negative errno and *err if the directory or the
 * database cannot be used at the start.  A server that cannot be reached is no
 * error.
 */
int sp_watch_run(const struct sp_watch_options *options, FILE *log,
		 struct sp_error *err);
