/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "model/walk.h"
#include "read/plan.h"

/* Profiles from files. */

/* Called as the reader goes, to show progress: done <= total, in bytes. */
typedef void sp_progress_fn(void *arg, uint64_t done, uint64_t total);

/*
 * Read `path`.  0 and *ret_profile on success (also for a file that was torn
 * by a kill, is still being written, or is damaged after a good beginning: see
 * `damage`); negative errno and *err otherwise.  `progress` may be NULL.
 *
 * Memory is proportional to what is alive, to distinct stacks and sizes and to
 * what the plan wants; of a file whose chunks are not in the order of time also
 * to its events.  Of a file that is being written every sample is kept, since
 * it cannot be read twice.
 */
int sp_profile_read(const char *path, const struct sp_plan *plan,
		    sp_progress_fn *progress, void *progress_arg,
		    struct sp_profile **ret_profile, struct sp_error *err);

/* With every sample. */
int sp_profile_load(const char *path, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err);

/*
 * Tell `fn` of every sample of a profile (model/walk.h), by reading its file
 * again if it has groups.  0, what `fn` returned, or negative errno and *err,
 * which may come after any number of calls: -ESTALE if another file is there by
 * now, or `fn` said so.
 */
int sp_profile_walk(const struct sp_profile *profile, sp_sample_fn *fn,
		    void *arg, struct sp_error *err);
