/* SPDX-License-Identifier: MIT */
/*
 * Limits on exact totals of programs whose noise has a heavy tail: false
 * alarms. False alarm: 2e-5; 9 s.
 *
 * Claim.  A limit on an exact total calls at most 1 in 200 programs that did
 * not change a regression, also if what a run allocates has a heavy tail (E28,
 * E45): normal, log-normal, sums of Pareto's law.  With one new run at most 1
 * in 100, if sampling is seen as well, and each run is one value of Pareto's
 * law.
 *
 * H0: 0.005 at worst.  Statistic: alarms in 4000 pairs of fixed seeds, more
 * than 44 of which have probability 1e-6; fifteen statistics.  Of 0.01 more
 * than 73 have; nine statistics.  Power: a rate of 0.02 is rejected with
 * probability 1 - 1e-4.  A mutant without (E45) is.
 */
#include <math.h>

#include "base/rng.h"
#include "stats/compare.h"
#include "support/draw.h"
#include "support/test.h"

#define RUNS 8

static struct sp_rng rng;

/* What a run of a program allocates whose objects, or numbers of them, have a
 * heavy tail. */
static double total(int kind)
{
	double sum = 0;

	if (kind == 0)
		return 1 + 0.1 * draw_normal(&rng);
	if (kind == 1)
		return exp(draw_normal(&rng));
	for (int i = 0; i < 100; i++)
		sum += pow(sp_lab_uniform(&rng), -1 / 1.5);
	return sum;
}

TEST(totals_with_tails)
{
	static const unsigned int runs[][2] = {
		{3, 1}, {5, 1}, {5, 5}, {3, 2}, {8, 2}};
	static const char *const kinds[] = {"normal", "log-normal",
					    "sums of Pareto 1.5"};
	const struct sp_allowance none = {0};

	for (int kind = 0; kind < 3; kind++)
		for (int i = 0; i < 5; i++) {
			unsigned int alarms = 0;

			for (int pair = 0; pair < 4000; pair++) {
				double values[2][RUNS];
				struct sp_runs sides[2];

				for (int s = 0; s < 2; s++) {
					for (unsigned int k = 0; k < runs[i][s];
					     k++)
						values[s][k] = total(kind);
					sp_runs_exact(&sides[s], values[s],
						      runs[i][s]);
				}
				alarms += sp_change_up(&sides[0], &sides[1],
						       &none, NULL, 0.99) ==
					  SP_CHANGE_BEYOND;
			}
			print_message("%s, %u runs and %u: %u alarms in 4000 "
				      "pairs, at most 20 expected\n",
				      kinds[kind], runs[i][0], runs[i][1],
				      alarms);
			if (alarms > 44)
				printf("! alarms of exact totals\n");
			assert_true(alarms <= 44);
		}
}

/* What is alive in a run, of 1500 samples on average: the logarithm's standard
 * deviation is `spread`. */
static struct sp_acc alive(double spread)
{
	static const struct sp_law_used plain;
	const double mean = 1500 * pow(sp_lab_uniform(&rng), -spread);
	const double seen = mean + sqrt(mean) * draw_normal(&rng);
	struct sp_acc acc;

	sp_acc_init(&acc, 4096);
	sp_acc_add_many(&acc, &plain, 1, (uint64_t)seen, 0, 4096);
	return acc;
}

TEST(samples_with_tails)
{
	static const unsigned int olds[] = {3, 5, 8};
	static const double spreads[] = {0.03, 0.06, 0.1};
	const struct sp_allowance none = {0};

	for (int i = 0; i < 9; i++) {
		const unsigned int n = olds[i / 3];
		unsigned int alarms = 0;

		for (int pair = 0; pair < 4000; pair++) {
			struct sp_acc values[RUNS];
			struct sp_runs old, new;

			for (unsigned int k = 0; k < n; k++)
				values[k] = alive(spreads[i % 3]);
			sp_runs_sampled(&old, values, n, false);
			values[0] = alive(spreads[i % 3]);
			sp_runs_sampled(&new, values, 1, false);
			alarms += sp_change_up(&old, &new, &none, NULL, 0.99) ==
				  SP_CHANGE_BEYOND;
		}
		print_message("Pareto, %g: %u runs and 1: %u alarms in 4000 "
			      "pairs, at most 40 expected\n",
			      spreads[i % 3], n, alarms);
		if (alarms > 73)
			printf("! alarms of samples\n");
		assert_true(alarms <= 73);
	}
}

int main(int argc, char **argv)
{
	sp_rng_init(&rng, 20261122, 0);
	/* of a mutant: what has to reject it */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return TEST_RUN(NULL, NULL);
}
