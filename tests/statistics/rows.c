/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "stats/estimate.h"
#include "program.h"

const double row_levels[ROW_LEVELS] = {0.9, 0.95, 0.99, 0.999, 0.9999};

/* Numbers of samples that are less likely do not matter: of the row, of the
 * others. */
#define TOO_RARE       1e-9
#define TOO_RARE_OTHER 1e-6
/* Numbers of the others' samples, of which every so many-th is looked at. */
#define STEPS 75

/* How likely `k` of `n` objects are sampled. */
static double chance(double k, double n, double x)
{
	return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) +
		   k * log(-expm1(-x)) - (n - k) * x);
}

/* The range of numbers that are not too rare. */
static void range(double n, double x, double rare, double *ret_first,
		  double *ret_last)
{
	double k = floor(-n * expm1(-x));

	*ret_first = *ret_last = k;
	while (*ret_first > 0 && chance(*ret_first - 1, n, x) > rare)
		*ret_first -= 1;
	while (*ret_last < n && chance(*ret_last + 1, n, x) > rare)
		*ret_last += 1;
}

static struct sp_class_sums class_sums_of(uint64_t size_bytes, double samples,
					  struct sp_class_sums_class *room)
{
	const struct sp_law_used law = {.always_large = true};

	room->class = sp_format_class(size_bytes);
	sp_acc_init(&room->acc, PERIOD);
	if (samples > 0)
		sp_acc_add_many(&room->acc, &law, size_bytes, (uint64_t)samples,
				0, PERIOD);
	return (struct sp_class_sums){
		.all = room->acc, .classes = room, .n_classes = samples > 0};
}

/* One outcome, `p` likely. */
static void score(struct sp_population *population, uint64_t size_bytes,
		  double samples, double others, double truth, double p,
		  struct row_result *ret)
{
	struct sp_class_sums_class of_row, of_all;
	const struct sp_class_sums row =
		class_sums_of(size_bytes, samples, &of_row);

	population->all = class_sums_of(size_bytes, samples + others, &of_all);
	for (unsigned int l = 0; l < ROW_LEVELS; l++) {
		const struct sp_estimation how = {SP_METHOD_P3T, row_levels[l],
						  population, 0};
		const struct sp_interval i = sp_estimate_bytes(&how, &row);

		if (i.lo > truth * (1 + 1e-9))
			ret->too_high[l] += p;
		if (i.hi < truth * (1 - 1e-9))
			ret->too_low[l] += p;
		if (row_levels[l] == 0.95)
			ret->width += p * (i.hi - i.lo) / PERIOD;
	}
}

/* Exact totals of a class of `n` objects, and no samples yet. */
static void population_of(uint64_t size_bytes, double n,
			  struct sp_population *ret)
{
	static struct sp_profile profile;
	const uint32_t class = sp_format_class(size_bytes);

	profile = (struct sp_profile){.has_classes = true,
				      .period_bytes = PERIOD};
	profile.classes[class].objects = (uint64_t)n;
	profile.classes[class].bytes = (uint64_t)n * size_bytes;
	profile.exact_alloc_bytes = profile.classes[class].bytes;
	if (sp_population_init(ret, &profile) < 0)
		abort();
}

bool measure_row(const struct row_of_class *row, struct row_result *ret)
{
	static struct sp_population population;
	const double x = (double)row->size_bytes / PERIOD;
	const double n = round(row->row_periods / x);
	const double m = round((row->class_periods - row->row_periods) / x);
	double first, last, other, least, most, step, p_others = 0;

	if (n < 1 || m < 0)
		return false;
	*ret = (struct row_result){.shown = -expm1(-n * x)};
	population_of(row->size_bytes, n + m, &population);
	range(n, x, TOO_RARE, &first, &last);
	range(m, x, TOO_RARE_OTHER, &least, &most);
	step = fmax(1, floor((most - least) / STEPS));
	for (other = least; other <= most; other += step)
		p_others += chance(other, m, x);
	for (double k = first; k <= last; k++)
		for (other = least; other <= most; other += step)
			score(&population, row->size_bytes, k, other,
			      n * (double)row->size_bytes,
			      chance(k, n, x) * chance(other, m, x) / p_others,
			      ret);
	for (unsigned int l = 0; l < ROW_LEVELS; l++)
		ret->too_high[l] /= ret->shown;
	return true;
}
