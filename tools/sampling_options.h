/* SPDX-License-Identifier: MIT */
#pragma once

#include "cli/arguments.h"

/* How a process is sampled, for run and attach.  NULL: not given, so the
 * environment decides. */
struct sampling_options {
	const char *period;
	const char *rate;
};

/* The first options of both. */
extern const struct sp_argument_group sampling_group;

/* Words that --follow of both takes, for the completion. */
extern const struct sp_argument_values sampling_follow[];
