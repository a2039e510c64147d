/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/strategy.h"
#include "lab/trace.h"

/* One strategy, many times over the same trace, against the truth. */

#define SP_LAB_CONFIDENCE 0.95

/* An estimate over all runs, relative to the truth. */
struct sp_lab_figure {
	double bias;       /* mean - 1 */
	double bias_error; /* its standard error */
	double sd;         /* of the estimates around their mean */
	double coverage;   /* share of the intervals with the truth inside */
	double coverage_error;
};

struct sp_lab_result {
	const struct sp_lab_strategy *strategy;
	double parameter;             /* of all runs; see enum sp_lab_fit */
	double samples;               /* of a run, mean */
	double most_in_second;        /* of a run: most in one second, mean */
	struct sp_lab_figure total;   /* bytes of the program */
	struct sp_lab_figure focus;   /* bytes of trace->focus */
	struct sp_lab_figure objects; /* of the program; no coverage: NAN */
};

/* How often, and with what. */
struct sp_lab_trial {
	uint64_t samples; /* budget, 1 to half of the trace's allocations */
	uint64_t runs;    /* >= 2 */
	uint64_t seed;
};

/* 0 and *ret, or -ENOMEM. */
int sp_lab_try(const struct sp_lab_trial *trial,
	       const struct sp_lab_trace *trace,
	       const struct sp_lab_strategy *strategy,
	       struct sp_lab_result *ret);

/*
 * Is it biased beyond doubt, by more than a ten-thousandth?  If the mean is
 * more than five standard errors off, which happens to an unbiased one with a
 * probability of 5.7e-7.
 */
bool sp_lab_is_biased(const struct sp_lab_figure *figure);
