/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "export/format.h"

/* Version of the lines below.  It rises if an old reader would misread them. */
#define SP_EXPORT_JSONL_VERSION 1

/*
 * JSON Lines: a header, the threads, the call stacks with their frames, then
 * one line for each sample of the view with its inclusion probability and
 * weights (docs/exports.md has every key).  Samples are in the order of their
 * ids, or for a folded profile in the order of sp_profile_walk().  Returns what
 * sp_profile_walk() returns.
 */
int sp_export_jsonl_write(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_export_options *options,
			  struct sp_error *err);
