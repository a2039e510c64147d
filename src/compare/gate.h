/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "compare/gate_options.h"

/*
 * The commands diff and check, from the names of files to what is written.
 * Write errors of `out` stay in the stream.
 */

/* 0; negative errno and *err, with nothing or a part written. */
int sp_gate_diff(FILE *out, const struct sp_gate_options *options,
		 struct sp_error *err);

/*
 * Also writes the files that the options name.  0 and *ret_verdict; negative
 * errno and *err.  With --update-baseline the verdict is PASS once the baseline
 * is written, or CANNOT_TELL and *err says why it is not.
 */
int sp_gate_check(FILE *out, const struct sp_gate_options *options,
		  enum sp_verdict *ret_verdict, struct sp_error *err);
