/* SPDX-License-Identifier: MIT */
/*
 * -ln x by integers.  With m = 2k + 1 and x = m / 2^54, normalise m = F * 2^e,
 * F in [sqrt(1/2), sqrt(2)); then -ln x = (54 - e) ln 2 - ln F and
 * ln F = 2 atanh(s), s = (F - 1) / (F + 1), |s| <= 0.1716.  The series
 * s (1 + s^2/3 + s^4/5 + ...) needs 13 terms for 2^-62.
 *
 * Fixed point: s, s^2 and the sum with 62 fractional bits, the result with 58
 * (it is below 37.5).  Its error is below 2^-56, which moves a gap by less than
 * one byte in 2^16 draws even at the longest period.
 */
#include "agent/thread/sampler.h"

#include "base/wide.h"
#include "format/layout.h"

#include "agent/sys/poison.h"

#define ONE_Q62      (1ull << 62)
#define LN2_Q64      0xb17217f7d1cf79abull /* floor(ln 2 * 2^64) */
#define SQRT2_Q63    0xb504f333f9de6484ull
#define TERMS        13
#define NEVER        ((1ull << 63) - 1) /* a gap */
#define DOTNET_TERMS 20                 /* 9^-20 < 2^-62 */
#define WEIGHT_TERMS 18                 /* 0.58^18 / 19! < 2^-62 */

/* 2 atanh(s) with 58 fractional bits, s in Q62. */
static uint64_t two_atanh_q58(uint64_t s)
{
	uint64_t s2 = (uint64_t)(((sp_u128)s * s) >> 62);
	uint64_t sum = ONE_Q62 / (2 * TERMS - 1);

	for (unsigned int n = TERMS - 1; n > 0; n--)
		sum = ONE_Q62 / (2 * n - 1) +
		      (uint64_t)(((sp_u128)sum * s2) >> 62);
	return (uint64_t)(((sp_u128)s * sum) >> 65);
}

/* n ln 2 with 58 fractional bits. */
static uint64_t ln2_q58(unsigned int n)
{
	return (uint64_t)(((sp_u128)LN2_Q64 * n) >> 6);
}

/* -ln((2k + 1) / 2^54) with 58 fractional bits; x = F * 2^(9 - shift). */
static uint64_t minus_ln_q58(uint64_t k)
{
	uint64_t m = 2 * k + 1;
	unsigned int shift = (unsigned int)__builtin_clzll(m);
	uint64_t f = m << shift; /* F in [1, 2) with 63 fractional bits */
	uint64_t s;

	if (f < SQRT2_Q63) {
		/* s = (F - 1) / (F + 1) */
		s = (uint64_t)(((sp_u128)(f - (1ull << 63)) << 61) /
			       ((f >> 1) + (1ull << 62)));
		return ln2_q58(shift - 9) - two_atanh_q58(s);
	}
	/* F / 2 instead: its logarithm is negative, -s = (2 - F) / (2 + F) */
	s = (uint64_t)(((sp_u128)(0 - f) << 61) / ((f >> 1) + (1ull << 63)));
	return ln2_q58(shift - 10) + two_atanh_q58(s);
}

/* R with its leading zeros shifted out. */
static void mean_exponential(struct sp_law *law)
{
	unsigned int zeros = (unsigned int)__builtin_clzll(law->period_bytes);

	law->mean = law->period_bytes << zeros;
	law->mean_shift = zeros;
}

/*
 * -ln(1 - 1/R) = 2 atanh(s) with s = 1 / (2R - 1) <= 1/3, so that the mean is
 * (2R - 1) / 2 divided by T = 1 + s^2/3 + s^4/5 + ..., 1 <= T < 1.04.
 */
static void mean_dotnet(struct sp_law *law)
{
	uint64_t n = 2 * law->period_bytes - 1;
	unsigned int zeros = (unsigned int)__builtin_clzll(n);
	uint64_t s2 = ONE_Q62 / n / n;
	uint64_t t = 0;

	for (unsigned int i = DOTNET_TERMS; i-- > 0;)
		t = ONE_Q62 / (2 * i + 1) + (uint64_t)(((sp_u128)t * s2) >> 62);
	law->mean = (uint64_t)(((sp_u128)(n << zeros) << 62) / t);
	law->mean_shift = zeros + 1;
}

void sp_law_init(struct sp_law *ret, enum sp_law_kind kind,
		 uint64_t period_bytes)
{
	ret->period_bytes = period_bytes;
	ret->always_bytes = sp_format_always_bytes(period_bytes);
	if (kind == SP_LAW_DOTNET)
		mean_dotnet(ret);
	else
		mean_exponential(ret);
}

uint64_t sp_law_gap(const struct sp_law *law, uint64_t k)
{
	if (law->period_bytes <= 1)
		return 0;
	return (uint64_t)(((sp_u128)minus_ln_q58(k) * law->mean) >>
			  (58 + law->mean_shift));
}

/*
 * With R = mean * 2^-shift, x = size / R and g(x) = (1 - e^-x) / x the weight
 * is R / g(x).  x is less than ln 100; x / 8 <= 0.58 is small enough for the
 * series g(y) = 1 - y/2 (1 - y/3 (1 - y/4 ...)), and g(2y) = g(y) (1 + e^-y)
 * / 2.
 */
uint64_t sp_law_weight(const struct sp_law *law, uint64_t size_bytes,
		       uint64_t random)
{
	uint64_t y, g = ONE_Q62;
	sp_u128 mean;

	if (law->period_bytes <= 1 || size_bytes >= law->always_bytes)
		return size_bytes;
	y = (uint64_t)(((sp_u128)size_bytes << (59 + law->mean_shift)) /
		       law->mean);
	for (unsigned int n = WEIGHT_TERMS; n > 1; n--)
		g = ONE_Q62 - (uint64_t)(((sp_u128)g * y) >> 62) / n;
	for (unsigned int i = 0; i < 3; i++, y *= 2) {
		const uint64_t m = (uint64_t)(((sp_u128)g * y) >> 62);

		g = (uint64_t)(((sp_u128)g * (ONE_Q62 - m / 2)) >> 62);
	}
	mean = ((sp_u128)law->mean << 62) >> law->mean_shift;
	/* The remainder decides, by chance, whether it is rounded up. */
	return (uint64_t)((mean + (((sp_u128)random * g) >> 64)) / g);
}

static void draw_gap(struct sp_sampler *sampler)
{
	const struct sp_law *law = sampler->law;
	uint64_t cap = law->always_bytes - 1;

	sampler->gap = law->period_bytes ? 0 : NEVER;
	sampler->is_hollow = false;
	if (law->period_bytes <= 1)
		return;
	sampler->gap = sp_law_gap(law, sp_rng_next(&sampler->rng) >> 11);
	if (sampler->gap >= cap) {
		sampler->gap = cap;
		sampler->is_hollow = true;
	}
}

void sp_sampler_begin(struct sp_sampler *sampler, const struct sp_law *law,
		      uint64_t seed, uint32_t generation, uint32_t thread)
{
	sp_rng_init(&sampler->rng, seed, ((uint64_t)generation << 32) | thread);
	sampler->law = law;
	draw_gap(sampler);
}

void sp_sampler_change(struct sp_sampler *sampler, const struct sp_law *law)
{
	sampler->law = law;
	draw_gap(sampler);
}

void sp_sampler_skip(struct sp_sampler *sampler, uint64_t used)
{
	sampler->gap -= used < sampler->gap ? used : sampler->gap;
}

/* Let `bytes` pass up to the hit byte: true if it is one of them, the gap is
 * then left as it was. */
static bool pass_bytes(struct sp_sampler *sampler, uint64_t bytes,
		       uint64_t *ret_offset)
{
	uint64_t left = bytes;

	while (sampler->is_hollow && sampler->gap <= left) {
		left -= sampler->gap;
		draw_gap(sampler);
	}
	if (sampler->gap < left) {
		*ret_offset = bytes - left + sampler->gap;
		return true;
	}
	sampler->gap -= left;
	return false;
}

bool sp_sampler_pass(struct sp_sampler *sampler, uint64_t used,
		     uint64_t size_bytes, uint64_t *ret_offset)
{
	*ret_offset = 0;
	if (sampler->law->period_bytes <= 1)
		return sampler->law->period_bytes;
	/* A signal handler may have allocated past the hit byte while this
	 * object was on its way here: then its first byte takes the hit. */
	if (pass_bytes(sampler, used, ret_offset)) {
		*ret_offset = 0;
		sampler->gap = 0;
	}
	if (size_bytes >= sampler->law->always_bytes)
		return true;
	if (!pass_bytes(sampler, size_bytes, ret_offset))
		return false;
	draw_gap(sampler);
	return true;
}
