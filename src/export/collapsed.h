/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * A line "outermost;...;innermost WEIGHT" for each distinct stack of function
 * names in the view, most bytes first.  Weights are weighted estimates, of
 * bytes or objects, rounded by sp_export_round().  A ';' in a name is a ':'.
 *
 * 0 or -ENOMEM and *err, with nothing written.
 */
int sp_export_collapsed_write(FILE *out, const struct sp_aggregate *aggregate,
			      const struct sp_export_options *options,
			      struct sp_error *err);
