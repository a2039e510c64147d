/* SPDX-License-Identifier: MIT */
#pragma once

#include "stats/table.h"
#include "support/test.h"

/* Every sample of a profile, summed up.  For the caller to free. */
static inline struct sp_table *table_of(const struct sp_profile *profile)
{
	struct sp_selection all;
	struct sp_table *table = NULL;
	struct sp_error err;

	sp_selection_init(&all);
	assert_int_equal(sp_table_new(profile, &all, &table, &err), 0);
	return table;
}
