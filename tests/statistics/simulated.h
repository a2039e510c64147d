/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/rng.h"
#include "stats/estimator.h"

/* Rows of the study that are simulated: how often intervals hold, by level. */
#define SIMULATED_LEVELS 5
extern const double simulated_levels[SIMULATED_LEVELS]; /* 0.9 to 0.9999 */

/* What is asked of each run: some intervals, of which some hold.  Sums over the
 * runs, also of squares, since the intervals of one run go together. */
struct score {
	double asked, held;
	double asked2, held2, both;
};

/* One run's.  A run that asks nothing does not count. */
void score_add(struct score *score, unsigned int asked, unsigned int held);

/* One line for each level.  With a claim at least the level has to hold. */
void score_put(const char *program, double samples, const char *what,
	       unsigned int runs, const struct score of_level[SIMULATED_LEVELS],
	       bool has_claim);

/* What has to be true of each run is not. */
void claim_fails(const char *program, const char *what);

/* Numbers of any magnitude are sums with rounding errors. */
bool interval_holds(struct sp_interval interval, double truth);

/* Objects that are missed before the next sample; `x` of (E2). */
double missed_objects(struct sp_rng *rng, double x);

/* The parts; `scale` is what the numbers of runs are divided by. */
void simulate_tables(unsigned int scale);
void simulate_peaks(unsigned int scale);
void simulate_sums(unsigned int scale);
void simulate_periods(unsigned int scale);
