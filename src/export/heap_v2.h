/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/*
 * The text of gperftools' heap profiles, as jeprof, google-pprof and go tool
 * pprof read it: counts as sampled, with a row for each call stack and object
 * size, which these readers unbias themselves (docs/exports.md).  Without
 * frees both columns are what was allocated.
 *
 * 0; -EINVAL and *err if samples were drawn with several periods, of which the
 * text can only tell one; -ENOMEM and *err.
 */
int sp_export_heap_v2_write(FILE *out, const struct sp_aggregate *aggregate,
			    const struct sp_export_options *options,
			    struct sp_error *err);
