/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"
#include "stats/estimator.h"
#include "support/close.h"

/* Sums of the same samples, which were added up in another order. */
static inline void assert_same_acc(const struct sp_acc *a,
				   const struct sp_acc *b)
{
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->size_bytes, b->size_bytes);
	assert_int_equal(a->tail_bytes, b->tail_bytes);
	assert_int_equal(a->sure_samples, b->sure_samples);
	assert_int_equal(a->sure_bytes, b->sure_bytes);
	assert_int_equal(a->dotnet_samples, b->dotnet_samples);
	assert_int_equal(a->period_bytes, b->period_bytes);
	assert_int_equal(a->period_min_bytes, b->period_min_bytes);
	assert_close(a->est_bytes, b->est_bytes, 1e-12);
	assert_close(a->k2, b->k2, 1e-12);
	assert_close(a->k3, b->k3, 1e-12);
	assert_close(a->kz, b->kz, 1e-12);
	assert_close(a->est_count, b->est_count, 1e-12);
	assert_close(a->c2, b->c2, 1e-12);
	assert_close(a->c3, b->c3, 1e-12);
}

/* What was alive at a moment, one sample after another. */
static inline struct sp_acc acc_at(const struct sp_profile *profile,
				   uint64_t time_ns)
{
	struct sp_acc acc;

	sp_acc_init(&acc, profile->period_bytes);
	for (size_t k = 0; k < profile->n_samples; k++) {
		const struct sp_sample *s = &profile->samples[k];

		if (s->born_ns <= time_ns && time_ns < s->freed_ns)
			sp_acc_add(&acc, &profile->law, s->size_bytes,
				   s->offset_bytes, s->period_bytes);
	}
	return acc;
}
