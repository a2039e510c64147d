/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"
#include "text/json.h"

/* Points of the timeline, ends included: every half percent of the run. */
#define SP_VIEW_TIMELINE_POINTS 201

/*
 * Everything in the profile as one JSON object, of a version up to
 * SP_VIEW_JSON_VERSION (view/view_json_frames.h); keys may be added.  Functions
 * are in the present order of the aggregate.  Figures that need frees are null
 * without them.
 *
 * Exact numbers are integers, estimates are numbers with a fraction or an
 * exponent.  The seed is a string, because most JSON readers lose the low bits
 * of a 64-bit number.  Strings: see sp_json_string().
 *
 * 0 or -ENOMEM and *err, with nothing written.  Write errors stay in the
 * stream.
 */
int sp_view_json_write(FILE *out, const struct sp_aggregate *aggregate,
		       unsigned int version, struct sp_error *err);
