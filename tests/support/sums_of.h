/* SPDX-License-Identifier: MIT */
#pragma once

#include "stats/sums.h"
#include "support/test.h"

/* Every sample of a profile, summed up.  For the caller to free. */
static inline struct sp_sums *sums_of(const struct sp_profile *profile)
{
	struct sp_selection all;
	struct sp_sums *sums = NULL;
	struct sp_error err;

	sp_selection_init(&all);
	assert_int_equal(sp_sums_new(profile, &all, &sums, &err), 0);
	return sums;
}
