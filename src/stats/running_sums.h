/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Running sums of what samples add to an estimate of bytes
 * (stats/estimator.h: est_bytes, k2, k3, kz).  Terms are taken out again, in
 * another order than they came in: with the rounding errors summed up beside
 * each sum, what remains is as exact as a double can show.  Two at a time.
 */
enum { SP_SUM_EST, SP_SUM_K2, SP_SUM_K3, SP_SUM_KZ, SP_SUMS };

typedef double sp_two_sums __attribute__((vector_size(16)));

/* Number n is of[n / 2][n % 2]. */
struct sp_terms {
	sp_two_sums of[SP_SUMS / 2];
};

/* Zero-initialise. */
struct sp_running_sums {
	sp_two_sums hi[SP_SUMS / 2];
	sp_two_sums lo[SP_SUMS / 2]; /* what rounding took from hi */
};

/* sign is 1, or -1 for terms that were added before. */
static inline void sp_running_sums_add(struct sp_running_sums *s,
				       const struct sp_terms *terms,
				       double sign)
{
	for (unsigned int i = 0; i < SP_SUMS / 2; i++) {
		const sp_two_sums x = sign * terms->of[i], hi = s->hi[i];
		const sp_two_sums sum = hi + x, part = sum - hi;

		s->lo[i] += (hi - (sum - part)) + (x - part);
		s->hi[i] = sum;
	}
}

static inline double sp_running_sums_value(const struct sp_running_sums *s,
					   unsigned int which)
{
	return s->hi[which / 2][which % 2] + s->lo[which / 2][which % 2];
}
