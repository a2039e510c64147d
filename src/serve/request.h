/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "symbols/symbol_cache.h"

/* A profile that is asked for: of a file, as `export pprof` would write it. */
struct sp_profile_request {
	const char *view, *path;
	uint64_t from_ms; /* since the start of the process; 0: all */
	/* Of a process that runs: now; 0: it has ended. */
	uint64_t to_ms;
};

/*
 * Write it to `out`.  Memory is proportional to what is alive and to distinct
 * stacks and sizes, also while the file is written.  0, or negative errno and
 * *err.  Without samples after from_ms it has none.
 */
int sp_profile_request_write(FILE *out, const struct sp_profile_request *asked,
			     struct sp_symbol_cache *symbols,
			     struct sp_error *err);
