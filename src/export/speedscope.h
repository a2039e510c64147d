/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * speedscope's file format, with one profile of allocated bytes and one of live
 * bytes, and one of the view if it is another.  The view's profile is shown
 * first.  Weights are those of the collapsed format.  A frame is a function,
 * whatever the line.
 *
 * 0 or -ENOMEM and *err, with nothing written.
 */
int sp_export_speedscope_write(FILE *out, const struct sp_aggregate *aggregate,
			       const struct sp_export_options *options,
			       struct sp_error *err);
