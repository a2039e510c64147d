/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "export/format.h"
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

/* Sample types of pprof and OTLP. */
#define SP_ROW_TYPES_MAX 6

enum sp_row_figure {
	SP_ROW_ALLOC_COUNT,
	SP_ROW_ALLOC_BYTES,
	SP_ROW_INUSE_COUNT,
	SP_ROW_INUSE_BYTES,
	SP_ROW_VARIANCE, /* of the bytes of the default type */
	SP_ROW_SAMPLES,
};

/* The rows of an export whose values are whole numbers that add up. */
struct sp_export_rows {
	struct sp_row *rows; /* with a size of 0: of any size */
	size_t n_rows;
	size_t n_folded;   /* stacks that became SP_ROWS_OTHER */
	bool is_of_inuse;  /* the view shows what is alive */
	int64_t value_max; /* so that no sum overflows */
	uint64_t seed;
	/* In Go's order; those in use only if the profile has frees, the last
	 * two with options->pprof_error. */
	struct {
		const char *name, *unit;
		enum sp_row_figure figure;
	} types[SP_ROW_TYPES_MAX];
	size_t n_types;
};

/* The part and the most samples are those of the options.  0, and ret->rows to
 * be freed (free()); -ENOMEM and *err. */
int sp_export_rows_new(const struct sp_analysis *analysis,
		       const struct sp_export_options *options,
		       struct sp_export_rows *ret, struct sp_error *err);

/* A value of that row for each type: estimates rounded by sp_export_round(). */
void sp_export_rows_values(const struct sp_export_rows *rows, size_t i,
			   uint64_t values[SP_ROW_TYPES_MAX]);
