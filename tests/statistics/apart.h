/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "rows.h"

/*
 * Rows with objects in two size classes: most of them in a class of which they
 * are a share, and some periods of small objects in a large class.  What is
 * true of all runs, computed without random numbers.
 */
struct row_apart {
	uint64_t size_bytes;   /* of all objects of the first class */
	unsigned int objects;  /* of the class */
	unsigned int of_row;   /* of these */
	double most_elsewhere; /* periods in the other class: 0 to so many */
};

struct apart_result {
	/* Greatest probability that the upper limit is below the truth. */
	double too_low[ROW_LEVELS];
	double elsewhere[ROW_LEVELS]; /* periods where it is */
	/* Mean distance of the 95 % limits with nothing elsewhere, of runs with
	 * a sample, in periods. */
	double width;
};

void measure_apart(const struct row_apart *row, struct apart_result *ret);
