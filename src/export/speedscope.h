/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * speedscope's file format, with a profile of the bytes that were allocated and
 * one of those alive, or of the view if it is another; the view's is shown
 * first.  Weights are those of the collapsed format.  Frames are functions:
 * lines of one function are one frame.
 *
 * 0 or -ENOMEM and *err, with nothing written.
 */
int sp_export_speedscope_write(FILE *out, const struct sp_aggregate *aggregate,
			       const struct sp_export_options *options,
			       struct sp_error *err);
