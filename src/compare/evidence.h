/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "compare/format.h"

/*
 * Keep what a check that did not pass was made of in result->evidence, a
 * directory that is made if it is not there: check.txt, check.json, and copies
 * of the files of both sides, "new-1-NAME", ..., "old-1-NAME", ...  What has
 * such a name is replaced.  0, or negative errno and *err.
 */
int sp_evidence_keep(const struct sp_result *result, const char *const *new,
		     size_t n_new, const char *const *old, size_t n_old,
		     struct sp_error *err);
