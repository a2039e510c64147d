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
#include "agent/sampler.h"

#include "agent/poison.h"

typedef unsigned __int128 u128;

#define ONE_Q62   (1ull << 62)
#define LN2_Q64   0xb17217f7d1cf79abull /* floor(ln 2 * 2^64) */
#define SQRT2_Q63 0xb504f333f9de6484ull
#define TERMS     13

/* 2 atanh(s) with 58 fractional bits, s in Q62. */
static uint64_t two_atanh_q58(uint64_t s)
{
	uint64_t s2 = (uint64_t)(((u128)s * s) >> 62);
	uint64_t sum = ONE_Q62 / (2 * TERMS - 1);

	for (unsigned int n = TERMS - 1; n > 0; n--)
		sum = ONE_Q62 / (2 * n - 1) +
		      (uint64_t)(((u128)sum * s2) >> 62);
	return (uint64_t)(((u128)s * sum) >> 65);
}

/* n ln 2 with 58 fractional bits. */
static uint64_t ln2_q58(unsigned int n)
{
	return (uint64_t)(((u128)LN2_Q64 * n) >> 6);
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
		s = (uint64_t)(((u128)(f - (1ull << 63)) << 61) /
			       ((f >> 1) + (1ull << 62)));
		return ln2_q58(shift - 9) - two_atanh_q58(s);
	}
	/* F / 2 instead: its logarithm is negative, -s = (2 - F) / (2 + F) */
	s = (uint64_t)(((u128)(0 - f) << 61) / ((f >> 1) + (1ull << 63)));
	return ln2_q58(shift - 10) + two_atanh_q58(s);
}

uint64_t sp_sampler_gap(uint64_t k, uint64_t period_bytes)
{
	if (period_bytes <= 1)
		return 0;
	return (uint64_t)(((u128)minus_ln_q58(k) * period_bytes) >> 58);
}

uint64_t sp_sampler_draw(struct sp_rng *rng, uint64_t period_bytes)
{
	if (period_bytes <= 1)
		return 0;
	return sp_sampler_gap(sp_rng_next(rng) >> 11, period_bytes);
}

bool sp_sampler_pass(const struct sp_sampler *sampler, uint64_t used,
		     uint64_t size_bytes, uint64_t *ret_offset)
{
	uint64_t gap = *sampler->gap;

	if (gap >= used && gap - used >= size_bytes) {
		*sampler->gap = gap - used - size_bytes;
		return false;
	}
	/* A signal handler may have allocated past the hit byte while this
	 * object was on its way here: then its first byte takes the hit. */
	*ret_offset = gap >= used ? gap - used : 0;
	*sampler->gap = sp_sampler_draw(sampler->rng, sampler->period_bytes);
	return true;
}
