/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "compare/limit.h"
#include "compare/match.h"

/* The figure that a limit is about, of the runs of one side. */

/* The samples that it is made of. */
enum sp_view sp_amount_view(enum sp_limit_kind kind);

/*
 * The frames that the pattern of SITE or MODULE matches, ret->has to be freed
 * by the caller (free()); NULL for other kinds.  0; negative errno and *err.
 */
int sp_amount_frames(const struct sp_paths *paths, const struct sp_limit *limit,
		     struct sp_frame_set *ret, struct sp_error *err);

/*
 * `only` is of sp_amount_frames(); the runs have frees where the kind needs
 * them.  In the phase of that name; a run without it has nothing in it; NULL:
 * the whole run.  Not of SP_LIMIT_SITES and
 * SP_LIMIT_LEAK_RATE.  0 and *ret, or -ENOMEM.
 */
int sp_amount_sum(const struct sp_side *side, const struct sp_paths *paths,
		  enum sp_limit_kind kind, const char *phase,
		  const struct sp_frame_set *only, struct sp_runs *ret);
