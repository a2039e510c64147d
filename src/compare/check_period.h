/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/error.h"

/*
 * The period for another run, by a file that says so: the JSON of a check, the
 * longest with which each of its limits could be decided, else that of its
 * runs; a baseline, that of its runs.  0; negative errno and *err.
 */
int sp_check_period_read(const char *path, uint64_t *ret_bytes,
			 struct sp_error *err);
