/* SPDX-License-Identifier: MIT */
#include "exact.h"

#include <math.h>

#include "stats/estimator.h"
#include "program.h"

/* Numbers of samples that are less likely do not matter. */
#define TOO_RARE 1e-15

/* Adds `k` samples, which are 2^0, 2^1, ... of one merged. */
static void add_samples(struct sp_acc *acc, uint64_t size_bytes, uint64_t k)
{
	const struct sp_law_used used = {.always_large = true};
	struct sp_acc power;

	sp_acc_init(&power, PERIOD);
	sp_acc_add(&power, &used, size_bytes, 0, PERIOD);
	for (; k; k >>= 1) {
		if (k & 1)
			sp_acc_merge(acc, &power);
		sp_acc_merge(&power, &power);
	}
}

double exact_coverage(uint64_t size_bytes, uint64_t n, double confidence)
{
	const double x = (double)size_bytes / PERIOD, total = (double)n;
	const double truth = (double)size_bytes * total;
	const double log_pi = log(-expm1(-x));
	double covered = 0;

	for (uint64_t k = 0; k <= n; k++) {
		const double hits = (double)k;
		const double p = exp(lgamma(total + 1) - lgamma(hits + 1) -
				     lgamma(total - hits + 1) + hits * log_pi -
				     (total - hits) * x);
		struct sp_interval i;
		struct sp_acc acc;

		if (p < TOO_RARE)
			continue;
		sp_acc_init(&acc, PERIOD);
		add_samples(&acc, size_bytes, k);
		i = sp_estimate_bytes_p3(&acc, confidence);
		if (i.lo <= truth * (1 + 1e-12) && truth * (1 - 1e-12) <= i.hi)
			covered += p;
	}
	return covered;
}
