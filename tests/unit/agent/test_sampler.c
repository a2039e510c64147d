/* SPDX-License-Identifier: MIT */
/* The integer logarithm compared with long double, and the lottery compared
 * with a walk over every byte.  Whether the law is true is asked in
 * tests/statistics. */
#include <math.h>

#include "agent/thread/sampler.h"
#include "support/golden.h"
#include "support/test.h"

#define K_END (1ull << 53)

/* The exponential law of a period. */
static struct sp_law law_of(uint64_t period)
{
	struct sp_law law;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, period);
	return law;
}

static uint64_t gap_of(uint64_t k, uint64_t period)
{
	const struct sp_law law = law_of(period);

	return sp_law_gap(&law, k);
}

TEST(golden)
{
	const json_t *rows = golden_rows(golden_root, "gap_from_u53");
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		uint64_t k = (uint64_t)json_integer_value(golden_get(row, "k"));
		uint64_t r = (uint64_t)json_integer_value(golden_get(row, "R"));
		uint64_t want =
			(uint64_t)json_integer_value(golden_get(row, "gap"));

		if (gap_of(k, r) != want)
			fail_msg("k %llu, R %llu: %llu instead of %llu",
				 (unsigned long long)k, (unsigned long long)r,
				 (unsigned long long)gap_of(k, r),
				 (unsigned long long)want);
	}
}

/* Every magnitude, both ends. */
static const uint64_t periods[] = {
	2,
	3,
	7,
	255,
	256,
	4096,
	102400,
	524287,
	524288,
	1ull << 30,
	1000003,
	1ull << 39,
	(1ull << 40) - 1,
	1ull << 40,
};

enum { PERIODS = sizeof(periods) / sizeof(periods[0]) };

/*
 * floor(v) with v known to within e: the promise is 2^-56 for the logarithm,
 * and long double adds 2^-62 of the value.
 */
static void check_gap(uint64_t k, const struct sp_law *law, long double mean)
{
	long double v = -logl((long double)(2 * k + 1) * 0x1p-54L) * mean;
	long double e = 0x1p-56L * mean + v * 0x1p-60L;
	uint64_t low = v > e ? (uint64_t)floorl(v - e) : 0;
	uint64_t high = (uint64_t)floorl(v + e);
	uint64_t got = sp_law_gap(law, k);

	if (got < low || got > high)
		fail_msg("k %llu, R %llu: %llu, expected %llu..%llu",
			 (unsigned long long)k,
			 (unsigned long long)law->period_bytes,
			 (unsigned long long)got, (unsigned long long)low,
			 (unsigned long long)high);
}

static void check_gaps(const struct sp_law *law, long double mean)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 6, law->period_bytes);
	for (int i = 0; i < 50000; i++)
		check_gap(sp_rng_next(&rng) >> 11, law, mean);
	/* Every magnitude of k, where few random ones fall. */
	for (int i = 0; i < 10000; i++)
		check_gap(sp_rng_next(&rng) >> (11 + i % 53), law, mean);
	for (uint64_t k = 0; k < 1000; k++) {
		check_gap(k, law, mean);
		check_gap(K_END - 1 - k, law, mean);
		/* Where the series changes its argument. */
		check_gap(6369051672525772u - 500 + k, law, mean);
		check_gap(6369051672525772u / 2 - 500 + k, law, mean);
		check_gap(K_END / 2 - 500 + k, law, mean);
	}
}

TEST(logarithm)
{
	for (size_t i = 0; i < PERIODS; i++) {
		const struct sp_law law = law_of(periods[i]);

		check_gaps(&law, (long double)periods[i]);
	}
}

/* .NET's mean, -1 / ln(1 - 1/R), where long double has 63 bits of it. */
static long double dotnet_mean(uint64_t period)
{
	return -1 / log1pl(-1 / (long double)period);
}

static void check_dotnet_mean(uint64_t period)
{
	struct sp_law law;
	long double want = dotnet_mean(period), got;

	sp_law_init(&law, SP_LAW_DOTNET, period);
	got = ldexpl((long double)law.mean, -(int)law.mean_shift);
	if (!(fabsl(got / want - 1) < 0x1p-60L))
		fail_msg("R %llu: mean %.20Lg instead of %.20Lg",
			 (unsigned long long)period, got, want);
}

TEST(dotnet)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 6, 7);
	for (uint64_t r = 2; r < 20000; r++)
		check_dotnet_mean(r);
	for (int i = 0; i < 20000; i++)
		check_dotnet_mean(2 + (sp_rng_next(&rng) >> (25 + i % 35)));
	for (size_t i = 0; i < PERIODS; i++) {
		struct sp_law law;

		check_dotnet_mean(periods[i]);
		sp_law_init(&law, SP_LAW_DOTNET, periods[i]);
		check_gaps(&law, dotnet_mean(periods[i]));
	}
}

/* Missing an always sampled object by chance would be less than 1 % likely. */
TEST(always)
{
	for (size_t i = 0; i < PERIODS; i++) {
		const struct sp_law law = law_of(periods[i]);
		const long double x = logl(100) * periods[i];

		assert_true((long double)law.always_bytes >= x);
		assert_true((long double)law.always_bytes < x + 1.001L);
	}
}

/* A greater uniform is a shorter gap. */
TEST(monotonic)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 6, 2);
	for (int i = 0; i < 200000; i++) {
		uint64_t k = sp_rng_next(&rng) >> (11 + i % 53);
		uint64_t step = 1 + (sp_rng_next(&rng) >> (12 + i % 52));

		if (k + step < K_END)
			assert_true(gap_of(k + step, 1ull << 40) <=
				    gap_of(k, 1ull << 40));
	}
}

/* A lottery in which each byte passes by itself. */
struct model {
	struct sp_rng rng;
	const struct sp_law *law;
	uint64_t countdown;
	bool is_hollow;
	bool is_due; /* the hit byte was in an object that is gone */
};

/* One number of the generator, its upper 53 bits; long gaps in parts. */
static void model_draw(struct model *m)
{
	const uint64_t cap = m->law->always_bytes - 1;

	m->countdown = sp_law_gap(m->law, sp_rng_next(&m->rng) >> 11);
	m->is_hollow = m->countdown >= cap;
	if (m->is_hollow)
		m->countdown = cap;
}

/* True if this byte is hit. */
static bool model_byte(struct model *m)
{
	if (m->countdown == 0)
		return true;
	if (--m->countdown == 0 && m->is_hollow)
		model_draw(m);
	return false;
}

/*
 * `used` bytes belong to objects that passed; if the hit byte was among them,
 * as after a signal handler, the next object's first byte takes the hit.
 */
static bool model_pass(struct model *m, uint64_t used, uint64_t size,
		       uint64_t *ret_offset)
{
	*ret_offset = 0;
	for (uint64_t i = 0; i < used && !m->is_due; i++)
		m->is_due = model_byte(m);
	if (size >= m->law->always_bytes)
		return true;
	for (uint64_t i = 0; i < size; i++) {
		if (!m->is_due && !model_byte(m))
			continue;
		*ret_offset = m->is_due ? 0 : i;
		m->is_due = false;
		model_draw(m);
		return true;
	}
	return false;
}

struct counts {
	unsigned int hits, always, hollow;
};

/* `beyond`: the used bytes may exceed the gap. */
static struct counts check_pass(enum sp_law_kind kind, uint64_t period,
				uint64_t sizes, bool beyond)
{
	struct counts n = {0, 0, 0};
	struct sp_sampler sampler;
	struct sp_rng random;
	struct sp_law law;
	struct model m;

	sp_law_init(&law, kind, period);
	sp_rng_init(&random, 6, period);
	sp_sampler_begin(&sampler, &law, 7, 1, (uint32_t)period);
	m = (struct model){.law = &law};
	sp_rng_init(&m.rng, 7, (1ull << 32) | period);
	model_draw(&m);
	for (int i = 0; i < 20000; i++) {
		uint64_t size = 1 + sp_rng_next(&random) % sizes;
		uint64_t used = sp_rng_next(&random) % (2 * sizes);
		uint64_t got = 999999, want = 999999;
		bool hit, model;

		if (used > sampler.gap && !beyond)
			used = sampler.gap;
		hit = sp_sampler_pass(&sampler, used, size, &got);
		model = model_pass(&m, used, size, &want);
		assert_int_equal(hit, model);
		assert_true(got == want);
		assert_true(sampler.gap == (m.is_due ? 0 : m.countdown));
		assert_true(sampler.gap < law.always_bytes);
		n.hits += hit;
		n.always += size >= law.always_bytes;
		n.hollow += sampler.is_hollow;
	}
	assert_true(n.hits - n.always > 100);
	return n;
}

TEST(pass)
{
	struct counts n;

	for (enum sp_law_kind k = SP_LAW_EXPONENTIAL; k <= SP_LAW_DOTNET; k++) {
		n = check_pass(k, 2, 4, false);
		assert_true(n.hollow > 10 && n.always == 0);
		n = check_pass(k, 2, 20, true);
		assert_true(n.hollow > 10 && n.always > 100);
		n = check_pass(k, 64, 16, false);
		assert_true(n.hollow > 10);
		n = check_pass(k, 64, 300, false);
		assert_true(n.always > 100);
		check_pass(k, 512, 100, false);
		check_pass(k, 4096, 2000, false);
		check_pass(k, 64, 16, true);
		check_pass(k, 64, 1000, true);
		check_pass(k, 512, 100, true);
	}
}

/* The stream of a thread depends on each of seed, generation and index. */
TEST(begin)
{
	static const struct {
		uint64_t seed;
		uint32_t generation, thread;
	} of[] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 1, 2}};
	enum { N = sizeof(of) / sizeof(of[0]) };
	const struct sp_law law = law_of(1ull << 40);
	struct sp_sampler s[N], again;

	for (int i = 0; i < N; i++) {
		sp_sampler_begin(&s[i], &law, of[i].seed, of[i].generation,
				 of[i].thread);
		for (int k = 0; k < i; k++)
			assert_true(s[i].gap != s[k].gap);
	}
	sp_sampler_begin(&again, &law, 1, 1, 1);
	assert_true(again.gap == s[0].gap);
}

/* Another period throws the pending gap away; skipping only shortens it. */
TEST(change_and_skip)
{
	const struct sp_law from = law_of(4096), to = law_of(64);
	struct sp_sampler s;
	struct model m = {.law = &to};

	sp_sampler_begin(&s, &from, 8, 1, 1);
	for (int i = 0; i < 1000; i++) {
		uint64_t before = s.gap, step = before / 3;

		sp_sampler_skip(&s, step);
		assert_true(s.gap == before - step);
		sp_sampler_skip(&s, before);
		assert_true(s.gap == 0);
		m.rng = s.rng;
		model_draw(&m);
		sp_sampler_change(&s, &to);
		assert_ptr_equal(s.law, &to);
		assert_true(s.gap == m.countdown);
		assert_int_equal(s.is_hollow, m.is_hollow);
	}
}

/* A long gap that was skipped to its end hits nothing. */
TEST(skip_hollow)
{
	const struct sp_law law = law_of(1ull << 30);
	struct sp_sampler s;
	uint64_t offset;

	sp_sampler_begin(&s, &law, 8, 1, 2);
	s.is_hollow = true;
	s.gap = 10;
	sp_sampler_skip(&s, 20);
	assert_true(s.gap == 0 && s.is_hollow);
	assert_false(sp_sampler_pass(&s, 0, 1, &offset));
	assert_true(s.gap > 1);
}

/* Period 1 records every object at its first byte and draws nothing. */
TEST(period_one)
{
	for (enum sp_law_kind k = SP_LAW_EXPONENTIAL; k <= SP_LAW_DOTNET; k++) {
		uint64_t offset = 5;
		struct sp_sampler s;
		struct sp_law law;
		struct sp_rng rng;

		sp_law_init(&law, k, 1);
		assert_true(sp_law_gap(&law, 0) == 0);
		assert_true(sp_law_gap(&law, K_END - 1) == 0);
		sp_sampler_begin(&s, &law, 6, 1, 4);
		rng = s.rng;
		for (uint64_t size = 1; size < 1000; size++) {
			assert_true(s.gap == 0);
			assert_true(sp_sampler_pass(&s, 0, size, &offset));
			assert_true(offset == 0);
		}
		assert_memory_equal(&rng, &s.rng, sizeof(rng));
	}
}

/* Sizes near the end of the range, and both sides of the greatest gap. */
TEST(huge)
{
	const struct sp_law law = law_of(512);
	const uint64_t always = law.always_bytes;
	struct sp_sampler s;
	uint64_t offset = 5;

	sp_sampler_begin(&s, &law, 6, 1, 5);
	s.is_hollow = false;
	s.gap = 1000;
	assert_true(sp_sampler_pass(&s, 10, UINT64_MAX, &offset));
	assert_true(offset == 0 && s.gap == 990);
	assert_true(sp_sampler_pass(&s, 0, always, &offset));
	assert_true(offset == 0 && s.gap == 990);
	s.gap = always - 1;
	assert_false(sp_sampler_pass(&s, 0, always - 1, &offset));
	assert_true(s.gap == 0);
	s.gap = always - 2;
	assert_true(sp_sampler_pass(&s, 0, always - 1, &offset));
	assert_true(offset == always - 2);
	s.is_hollow = false;
	s.gap = 7;
	assert_false(sp_sampler_pass(&s, 3, 4, &offset));
	assert_true(s.gap == 0);
	assert_true(sp_sampler_pass(&s, 0, 1, &offset));
	assert_true(offset == 0);
}

/* The weight beside long double, for all sizes that are left to chance: less
 * than 1 off, and rounded up as often as its fraction says. */
static void check_weight(const struct sp_law *law, uint64_t size,
			 long double exact)
{
	const uint64_t lo = sp_law_weight(law, size, 0);
	const uint64_t hi = sp_law_weight(law, size, UINT64_MAX);
	const long double fraction = exact - floorl(exact);
	const long double near = 1e-4L + exact * 1e-15L;
	/* The share of `random` that does not reach the next integer. */
	const long double below = (1 - fraction) * 0x1p64L;

	assert_true((long double)lo > exact - 1 - near);
	assert_true((long double)lo <= exact + near);
	assert_true(hi - lo <= 1);
	if (fraction < 0.01L || fraction > 0.99L || exact > 1e9L)
		return;
	assert_int_equal(hi, lo + 1);
	assert_int_equal(sp_law_weight(law, size, (uint64_t)(below * 0.99L)),
			 lo);
	if (below * 1.01L < 0x1p64L)
		assert_int_equal(
			sp_law_weight(law, size, (uint64_t)(below * 1.01L)),
			hi);
}

TEST(weight)
{
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		const long double r = (long double)periods[i];
		struct sp_law plain = law_of(periods[i]), dotnet;

		sp_law_init(&dotnet, SP_LAW_DOTNET, periods[i]);
		for (uint64_t z = 1; z < plain.always_bytes; z += 1 + z / 5) {
			const long double size = (long double)z;

			check_weight(&plain, z, -size / expm1l(-size / r));
			check_weight(&dotnet, z,
				     -size / expm1l(size * log1pl(-1 / r)));
		}
		assert_int_equal(
			sp_law_weight(&plain, plain.always_bytes, UINT64_MAX),
			plain.always_bytes);
	}
	assert_int_equal(sp_law_weight(&(struct sp_law){.period_bytes = 1}, 7,
				       UINT64_MAX),
			 7);
}

TEST_MAIN(golden_load, golden_drop)
