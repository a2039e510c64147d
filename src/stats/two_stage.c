/* SPDX-License-Identifier: MIT */
#include "stats/two_stage.h"

#include <math.h>

#include "base/saturate.h"
#include "stats/estimate.h"
#include "stats/size_class_sums.h"

/* What is not seen of 16 bytes and more (SP_SMALLEST_UNKNOWN). */
#define SMALLEST 16.0

static uint64_t to_period(double bytes)
{
	return bytes < 0x1p62 ? (uint64_t)ceil(bytes) : 1ull << 62;
}

void sp_two_stage_init(struct sp_two_stage *sum, uint64_t period_bytes,
		       double fraction)
{
	const uint64_t period = to_period((double)period_bytes / fraction);

	sp_acc_init(&sum->bytes, period);
	sp_acc_init(&sum->objects, period);
}

/* Sums over the objects of units, each of which stands for 1 / fraction. */
static void add_within(struct sp_acc *to, const struct sp_acc *unit,
		       double fraction)
{
	sp_sat_add(&to->samples, unit->samples);
	sp_sat_add(&to->size_bytes, unit->size_bytes);
	sp_sat_add(&to->sure_samples, unit->sure_samples);
	sp_sat_add(&to->sure_bytes, unit->sure_bytes);
	to->est_bytes += unit->est_bytes / fraction;
	to->k2 += unit->k2 / fraction;
	to->k3 += unit->k3 / fraction;
	to->kz += unit->kz / fraction;
	to->est_count += unit->est_count / fraction;
	to->c2 += unit->c2 / fraction;
	to->c3 += unit->c3 / fraction;
}

/*
 * A unit of y that was recorded predicts (1 - f) / f others like it that were
 * not: the terms of an object (E3, E4) with y / f for its weight.  What nobody
 * saw may be a unit too, as large as the largest that was seen: so the phantom
 * of the upper limit is that, and a period within it.
 */
void sp_two_stage_add(struct sp_two_stage *sum, const struct sp_acc *unit,
		      double fraction)
{
	const double q = 1 - fraction;
	const double bytes = unit->est_bytes / fraction;
	const double objects = unit->est_count / fraction;
	const double period = (double)unit->period_bytes / fraction;

	add_within(&sum->bytes, unit, fraction);
	add_within(&sum->objects, unit, fraction);
	sum->bytes.k2 += bytes * bytes * q;
	sum->bytes.k3 += bytes * bytes * bytes * q * (1 + q);
	sum->objects.c2 += objects * objects * q;
	sum->objects.c3 += objects * objects * objects * q * (1 + q);
	if (fraction == 1)
		return;
	sp_raise(&sum->bytes.period_bytes, to_period(period + bytes));
	sp_raise(&sum->objects.period_bytes,
		 to_period(period + objects * SMALLEST));
}

void sp_two_stage_add_exact(struct sp_two_stage *sum, double amount,
			    double fraction)
{
	const struct sp_acc unit = {
		.samples = 1,
		.size_bytes = amount < 0x1p63 ? (uint64_t)amount : 1ull << 63,
		.est_bytes = amount,
		.period_bytes = 1,
	};

	sp_two_stage_add(sum, &unit, fraction);
}

struct sp_interval sp_two_stage_bytes(const struct sp_two_stage *sum,
				      double confidence)
{
	const struct sp_estimation how = {.method = SP_METHOD_P3,
					  .confidence = confidence};
	const struct sp_class_sums sums = {.all = sum->bytes};

	return sp_estimate_bytes(&how, &sums);
}

struct sp_interval sp_two_stage_objects(const struct sp_two_stage *sum,
					double confidence)
{
	const struct sp_estimation how = {.method = SP_METHOD_P3,
					  .confidence = confidence};
	const struct sp_class_sums sums = {.all = sum->objects};

	return sp_estimate_objects(&how, &sums);
}
