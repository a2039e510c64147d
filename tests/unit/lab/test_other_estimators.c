/* SPDX-License-Identifier: MIT */
/* E6, E18: estimates by other profilers' names, against what those
 * profilers publish. */
#include <math.h>

#include "format/layout.h"
#include "lab/negbinom.h"
#include "lab/other_estimators.h"
#include "stats/special.h"
#include "support/close.h"
#include "support/golden.h"
#include "support/test.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define R0       524288u
#define DOTNET_R 102400u

static const struct sp_law_used plain = {0};
static const struct sp_law_used always = {.always_large = true};
static const struct sp_law_used dotnet = {.is_dotnet = true};

/* That many objects of 1 byte. */
static struct sp_acc acc_of_bytes(uint64_t samples, uint64_t period_bytes,
				  const struct sp_law_used *law)
{
	struct sp_acc acc;

	sp_acc_init(&acc, period_bytes);
	while (samples--)
		sp_acc_add(&acc, law, 1, 0, period_bytes);
	return acc;
}

/* All 50 integers of .NET's table, through the estimate that bears its name:
 * the tail of objects of one byte is one byte each. */
TEST(dotnet_table)
{
	const json_t *table = golden_get(golden_root, "nb_table");
	size_t i;
	json_t *row;

	assert_int_equal(json_array_size(golden_rows(table, "rows")), 25);
	json_array_foreach(golden_rows(table, "rows"), i, row)
	{
		const double s = golden_number(row, "s");
		const struct sp_acc acc =
			acc_of_bytes((uint64_t)s, DOTNET_R, &dotnet);
		const struct sp_interval got =
			sp_other_negbinom(&acc, SP_COMPENSATE_NONE, 0.95);

		assert_close(got.lo - s, golden_number(row, "lo"), 0);
		assert_close(got.hi - s, golden_number(row, "hi"), 0);
	}
}

TEST(dotnet_worked_example)
{
	const json_t *example = golden_get(golden_root, "nb_worked_example");
	const json_t *want = golden_rows(example, "interval");
	const uint64_t u = (uint64_t)golden_number(example, "u");
	struct sp_acc acc = acc_of_bytes(7, DOTNET_R, &dotnet);
	struct sp_interval got;

	/* the eighth object brings the tail to what the example has */
	sp_acc_add(&acc, &dotnet, u, 7, DOTNET_R);
	assert_int_equal(acc.samples, 8);
	assert_int_equal(acc.tail_bytes, u);
	got = sp_other_negbinom(&acc, SP_COMPENSATE_NONE, 0.95);
	assert_close(got.lo, json_number_value(json_array_get(want, 0)), 0);
	assert_close(got.hi, json_number_value(json_array_get(want, 1)), 0);
	assert_close(got.value,
		     golden_number(example, "estimate_sq_over_p_plus_u"),
		     1e-14);
}

/* (E6) By its definition: one failure less has a probability below the level.
 */
TEST(limits_are_quantiles)
{
	const uint64_t r = 40;
	const double p = sp_inclusion_probability(1, r);

	for (unsigned int s = 1; s <= 50; s++) {
		const struct sp_acc acc = acc_of_bytes(s, r, &plain);
		const struct sp_interval i =
			sp_other_negbinom(&acc, SP_COMPENSATE_END, 0.95);
		const double lo = i.lo - s, hi = i.hi - s;

		assert_true(sp_negbinom_cdf(s, p, lo - 1) < 0.025);
		assert_true(sp_negbinom_cdf(s, p, lo) >= 0.025);
		assert_true(sp_negbinom_cdf(s + 1, p, hi - 1) < 0.975);
		assert_true(sp_negbinom_cdf(s + 1, p, hi) >= 0.975);
	}
}

typedef struct sp_interval method_fn(const struct sp_acc *acc,
				     double confidence);

static struct sp_interval end(const struct sp_acc *acc, double confidence)
{
	return sp_other_negbinom(acc, SP_COMPENSATE_END, confidence);
}

static struct sp_interval none(const struct sp_acc *acc, double confidence)
{
	return sp_other_negbinom(acc, SP_COMPENSATE_NONE, confidence);
}

/*
 * Exact, without random numbers: a subset of n objects of 1 byte has a binomial
 * number of samples.
 */
static void miss_rates(method_fn *method, unsigned int n, uint64_t r,
		       double confidence, double *ret_low, double *ret_high)
{
	const double p = sp_inclusion_probability(1, r);
	struct sp_acc acc;

	*ret_low = *ret_high = 0;
	sp_acc_init(&acc, r);
	for (unsigned int s = 0; s <= n; s++) {
		const double prob = exp(lgamma(n + 1.) - lgamma(s + 1.) -
					lgamma(n - s + 1.) + s * log(p) +
					(n - s) * log1p(-p));
		struct sp_interval i;

		if (prob > 1e-12) {
			i = method(&acc, confidence);
			*ret_low += n < i.lo ? prob : 0;
			*ret_high += n > i.hi ? prob : 0;
		}
		sp_acc_add(&acc, &plain, 1, 0, r);
	}
}

static void worst_rates(method_fn *method, uint64_t r, double confidence,
			double *ret_low, double *ret_high)
{
	*ret_low = *ret_high = 0;
	for (unsigned int n = 1; n < 300; n += 1 + n / 16) {
		double low, high;

		miss_rates(method, n, r, confidence, &low, &high);
		*ret_low = fmax(*ret_low, low);
		*ret_high = fmax(*ret_high, high);
	}
}

/* Neither limit may miss more often than promised, and both come close to the
 * promise for some n. */
TEST(exact_coverage)
{
	static const uint64_t periods[] = {2, 3, 7, 40};
	static const double levels[] = {0.8, 0.95, 0.99};

	for (size_t i = 0; i < N(periods); i++)
		for (size_t j = 0; j < N(levels); j++) {
			const double half = (1 - levels[j]) / 2;
			double low, high;

			worst_rates(end, periods[i], levels[j], &low, &high);
			assert_between(0.6 * half, low, half + 1e-10);
			assert_between(0.6 * half, high, half + 1e-10);
		}
}

/* What the other methods are said to assume is not idle: a subset of which two
 * samples are to be expected. */
TEST(published_limits_fall_short)
{
	double low, high;

	miss_rates(none, 80, 40, 0.95, &low, &high);
	assert_between(0.1, low + high, 0.2);
	miss_rates(sp_other_weighted, 80, 40, 0.95, &low, &high);
	assert_between(0.1, low + high, 0.2);
	miss_rates(end, 80, 40, 0.95, &low, &high);
	assert_between(0, low + high, 0.05);
}

/* Small objects, where the methods must be the same interval as P3: they count
 * the same hits, one of them in whole bytes. */
TEST(methods_agree_on_small_objects)
{
	for (uint64_t s = 1; s <= 3000; s *= 3) {
		const struct sp_acc acc = acc_of_bytes(s, R0, &plain);
		const struct sp_interval p3 = sp_estimate_bytes_p3(&acc, 0.95);
		const struct sp_interval nb = end(&acc, 0.95);
		const double off = (double)s + 2;

		assert_between(nb.value - off, p3.value, nb.value + off);
		assert_between(nb.lo - off, p3.lo, nb.lo + off);
		assert_between(nb.hi - off, p3.hi, nb.hi + off);
	}
}

/* Objects that are always sampled were no trials: they shift, no more. */
TEST(sure_objects_shift)
{
	static method_fn *const methods[] = {
		end,
		none,
		sp_other_weighted,
	};
	const uint64_t sure = sp_format_always_bytes(4096);

	for (size_t i = 0; i < N(methods); i++)
		for (uint64_t s = 0; s < 30; s += 3) {
			struct sp_acc acc = acc_of_bytes(s, 4096, &always);
			const struct sp_interval was = methods[i](&acc, 0.9);
			struct sp_interval is;

			sp_acc_add(&acc, &always, sure, 0, 4096);
			is = methods[i](&acc, 0.9);
			assert_close(is.lo, was.lo + (double)sure, 1e-12);
			assert_close(is.value, was.value + (double)sure, 1e-12);
			assert_close(is.hi, was.hi + (double)sure, 1e-12);
		}
}

/* No law of trials holds: (E9) answers. */
TEST(mixed_periods_and_laws)
{
	struct sp_acc acc = acc_of_bytes(5, 128, &plain);
	struct sp_acc other = acc_of_bytes(5, 256, &plain);
	struct sp_interval p3, nb;

	sp_acc_merge(&acc, &other);
	p3 = sp_estimate_bytes_p3(&acc, 0.95);
	nb = end(&acc, 0.95);
	assert_true(nb.lo == p3.lo && nb.value == p3.value && nb.hi == p3.hi);
	acc = acc_of_bytes(5, 128, &plain);
	sp_acc_add(&acc, &dotnet, 1, 0, 128);
	p3 = sp_estimate_bytes_p3(&acc, 0.95);
	nb = none(&acc, 0.95);
	assert_true(nb.lo == p3.lo && nb.value == p3.value && nb.hi == p3.hi);
}

/* Mean and standard deviation of one object's estimate over all that the
 * sampler may do with it. */
static void moments(method_fn *method, uint64_t z, uint64_t r, double *ret_mean,
		    double *ret_sd)
{
	double mean = 0, square = 0;

	for (uint64_t at = 0; at < z; at++) {
		const double prob = exp(-(double)at / (double)r) *
				    sp_inclusion_probability(1, r);
		struct sp_acc acc;
		double value;

		sp_acc_init(&acc, r);
		sp_acc_add(&acc, &plain, z, at, r);
		value = method(&acc, 0.95).value;
		mean += prob * value;
		square += prob * value * value;
	}
	*ret_mean = mean;
	*ret_sd = sqrt(square - mean * mean);
}

/* Both are unbiased, and the weights (E3) are quieter than the trials. */
TEST(one_object)
{
	const uint64_t r = 500;

	for (uint64_t z = 1; z < 4000; z += 1 + z / 2) {
		const double pi = sp_inclusion_probability(z, r);
		const double hits = sqrt((double)z * (double)r);
		const double weights = (double)z * sqrt((1 - pi) / pi);
		double mean, sd;

		moments(end, z, r, &mean, &sd);
		assert_close(mean, (double)z, 1e-9);
		assert_between(weights * (1 - 1e-9), sd, hits * 1.001);
		moments(sp_other_weighted, z, r, &mean, &sd);
		assert_close(mean, (double)z, 1e-9);
		assert_close(sd, weights, 1e-6);
	}
}

/* P(count of hits = k) where x are to be expected. */
static double hits_probability(double x, double k)
{
	return sp_special_gamma_upper(k + 1, x) -
	       (k > 0 ? sp_special_gamma_upper(k, x) : 0);
}

/* Every row of heapprofd's curves: chance, expected errors, the 99 % cut. */
static void check_curve(const double *row)
{
	const uint64_t r = (uint64_t)row[0], z = (uint64_t)row[1];
	const double x = row[1] / row[0], pi = sp_inclusion_probability(z, r);
	const double error = 2 * hits_probability(x, floor(x));
	struct sp_interval cut;
	struct sp_acc acc;

	assert_between(row[2] - 6e-10, pi, row[2] + 6e-10);
	assert_between(row[3] - 6e-10, error, row[3] + 6e-10);
	assert_between(row[4] - 6e-10, (error - (1 - pi)) / pi, row[4] + 6e-10);
	sp_acc_init(&acc, r);
	sp_acc_add(&acc, &always, z, 0, r);
	cut = sp_other_weighted(&acc, 0.95);
	/* known exactly, or left to chance */
	if (row[5] > 0)
		assert_true(acc.k2 > 0 && acc.sure_samples == 0);
	else
		assert_true(cut.value == row[1] && acc.sure_samples == 1);
	sp_acc_init(&acc, r);
	sp_acc_add(&acc, &plain, z, 0, r);
	assert_between(row[7] - 6e-10, sqrt(pi * acc.k2) / row[1],
		       row[7] + 6e-10);
}

TEST(heapprofd_curves)
{
	FILE *f =
		fopen(SP_TESTS_DIR "/format/golden/heapprofd_curves.csv", "r");
	unsigned int rows = 0;
	double row[8];
	char line[256];

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf",
					&row[0], &row[1], &row[2], &row[3],
					&row[4], &row[5], &row[6], &row[7]),
				 8);
		check_curve(row);
		rows++;
	}
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rows, 896);
}

/* "512 KiB samples 95 % of objects of 1.5 MiB", "2 MiB 80 % of 3.5 MiB", and
 * everything from ln 100 periods on. */
TEST(heapprofd_claims)
{
	const json_t *claims = golden_get(golden_root, "heapprofd_claims");
	const double cut = golden_number(claims, "cut_99pct_in_R");

	assert_true(sp_inclusion_probability(3u << 19, R0) >= 0.95);
	assert_true(sp_inclusion_probability(7u << 19, 2u << 20) >= 0.80);
	assert_close((double)sp_format_always_bytes(1u << 30) / (1u << 30), cut,
		     1e-9);
}

TEST_MAIN(golden_load, golden_drop)
