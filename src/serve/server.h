/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Profiles of a directory over HTTP: for Prometheus, and for those that read
 * Go's pprof endpoints.  Nobody is asked for a password, and nothing is
 * changed.
 */

#define SP_SERVER_LISTEN      "127.0.0.1:9400"
#define SP_SERVER_KEEP_NS     600000000000ull
#define SP_SERVER_SECONDS_MAX 600u /* of a request */

struct sp_server_options {
	const char *dir;    /* as of sp_files_directory(), borrowed */
	const char *listen; /* HOST:PORT, [HOST]:PORT, a number each */
	uint64_t keep_ns;   /* see sp_metrics_new() */
};

/* Is that an address to listen on? */
bool sp_server_can_listen(const char *text);

/*
 * Serve until SIGINT or SIGTERM, which are blocked.  on_ready(arg, port) is
 * called when connections are accepted.  0, or negative errno and *err.
 */
int sp_server_run(const struct sp_server_options *options,
		  void (*on_ready)(void *arg, unsigned int port), void *arg,
		  struct sp_error *err);
