/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "lab/trace.h"
#include "symbols/symbolizer.h"

/*
 * The trace of a program that was recorded with SAMPLEPROF_PERIOD=1, so that
 * nothing is missing.  Sites are functions; the focus is the one that allocated
 * most.  0 and *ret, to be freed by the caller; negative errno and *err: those
 * of sp_profile_load(), and -EINVAL if the profile is a sample, or has lost
 * something.
 */
int sp_lab_recorded(const char *path,
		    const struct sp_symbolizer_options *symbols,
		    struct sp_lab_trace *ret, struct sp_error *err);
