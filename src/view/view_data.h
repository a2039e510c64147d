/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "report/aggregate.h"
#include "report/edges.h"
#include "report/listing.h"
#include "report/stats.h"

/*
 * The output of the commands tree, peek, list, traces and stats for programs:
 * one JSON object that begins like that of sp_view_json_write(), or a table as
 * in view/view_csv.h. docs/guide.md has the keys and columns.  Write errors
 * stay in the stream.
 */

/* The places of sp_tree_new(), in its order, with their depths.  0 or -ENOMEM
 * and *err, with nothing written. */
int sp_view_data_tree(FILE *out, const struct sp_aggregate *aggregate,
		      double share, bool as_csv, struct sp_error *err);

/* The n functions with their callers and callees. */
void sp_view_data_peek(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, bool as_csv);

void sp_view_data_list(FILE *out, const struct sp_aggregate *functions,
		       const struct sp_listings *listings, bool as_csv);

/* The n_max (0: all) stacks with most bytes, in that version of the JSON.  0 or
 * -ENOMEM and *err, with nothing written. */
int sp_view_data_traces(FILE *out, const struct sp_aggregate *aggregate,
			size_t n_max, unsigned int version,
			struct sp_error *err);

/* The n_max (0: all) functions with most bytes and with most objects.  Leaves
 * the aggregate in the latter order. */
void sp_view_data_stats(FILE *out, struct sp_aggregate *aggregate,
			const struct sp_stats *stats, size_t n_max);

/* CSV: every thread, in the order of the file. */
void sp_view_data_threads(FILE *out, const struct sp_analysis *analysis);
