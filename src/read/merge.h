/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "model/profile.h"
#include "read/load.h"

/*
 * Several profiles as one: those of a program and its children, or of a fleet.
 *
 *   - Every sample stays as it is, with its period, and is unbiased by itself;
 *     sums and variances of the files add up.
 *   - Modules are the same if path, build id, size and link address are;
 *     stacks if their frames and flags are.  Ids and threads are renumbered,
 *     files in the order given.
 *   - Times count from the earliest start, by the wall clocks of the files.
 *   - Totals, by class too if all files have them, and losses are added.
 *   - What was alive at the end of its process is alive "at the end"; at a
 *     moment of the run it is no more once its process has ended
 *     (sp_sample_gone_ns()).
 *   - RSS is the sum over the processes that were there, if all recorded it.
 *   - Facts are kept that all files agree on.
 */
#define SP_MERGE_FILES_MAX 65535u

/*
 * Read the files paths[0..n), n >= 1.  With one it is sp_profile_load(); with
 * more, also -EINVAL and *err if a file comes twice or was sampled by another
 * law than the first.  Not borrowed but for `paths` with n = 1.
 */
int sp_profile_load_many(const char *const *paths, size_t n,
			 sp_progress_fn *progress, void *progress_arg,
			 struct sp_profile **ret_profile, struct sp_error *err);
