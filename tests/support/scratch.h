/* SPDX-License-Identifier: MIT */
#pragma once

#include "support/temp_path.h"

/* The one file of a test program: made by its group's set-up, and removed in
 * the end. */
static char scratch[128];

static inline int scratch_make(void **state)
{
	(void)state;
	return temp_path_make(scratch, sizeof(scratch));
}

static inline int scratch_remove(void **state)
{
	(void)state;
	return unlink(scratch);
}
