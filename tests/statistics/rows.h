/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Rows of a report that share a size class with others: what is true of the
 * runs in which the row is shown, computed without random numbers.
 */
#define ROW_LEVELS 5
extern const double row_levels[ROW_LEVELS]; /* 0.9 to 0.9999 */

struct row_of_class {
	uint64_t size_bytes;
	double class_periods; /* bytes of the class, in periods */
	double row_periods;   /* bytes of the row */
};

struct row_result {
	double shown; /* probability that the row has a sample */
	/* Probability that the limit is beyond the truth: of the lower one if
	 * the row is shown, of the upper one in all. */
	double too_high[ROW_LEVELS];
	double too_low[ROW_LEVELS];
	double width; /* mean at 95 %, in periods */
};

/* False if there is no such whole number of objects. */
bool measure_row(const struct row_of_class *row, struct row_result *ret);
