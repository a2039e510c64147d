/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/analysis.h"

/*
 * The samples of an analysis for the page: the fewest rows that give, for each
 * part of the run and each view, the same figures as the samples.
 */

/* Parts of equal length that the run is divided into, and the least number of
 * them before call stacks are folded. */
#define SP_HTML_BINS_MAX 200u
#define SP_HTML_BINS_MIN 25u

/* Size and period of an object: all that estimates depend on. */
struct sp_html_kind {
	uint64_t size_bytes;
	uint32_t period; /* position in `periods` */
	bool is_sure;    /* sampled for certain (E16), or period 1 */
};

enum sp_html_flag {
	/* Alive at the peak, and it chose the moment (E43). */
	SP_HTML_CHOSE_PEAK = 1,
	SP_HTML_IS_LEAK = 2,
	SP_HTML_IS_TEMPORARY = 4,
	SP_HTML_AT_END = 8,
	/* Born when other samples were discarded: it counts for live bytes, not
	 * for allocated ones (sp_sample_is_survivor()). */
	SP_HTML_IS_SURVIVOR = 16,
	SP_HTML_AT_PEAK = 32, /* alive at the peak, which it measures */
};

#define SP_HTML_FLAG_BITS 6

/*
 * `count` samples.  Edge e of the bins is point e of sp_timeline() with n_bins
 * + 1 points; samples before the first edge are in the first bin.  A sample was
 * born between edges b and e, and is alive at e, if b <= born < e, and freed is
 * 0 or freed - 1 > e.  At the last edge SP_HTML_AT_END decides instead, because
 * objects outlive their process there (sp_sample_gone_ns()).
 */
struct sp_html_cell {
	uint32_t stack; /* number of a path */
	uint32_t kind;
	uint16_t born;  /* the bin */
	uint16_t freed; /* 0: never; else 1 + the first edge at or after its
			 * end */
	uint8_t flags;  /* enum sp_html_flag */
	uint64_t count;
};

struct sp_html_cells {
	unsigned int n_bins;
	struct sp_html_kind *kinds; /* distinct, most frequent first */
	size_t n_kinds;
	uint64_t *periods; /* distinct, in bytes */
	size_t n_periods;
	struct sp_html_cell *cells; /* sorted by all columns; distinct */
	size_t n_cells;
};

/* With more rows the page would exceed some 10 MB. */
#define SP_HTML_CELLS_MAX 1000000u
#define SP_HTML_KINDS_MAX 500000u

/*
 * All samples that were born in the analysis' time. path_of_stack[] has the
 * path of each of profile->stacks.  There are as many bins as fit into
 * cells_max cells, and at least SP_HTML_BINS_MIN, even with more cells.
 * tail_ns: objects that are alive at the end and older are leaks. 0 and
 * *ret_cells, to be freed by the caller with sp_html_cells_done(); -ENOMEM or
 * -E2BIG (kinds) and *err.
 */
int sp_html_cells_init(struct sp_html_cells *cells,
		       const struct sp_analysis *analysis,
		       const uint32_t *path_of_stack, uint64_t tail_ns,
		       size_t cells_max, struct sp_error *err);

/* Replace each cell's path by path_of_path[path], and merge equal cells. */
void sp_html_cells_renumber(struct sp_html_cells *cells,
			    const uint32_t *path_of_path);

void sp_html_cells_done(struct sp_html_cells *cells);
