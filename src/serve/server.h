/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Profiles of a directory over HTTP: for Prometheus, and for those that read
 * Go's pprof endpoints.  Nothing is changed.
 */

#define SP_SERVER_LISTEN          "127.0.0.1:9400"
#define SP_SERVER_KEEP_NS         600000000000ull
#define SP_SERVER_SECONDS_MAX     600u /* of a request */
#define SP_SERVER_CONNECTIONS     1000u
#define SP_SERVER_CONNECTIONS_MAX 50000u
#define SP_SERVER_HOSTS_MAX       16u

struct sp_server_options {
	const char *dir;    /* as of sp_files_directory(), borrowed */
	const char *listen; /* serve/address.h */
	uint64_t keep_ns;   /* see sp_metrics_new() */
	/* At a time, and requests that wait; others are told to come again. */
	unsigned int connections;
	/* Names that requests may have for this server, besides numbers,
	 * localhost and, unless only this host reaches it, the host's. */
	const char *hosts[SP_SERVER_HOSTS_MAX];
	size_t n_hosts;
	const char *token; /* what all have to know; NULL: nothing */
	bool no_classes;   /* no totals by size class in /metrics */
};

/*
 * Serve until SIGINT or SIGTERM, which are blocked.  on_ready(arg, port) is
 * called when connections are accepted.  0, or negative errno and *err.
 */
int sp_server_run(const struct sp_server_options *options,
		  void (*on_ready)(void *arg, unsigned int port), void *arg,
		  struct sp_error *err);
