/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "compare/limit.h"
#include "compare/match.h"

/* The figure that a limit is about, for the runs of one side. */

/* The view whose samples make up the figure. */
enum sp_view sp_amount_view(enum sp_limit_kind kind);

/*
 * The frames that the pattern of SITE or MODULE matches.  The caller frees
 * ret->has (free()); it is NULL for other kinds. 0; negative errno and *err.
 */
int sp_amount_frames(const struct sp_paths *paths, const struct sp_limit *limit,
		     struct sp_frame_set *ret, struct sp_error *err);

/*
 * `only` comes from sp_amount_frames().  The runs must have frees if the kind
 * needs them.  `phase` names a phase, NULL: the whole run; a run without that
 * phase counts as 0.  Not for SP_LIMIT_SITES and SP_LIMIT_LEAK_RATE. 0 and
 * *ret, or -ENOMEM.
 */
int sp_amount_sum(const struct sp_side *side, const struct sp_paths *paths,
		  enum sp_limit_kind kind, const char *phase,
		  const struct sp_frame_set *only, struct sp_runs *ret);
