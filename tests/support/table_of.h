/* SPDX-License-Identifier: MIT */
#ifndef SP_TESTS_TABLE_OF_H
#define SP_TESTS_TABLE_OF_H

#include "stats/table.h"

/* Every sample of a profile, summed up; the cmocka headers come first.  For the
 * caller to free. */
static inline struct sp_table *table_of(const struct sp_profile *profile)
{
	struct sp_selection all;
	struct sp_table *table = NULL;
	struct sp_error err;

	sp_selection_init(&all);
	assert_int_equal(sp_table_new(profile, &all, &table, &err), 0);
	return table;
}

#endif
