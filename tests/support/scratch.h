/* SPDX-License-Identifier: MIT */
#ifndef SP_TESTS_SCRATCH_H
#define SP_TESTS_SCRATCH_H

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

#endif
