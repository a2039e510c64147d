/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/analysis.h"

/*
 * The samples of an analysis by call stack and object size, for formats that
 * have a row for each pair: the allocated ones, and those of them that are
 * alive.  Rows of one stack are neighbours, by ascending sizes.  Their
 * estimates add up to those of the report (stats/adjust.h).
 */
struct sp_row {
	uint32_t stack;      /* position in profile->stacks; SP_ROWS_OTHER */
	uint64_t size_bytes; /* of each object; 0: of several sizes */
	struct sp_acc alloc; /* at least one sample */
	struct sp_acc inuse; /* empty if none is alive */
};

/*
 * `alloc` has the samples of --view temporary, or in other views all samples of
 * the selected births, sizes and threads.  `inuse` has the samples of --view
 * live, peak or leaks, or in other views those alive at analysis->live_at_ns.
 * 0, *ret_rows, to be freed by the caller (free()), and *ret_n; or -ENOMEM and
 * *err.
 */
int sp_rows_new(const struct sp_analysis *analysis, struct sp_row **ret_rows,
		size_t *ret_n, struct sp_error *err);

/* The stack of a row for several stacks. */
#define SP_ROWS_OTHER UINT32_MAX

/*
 * Reduce the *n rows to at most `max`; 0: no limit.  First the sizes of each
 * stack become one row.  Then the stacks with fewest bytes (live bytes if
 * `by_inuse`) become one row with the stack SP_ROWS_OTHER. Returns the number
 * of stacks in that row.
 */
size_t sp_rows_fold(struct sp_row *rows, size_t *n, uint64_t max,
		    bool by_inuse);
