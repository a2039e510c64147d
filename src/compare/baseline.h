/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "compare/summary.h"

/*
 * A baseline: runs as a small JSON file to be kept with the sources of the
 * program, sorted, one line for a call path, without addresses and lines
 * (docs/ci.md describes every key).
 */

/* A later version is refused; keys that are not known are not. */
#define SP_BASELINE_VERSION 1

/* Call paths of a view; beyond, those with fewest bytes lose their callers. */
#define SP_BASELINE_PATHS       2000
#define SP_BASELINE_PHASE_PATHS 500 /* of a phase, likewise */

/*
 * Write the runs of a side, all whole and of one program, with
 * SP_SUMMARY_LEVEL.  0, or -ENOMEM and *err.  Write errors stay in the stream.
 */
int sp_baseline_write(FILE *out, const struct sp_side *side,
		      struct sp_paths *paths, struct sp_error *err);

/*
 * Read a file that sp_baseline_write() made, or anybody: nothing in it is
 * trusted.  0, *ret_runs, each and the array to be freed, and *ret_n >= 1;
 * negative errno and *err, which names the line or the field.
 */
int sp_baseline_read(const char *path, struct sp_paths *paths,
		     struct sp_summary ***ret_runs, size_t *ret_n,
		     struct sp_error *err);

/* Does what a run says of itself add up?  0; -EINVAL and *err. */
int sp_baseline_check(const char *path, const struct sp_summary *run,
		      struct sp_error *err);

/* The views that a baseline has, one bit each. */
#define SP_BASELINE_VIEWS                                                      \
	(1u << SP_VIEW_ALLOC | 1u << SP_VIEW_LIVE | 1u << SP_VIEW_PEAK |       \
	 1u << SP_VIEW_TEMPORARY)
