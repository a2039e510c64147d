/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "report/answer.h"

/*
 * -ENOENT and *err: no function of the aggregate matches the pattern, which
 * `option` took ("--focus"; "": a word); with those whose names are near, as
 * a mistyped word is.
 */
int sp_near_function_error(const struct sp_aggregate *aggregate,
			   const char *option, const char *pattern,
			   struct sp_error *err);

/*
 * A pattern of an analysed answer that keeps nothing is mistyped: -ENOENT and
 * *err, which proposes others.  0: the filter keeps something, or it is right
 * to keep nothing.  `fallback` is that of sp_answer_analyse().
 */
int sp_near_filter_error(const struct sp_answer *answer, enum sp_view fallback,
			 struct sp_error *err);
