/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/analysis.h"

/*
 * The samples of an analysis by call stack and object size, for formats that
 * have a row for each: those of what was allocated, and those of them that are
 * alive.  Rows of one stack are next to each other, by ascending sizes.  Their
 * estimates add up to those of the report (stats/adjust.h).
 */
struct sp_row {
	uint32_t stack;      /* position in profile->stacks; SP_ROWS_OTHER */
	uint64_t size_bytes; /* of each object; 0: of several sizes */
	struct sp_acc alloc; /* has samples */
	struct sp_acc inuse; /* empty if none is alive */
};

/*
 * In --view temporary `alloc` is what the view has, else everything of those
 * births, sizes and threads.  `inuse` is what --view live, peak or leaks has,
 * else what is alive at analysis->live_at_ns.  0, *ret_rows, to be freed by the
 * caller (free()), and *ret_n; or -ENOMEM and *err.
 */
int sp_rows_new(const struct sp_analysis *analysis, struct sp_row **ret_rows,
		size_t *ret_n, struct sp_error *err);

/* The stack of a row that stands for many. */
#define SP_ROWS_OTHER UINT32_MAX

/*
 * Make at most `max` rows of the *n; 0: no limit.  First the sizes of a stack
 * become one row, then all stacks but those with most bytes, alive if
 * `by_inuse`, become the row of SP_ROWS_OTHER.  Returns how many stacks it
 * stands for.
 */
size_t sp_rows_fold(struct sp_row *rows, size_t *n, uint64_t max,
		    bool by_inuse);
