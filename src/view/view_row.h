/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/aggregate.h"

/*
 * A line with one estimate and its share.  The caller adds the name, or more:
 *
 *         526 MiB [495, 558] MiB  38.1%  main  (app)
 */
struct sp_view_rows {
	FILE *out;
	double whole; /* bytes that are 100 % */
	double confidence;
	bool has_few;   /* a row is marked with "~" */
	bool has_bound; /* a row is marked with "<" */
};

/* The heading of such lines. */
void sp_view_row_head(const struct sp_view_rows *rows, const char *behind);

/* Print the line up to, and without, the two spaces before the name. */
void sp_view_row_print(struct sp_view_rows *rows, struct sp_interval bytes,
		       uint64_t samples);

/* The meaning of the marks that were used. */
void sp_view_row_legend(const struct sp_view_rows *rows);

/* "  (module)", unless the name says it. */
void sp_view_row_module(FILE *out, const char *name, const char *module);

/* The name of a function, or other row of the granularity, with its module or
 * its line; untrusted text in one line. */
void sp_view_row_name(FILE *out, enum sp_granularity granularity,
		      const struct sp_aggregate_function *f);

/* The noun for n rows: "functions", "file", ... */
const char *sp_view_row_noun(enum sp_granularity granularity, uint64_t n);

/* The whole that a view's shares refer to: "of what was allocated", ... */
const char *sp_view_row_whole(enum sp_view view);
