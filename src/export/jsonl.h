/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/* Of the lines below; a new number where an old reader would go wrong. */
#define SP_EXPORT_JSONL_VERSION 1

/*
 * JSON Lines: a header, the threads, the call stacks with their frames, then
 * one line for each sample of the view with its inclusion probability and
 * weights (docs/exports.md has every key): by ids, or of a folded profile in
 * the order of sp_profile_walk().  As that returns.
 */
int sp_export_jsonl_write(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_export_options *options,
			  struct sp_error *err);
