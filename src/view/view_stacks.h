/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"

/* The n_max (0: all) call stacks with most estimated bytes, innermost frame
 * first, with the lifetimes of their objects if frees were recorded.  Unless
 * `is_whole`, one line replaces functions of libraries that follow each other
 * (report/calls.h).  Nothing if there are no samples. 0 or -ENOMEM and *err. */
int sp_view_stacks_print(FILE *out, const struct sp_aggregate *aggregate,
			 size_t n_max, bool is_whole, struct sp_error *err);
