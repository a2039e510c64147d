/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/aggregate.h"

/*
 * A line with one estimate and its share, for pages that have a name or more
 * behind it:
 *
 *         526 MiB [495, 558] MiB  38.1%  main  (app)
 */
struct sp_view_rows {
	FILE *out;
	double whole; /* bytes that shares are shares of */
	double confidence;
	bool has_few;   /* a row is marked with "~" */
	bool has_bound; /* a row is marked with "<" */
};

/* The line above such lines. */
void sp_view_row_head(const struct sp_view_rows *rows, const char *behind);

/* All but what stands behind it, and the two spaces before that. */
void sp_view_row_print(struct sp_view_rows *rows, struct sp_interval bytes,
		       uint64_t samples);

/* What the marks mean, as far as they were used. */
void sp_view_row_legend(const struct sp_view_rows *rows);

/* The name of a function, or of what else the granularity says, with its
 * module or its line; untrusted, in one line. */
void sp_view_row_name(FILE *out, enum sp_granularity granularity,
		      const struct sp_aggregate_function *f);

/* What n rows are called: "functions", "file", ... */
const char *sp_view_row_noun(enum sp_granularity granularity, uint64_t n);

/* "of what was allocated", ...: what shares of a view are shares
 * of. */
const char *sp_view_row_whole(enum sp_view view);
