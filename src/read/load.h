/* SPDX-License-Identifier: MIT */
#ifndef SP_READ_LOAD_H
#define SP_READ_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"

/* Profiles from files: whole, folded, or sample by sample. */

/* Called as the reader goes, to show progress: done <= total, in bytes. */
typedef void sp_progress_fn(void *arg, uint64_t done, uint64_t total);

/*
 * Read `path`.  0 and *ret_profile on success (also for a file that was torn
 * by a kill, is still being written, or is damaged after a good beginning: see
 * `damage`); negative errno and *err otherwise.  `progress` may be NULL.
 */
int sp_profile_load(const char *path, sp_progress_fn *progress,
		    void *progress_arg, struct sp_profile **ret_profile,
		    struct sp_error *err);

enum sp_sample_event {
	/* It is alive from now on: until it has ended freed_ns is SP_NEVER. */
	SP_SAMPLE_BORN,
	/* All is known of it: it has ended, or the file does not tell more. */
	SP_SAMPLE_SETTLED,
};

/* 0 or negative errno, which ends the walk. */
typedef int sp_sample_fn(void *arg, enum sp_sample_event event,
			 const struct sp_sample *sample);

/*
 * What is asked of a folded profile: what was allocated in the whole run, what
 * is alive at the end, the peak, and besides, unless it is zero:
 */
struct sp_fold_plan {
	double confidence; /* of the limits of the peak, in (0, 1) */
	/* Lifetimes (sp_lifetimes()): those of a group are within 1/128 of each
	 * other. */
	bool has_lifetimes;
	/* Which samples were temporary, by limits as in struct sp_selection
	 * (stats/table.h); within_ns only without cuts. */
	bool has_temporary;
	uint64_t within_bytes;
	uint64_t within_ns;
	/* What is alive at these moments, ascending and distinct: of all times
	 * of a group the same of them are earlier. */
	const uint64_t *cuts; /* borrowed */
	size_t n_cuts;        /* <= SP_FOLD_CUTS_MAX */
	/* sp_timeline() of the whole run, with that many points: 0, or >= 2.
	 */
	size_t n_points;
	/* Is told of every sample, in the order of sp_profile_walk(). */
	sp_sample_fn *tell;
	void *tell_arg;
};

#define SP_FOLD_CUTS_MAX 511

/*
 * The same in memory that is proportional to what is alive and to distinct
 * stacks and sizes, where the file allows it (else the profile is not folded).
 */
int sp_profile_load_folded(const char *path, const struct sp_fold_plan *plan,
			   sp_progress_fn *progress, void *progress_arg,
			   struct sp_profile **ret_profile,
			   struct sp_error *err);

/*
 * Read the file of a folded profile again and tell `fn` of every sample, with
 * the positions that `profile` has.  Each is settled once: when it ends, in the
 * order of time, and those that are alive at the end afterwards, by ids.
 * Before, each that is alive for a nanosecond at least is born; at one moment
 * others end first.  Where no frees were recorded all are only settled, in the
 * order of the file.  0, what `fn` returned, or negative errno and *err, which
 * may come after any number of calls: -ESTALE if another file is there by now,
 * or `fn` said -EILSEQ.
 */
int sp_profile_walk(const struct sp_profile *profile, sp_sample_fn *fn,
		    void *arg, struct sp_error *err);

#endif
