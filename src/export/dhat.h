/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * DHAT's JSON, version 2: for each call path, what was allocated, its lifetime,
 * and what was alive at the peak and at the end (docs/exports.md).  Without
 * frees it has only what was allocated. 0; -EINVAL for a view that it does not
 * have, or -ENOMEM, and *err.
 */
int sp_export_dhat_write(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err);
