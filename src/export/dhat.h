/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * DHAT's JSON, version 2: what was allocated at each call path, for how long,
 * and what was alive at the peak and at the end (docs/exports.md).  Without
 * frees only what was allocated.  Errors: -EINVAL for a view, -ENOMEM.
 */
int sp_export_dhat_write(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err);
