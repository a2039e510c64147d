/* SPDX-License-Identifier: MIT */
#include "apart.h"

#include <math.h>
#include <stdlib.h>

#include "stats/strata.h"
#include "program.h"

/* Samples of the row elsewhere, at most; bytes of the class there. */
#define SAMPLES_MAX     40
#define CLASS_ELSEWHERE 3000.0
#define SMALL_BYTES     64u
#define STEP            0.25
#define TOO_RARE        1e-10

static double of_objects(double k, double n, double x)
{
	if (k > n)
		return 0;
	return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) +
		   (k > 0 ? k * log(-expm1(-x)) : 0) - (n - k) * x);
}

/* Of small objects. */
static double of_periods(double k, double periods)
{
	return periods > 0 ? exp(k * log(periods) - periods - lgamma(k + 1))
			   : k < 1;
}

static void stratum_of(struct sp_stratum *s, uint8_t number, uint64_t size,
		       double part, double rest, double total_bytes)
{
	const struct sp_law_used law = {.always_large = true};

	*s = (struct sp_stratum){.number = number,
				 .smallest = {16, 0},
				 .total_bytes = total_bytes};
	sp_acc_init(&s->part, PERIOD);
	sp_acc_init(&s->rest, PERIOD);
	if (part > 0)
		sp_acc_add_many(&s->part, &law, size, (uint64_t)part, 0,
				PERIOD);
	if (rest > 0)
		sp_acc_add_many(&s->rest, &law, size, (uint64_t)rest, 0,
				PERIOD);
}

/* Of `a` samples of the row in its class, `b` of others there, and `k`. */
static struct sp_interval limits(const struct row_apart *row, double a,
				 double b, double k, double level)
{
	struct sp_stratum strata[2];

	stratum_of(&strata[0], 0, SMALL_BYTES, k, CLASS_ELSEWHERE - k,
		   CLASS_ELSEWHERE * PERIOD);
	stratum_of(&strata[1], 1, row->size_bytes, a, b,
		   (double)row->objects * (double)row->size_bytes);
	return sp_strata_bytes(strata, 2, 0, level);
}

/* The limits do not know how much there is elsewhere: one outcome of samples
 * is looked at once for all. */
static void score(const struct row_apart *row, double a, double b, double p,
		  double missed[][ROW_LEVELS], struct apart_result *ret)
{
	const double in_class = (double)row->of_row * (double)row->size_bytes;
	const struct sp_interval i = limits(row, a, b, 0, 0.95);

	ret->width += a > 0 ? p * (i.hi - i.lo) / PERIOD : 0;
	for (unsigned int k = a > 0 ? 0 : 1; k < SAMPLES_MAX; k++)
		for (unsigned int l = 0; l < ROW_LEVELS; l++) {
			const double hi =
				limits(row, a, b, k, row_levels[l]).hi;
			unsigned int n = 0;

			for (double e = 0; e <= row->most_elsewhere; e += STEP)
				if (hi < in_class + e * PERIOD - 1)
					missed[n++][l] += p * of_periods(k, e);
				else
					n++;
		}
}

void measure_apart(const struct row_apart *row, struct apart_result *ret)
{
	const double x = (double)row->size_bytes / PERIOD;
	const unsigned int others = row->objects - row->of_row;
	const size_t n = (size_t)(row->most_elsewhere / STEP) + 1;
	double(*missed)[ROW_LEVELS] = calloc(n, sizeof(*missed));

	if (!missed)
		abort();
	*ret = (struct apart_result){0};
	for (unsigned int a = 0; a <= row->of_row; a++)
		for (unsigned int b = 0; b <= others; b++) {
			const double p = of_objects(a, row->of_row, x) *
					 of_objects(b, others, x);

			if (p > TOO_RARE)
				score(row, a, b, p, missed, ret);
		}
	for (unsigned int l = 0; l < ROW_LEVELS; l++)
		for (size_t i = 0; i < n; i++)
			if (missed[i][l] > ret->too_low[l]) {
				ret->too_low[l] = missed[i][l];
				ret->elsewhere[l] = (double)i * STEP;
			}
	free(missed);
}
