/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "read/plan.h"

/* Profiles from files. */

/* Called as the reader goes, to show progress: done <= total. */
typedef void sp_progress_fn(void *arg, uint64_t done, uint64_t total);

#define SP_LOAD_FILES_MAX 65535u

/*
 * Read the files paths[0..n), n >= 1, as one stream of events in the order of
 * time: those of a program and its children, or of a fleet.  Times count from
 * the earliest start, by the wall clocks of the files; read/join.h says what
 * else becomes of several.
 *
 * 0 and *ret_profile on success (also for files that were torn by a kill, are
 * still being written, or are damaged after a good beginning: see `damage`);
 * negative errno and *err otherwise, -EINVAL if a file comes twice or was
 * sampled by another law than the first.  `progress` may be NULL.  Borrows the
 * path of a single file.
 *
 * Memory is proportional to what is alive, to distinct stacks and sizes and to
 * what the plan wants; of a file whose chunks are not in the order of time also
 * to its events.  Every sample is kept of files of which one is being written,
 * since it cannot be read twice (but see while_written of the plan), and where
 * the peak or the order of all samples is wanted of many that were written at
 * the same time.
 */
int sp_profile_read(const char *const *paths, size_t n,
		    const struct sp_plan *plan, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err);

/* What the headers of these files say, and their status of the time: path,
 * has_frees, window_ns and duration_ns of the profile that they would make; all
 * else is zero, and nothing of *ret to be freed.  Errors as above. */
int sp_profile_look(const char *const *paths, size_t n, struct sp_profile *ret,
		    struct sp_error *err);

/* With every sample: of several files, or of one. */
int sp_profile_load_many(const char *const *paths, size_t n,
			 sp_progress_fn *progress, void *progress_arg,
			 struct sp_profile **ret_profile, struct sp_error *err);
int sp_profile_load(const char *path, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err);
