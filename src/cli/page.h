/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"
#include "model/profile.h"
#include "read/load.h"

/*
 * What the options ask for of a profile, as one text: the report, its timeline
 * or its sizes, for people, as JSON or as CSV.  `progress` may be NULL.  0;
 * negative errno and *err, with nothing or a part written.  Write errors stay
 * in the stream.
 */
int sp_page_print(FILE *out, const struct sp_profile *profile,
		  const struct sp_options *options, sp_progress_fn *progress,
		  void *progress_arg, struct sp_error *err);
