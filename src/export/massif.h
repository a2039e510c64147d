/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/* Snapshots: one for each column of ms_print's graph, and the end. */
#define SP_EXPORT_MASSIF_POINTS 73

/*
 * Massif's text: live bytes over the run, with the tree of callers at the peak
 * and at the end (docs/exports.md).  Children add up to their parent, and the
 * tree to its snapshot.  Errors: -ENODATA without frees, -EINVAL for a view,
 * -ENOMEM.
 */
int sp_export_massif_write(FILE *out, const struct sp_aggregate *aggregate,
			   const struct sp_export_options *options,
			   struct sp_error *err);
