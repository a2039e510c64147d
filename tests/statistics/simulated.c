/* SPDX-License-Identifier: MIT */
/*
 * Rows that are shown, peaks, and periods that change, at 90 to 99.99 %. False
 * alarm: 1e-6; 5 s.
 *
 * simulated [--full] [PART]: what holds in the tables that people read?  PART:
 * "tables", "peaks", "sums" or "periods".
 *
 * Claims, at 90, 95, 99, 99.9 and 99.99 %.  Of the rows that a report shows at
 * least that share contains the truth (E41); with --simultaneous all that it
 * shows hold in that share of the recordings (E19).  So do the peak's value and
 * its rows on single summits, level stretches and teeth (E25, E43, E47), and
 * totals and functions while the period is changed again and again (E9).  The
 * rows of a peak add up to its value in each run.  No claim is made for rows
 * that were picked by their number of samples.
 *
 * H0, for each line: at least the level holds.
 *
 * Statistics, from runs with fixed seeds: the number of intervals, or of runs,
 * that hold, binomial at worst.
 *
 * alpha: a number that is less than 1e-9 likely under H0: below 1e-6 for all
 * lines together, for fresh seeds.
 *
 * Power of the short form, at 250 intervals: 0.80 instead of 0.95 is rejected
 * with probability 0.98; of the full form, at 5000: 0.93 with 0.98.
 *
 * Prints a line for each; tests/statistics/study/run makes of them the tables
 * of docs/measurements.txt.
 */
#include "simulated.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stats/special.h"

#define ALPHA       1e-9
#define SHORT_SCALE 20
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

const double simulated_levels[SIMULATED_LEVELS] = {0.9, 0.95, 0.99, 0.999,
						   0.9999};

static const struct {
	const char *name;
	void (*simulate)(unsigned int scale);
} parts[] = {
	{"tables", simulate_tables},
	{"peaks", simulate_peaks},
	{"sums", simulate_sums},
	{"periods", simulate_periods},
};

static unsigned int failures;

void score_add(struct score *score, unsigned int asked, unsigned int held)
{
	const double a = asked, h = held;

	score->asked += a;
	score->held += h;
	score->asked2 += a * a;
	score->held2 += h * h;
	score->both += a * h;
}

/* Of the share that holds, with runs as what is independent. */
static double standard_error(const struct score *s)
{
	const double share = s->held / s->asked;
	const double squares =
		s->held2 - 2 * share * s->both + share * share * s->asked2;

	return sqrt(fmax(squares, 0)) / s->asked;
}

/* P(so few hold) under H0 is not below alpha. */
static bool is_enough(const struct score *s, double claim)
{
	const double missed = s->asked - s->held;

	return !(missed > 0) ||
	       sp_special_beta_lower(missed, s->held + 1, 1 - claim) >= ALPHA;
}

void score_put(const char *program, double samples, const char *what,
	       unsigned int runs, const struct score of_level[SIMULATED_LEVELS],
	       bool has_claim)
{
	for (unsigned int l = 0; l < SIMULATED_LEVELS; l++) {
		const struct score *s = &of_level[l];
		const bool fails =
			has_claim && !is_enough(s, simulated_levels[l]);

		if (!(s->asked > 0))
			continue;
		failures += fails;
		printf("%c\t%s\t%g\t%s\t%g\t%u\t%.0f\t%.0f\t%.6f\t%d\n",
		       fails ? '!' : ' ', program, samples, what,
		       simulated_levels[l], runs, s->asked, s->held,
		       standard_error(s), has_claim);
	}
	fflush(stdout);
}

void claim_fails(const char *program, const char *what)
{
	failures++;
	printf("!\t%s\t\t%s\n", program, what);
}

bool interval_holds(struct sp_interval interval, double truth)
{
	return interval.lo <= truth * (1 + 1e-9) &&
	       truth * (1 - 1e-9) <= interval.hi;
}

double missed_objects(struct sp_rng *rng, double x)
{
	const double u = ((double)(sp_rng_next(rng) >> 11) + 0.5) * 0x1p-53;

	return floor(-log(u) / x);
}

int main(int argc, char **argv)
{
	const bool full = argc > 1 && !strcmp(argv[1], "--full");
	const char *only = argc > 1 + full ? argv[1 + full] : NULL;
	unsigned int done = 0;

	if (argc > 2 + full)
		return 2;
	puts("#\tprogram\tsamples\twhat\tlevel\truns\tasked\theld\terror\tclai"
	     "m");
	for (size_t i = 0; i < COUNT(parts); i++) {
		if (only && strcmp(only, parts[i].name) != 0)
			continue;
		parts[i].simulate(full ? 1 : SHORT_SCALE);
		done++;
	}
	printf("# %u failures\n", failures);
	if (!done)
		return 2;
	return failures ? 1 : 0;
}
