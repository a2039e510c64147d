/* SPDX-License-Identifier: MIT */
/* E2 to E12 against the vectors of tests/format/golden/statistics.json. */
#include <math.h>

#include "stats/estimator.h"
#include "stats/strata.h"
#include "support/close.h"
#include "support/golden.h"
#include "support/test.h"

#define R0 524288u

static const struct sp_law_used plain = {0};

/* Sizes as a JSON array. */
static struct sp_acc acc_of_sizes(const json_t *sizes, uint64_t period_bytes)
{
	struct sp_acc acc;
	size_t i;
	json_t *size;

	sp_acc_init(&acc, period_bytes);
	json_array_foreach(sizes, i, size)
		sp_acc_add(&acc, &plain, (uint64_t)json_integer_value(size), 0,
			   period_bytes);
	return acc;
}

/* Sizes as "40x16,20x4096". */
static struct sp_acc acc_of_text(const char *text, uint64_t period_bytes)
{
	struct sp_acc acc;
	char *end;

	sp_acc_init(&acc, period_bytes);
	do {
		unsigned long n = strtoul(text, &end, 10), size_bytes;

		assert_int_equal(*end, 'x');
		size_bytes = strtoul(end + 1, &end, 10);
		while (n--)
			sp_acc_add(&acc, &plain, size_bytes, 0, period_bytes);
		text = end + 1;
	} while (*end == ',');
	return acc;
}

static void assert_limits(struct sp_interval got, const json_t *want)
{
	assert_int_equal(json_array_size(want), 2);
	assert_close(got.lo, json_number_value(json_array_get(want, 0)), 1e-9);
	assert_close(got.hi, json_number_value(json_array_get(want, 1)), 1e-9);
}

/* One sample's terms, by this project's law and by .NET's. */
TEST(golden_terms)
{
	unsigned int used[2] = {0, 0};
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "ht"), i, row)
	{
		const char *conv = json_string_value(golden_get(row, "conv"));
		const struct sp_law_used law = {
			.is_dotnet = strcmp(conv, "bernoulli") == 0};
		const uint64_t z = (uint64_t)golden_number(row, "z");
		const uint64_t r = (uint64_t)golden_number(row, "R");
		struct sp_acc acc;

		used[law.is_dotnet]++;
		sp_acc_init(&acc, r);
		sp_acc_add(&acc, &law, z, z - 1, r);
		assert_close(1 / acc.est_count, golden_number(row, "pi"),
			     1e-12);
		assert_close(acc.est_bytes, golden_number(row, "w"), 1e-12);
		assert_close(acc.k2, golden_number(row, "k2"), 1e-12);
		assert_close(acc.k3, golden_number(row, "k3"), 1e-12);
		assert_close(acc.kz, acc.k2 * (double)z, 1e-15);
		assert_close(acc.est_count, golden_number(row, "count"), 1e-12);
		assert_close(acc.c2, golden_number(row, "c2"), 1e-12);
		assert_close(acc.c3, golden_number(row, "c3"), 1e-12);
		assert_int_equal(acc.samples, 1);
		assert_int_equal(acc.size_bytes, z);
		assert_int_equal(acc.tail_bytes, 1);
	}
	assert_int_equal(used[0], 55);
	assert_int_equal(used[1], 55);
}

TEST(golden_inclusion)
{
	const json_t *claims = golden_get(golden_root, "heapprofd_claims");
	const double unit = 1 << 20;
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "thinning"), i, row)
	{
		const uint64_t z = (uint64_t)golden_number(row, "z");

		assert_close(sp_inclusion_probability(
				     z, (uint64_t)golden_number(row, "R_new")) /
				     sp_inclusion_probability(
					     z, (uint64_t)golden_number(
							row, "R_old")),
			     golden_number(row, "keep"), 1e-9);
	}
	json_array_foreach(golden_rows(golden_root, "heapprofd"), i, row)
		assert_close(
			sp_inclusion_probability(
				(uint64_t)(golden_number(row, "lam") * 1e6),
				1000000),
			golden_number(row, "p_sampled"), 1e-9);
	assert_close(sp_inclusion_probability((uint64_t)(1.5 * unit), R0),
		     golden_number(claims, "p_512KiB_1p5MiB"), 1e-12);
	assert_close(sp_inclusion_probability((uint64_t)(3.5 * unit), 2 << 20),
		     golden_number(claims, "p_2048KiB_3p5MiB"), 1e-12);
}

/* Unbiasing the sum of the sizes instead of each sample misses 15 % here. */
TEST(sum_then_unbias_trap)
{
	const json_t *trap = golden_get(golden_root, "sum_then_unbias_trap");
	const uint64_t r = (uint64_t)golden_number(trap, "R");
	const struct sp_acc acc = acc_of_sizes(golden_get(trap, "samples"), r);
	const double mean = (double)acc.size_bytes / (double)acc.samples;
	const double wrong = (double)acc.size_bytes / -expm1(-mean / (double)r);

	assert_close(sp_estimate_bytes_p3(&acc, 0.95).value,
		     golden_number(trap, "unbias_then_sum"), 1e-12);
	assert_close(wrong, golden_number(trap, "sum_then_unbias_wrong"), 1e-6);
}

TEST(golden_p3_quantile)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "p3_quantile"), i, row)
		assert_close(sp_estimator_p3_quantile(golden_number(row, "k1"),
						      golden_number(row, "k2"),
						      golden_number(row, "k3"),
						      golden_number(row, "p")),
			     golden_number(row, "x"), 1e-9);
}

TEST(golden_intervals)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "bytes_ci"), i, row)
	{
		const struct sp_acc acc =
			acc_of_sizes(golden_get(row, "samples"),
				     (uint64_t)golden_number(row, "R"));
		const json_t *want = golden_get(row, "acc");

		assert_close(acc.est_bytes, golden_number(want, "HT"), 1e-12);
		assert_close(acc.kz, golden_number(want, "k2z"), 1e-12);
		assert_limits(sp_estimate_bytes_p3(&acc, 0.90),
			      golden_get(row, "bytes_ci90"));
		assert_limits(sp_estimate_bytes_p3(&acc, 0.95),
			      golden_get(row, "bytes_ci95"));
		assert_limits(sp_estimate_bytes_p3(&acc, 0.99),
			      golden_get(row, "bytes_ci99"));
		assert_limits(
			sp_estimate_objects_p3(&acc, SP_SMALLEST_UNKNOWN, 0.95),
			golden_get(row, "count_ci95_zmin16"));
	}
}

/* The samples of the interval vector of that name. */
static struct sp_acc acc_named(const char *name, uint64_t period_bytes)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "bytes_ci"), i, row) if (
		!strcmp(json_string_value(golden_get(row, "name")),
			name)) return acc_of_sizes(golden_get(row, "samples"),
						   period_bytes);
	fail_msg("no samples called %s", name);
	return (struct sp_acc){0};
}

/* E10: a subset and its rest in one stratum. */
static struct sp_interval of_total(const struct sp_acc *part,
				   const struct sp_acc *rest, uint64_t total)
{
	const struct sp_stratum one = {
		.part = *part,
		.rest = *rest,
		.total_bytes = (double)total,
		.smallest.bytes = 16,
	};

	return sp_strata_bytes(&one, 1, 0, 0.95);
}

TEST(golden_known_total)
{
	size_t i;
	json_t *row;

	json_array_foreach(golden_rows(golden_root, "bytes_ci_known_total"), i,
			   row)
	{
		const uint64_t r = (uint64_t)golden_number(row, "R");
		const uint64_t total = (uint64_t)golden_number(row, "T");
		const struct sp_acc a =
			acc_named(json_string_value(golden_get(row, "A")), r);
		const struct sp_acc b =
			acc_of_text(json_string_value(golden_get(row, "B")), r);
		const struct sp_interval of_a = of_total(&a, &b, total);
		const struct sp_interval of_b = of_total(&b, &a, total);

		assert_limits(of_a, golden_get(row, "ci95"));
		assert_close(of_a.value + of_b.value, (double)total, 1e-13);
		assert_limits(sp_estimate_share(&a, &b, 0.95),
			      golden_get(row, "share_ci95_total_unknown"));
	}
}

TEST_MAIN(golden_load, golden_drop)
