/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"

/*
 * The page that the options ask for, as what changed since their `base`: rows
 * of both sides, matched by names.  Several files of a side are one profile, as
 * on every page.  0; negative errno and *err, with nothing or a part written.
 * Write errors stay in the stream.
 */
int sp_views_print(FILE *out, const struct sp_options *options,
		   struct sp_error *err);
