/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "serve/receiver.h"

/*
 * Sends what processes allocate to a server, in deltas (serve/deltas.h), and
 * what is alive.  Nothing is stored here while a server
 * is away: a delta that it did not take is part of the next one.
 */

#define SP_PUSH_INTERVAL_NS 15000000000ull

struct sp_push_options {
	struct sp_receiver_options to;
	/* Of a directory (as of sp_files_directory()) what its processes
	 * allocate from now on, until SIGINT or SIGTERM; or NULL. */
	const char *dir;
	/* Else of files what their processes have allocated, all of it, and do
	 * until they end. */
	const char *const *files;
	size_t n_files;
	uint64_t interval_ns; /* between two deltas of a process */
};

/* Writes a line to `log` for each thing that happens.  SIGINT and SIGTERM are
 * blocked.  0; negative errno and *err: not all of the files was sent, or that
 * is not known. */
int sp_push_run(const struct sp_push_options *options, FILE *log,
		struct sp_error *err);
