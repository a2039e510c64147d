/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "paths/aggregate.h"

/*
 * -ENOENT and *err: no function of the aggregate matches the pattern, which
 * `option` took ("--focus"; "": a word); with those whose names are near, as
 * a mistyped word is.
 */
int sp_near_function_error(const struct sp_aggregate *aggregate,
			   const char *option, const char *pattern,
			   struct sp_error *err);
