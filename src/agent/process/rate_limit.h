/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/*
 * How the sampling period follows a target of samples per second
 * (docs/guide.md).  Arithmetic only: no clock, no state of its own.
 *
 * Samples are to come one `interval` apart.  `due_ns` is when the next one
 * would be due if all so far had kept to that; each sample moves it on by an
 * interval.  The lead, due_ns - now, is how far sampling is ahead of the
 * target, and the period grows with it exponentially, by a factor of 2^(1/4)
 * with each step_ns.  As time passes, lead and period shrink by themselves.
 * Sampling that is behind keeps credit_ns at most, which
 * a burst may use before its period grows.
 *
 * So the samples of any T seconds are at most target * (T + lead at the end +
 * credit), and the lead is no greater than the logarithm of the period.
 */
struct sp_rate_limit {
	uint64_t interval_ns; /* 10^9 / target; 0: there is no target */
	uint64_t credit_ns;
	uint64_t step_ns;
};

/* From a period of 1 to 2^40, four to a doubling. */
#define SP_RATE_LIMIT_STEPS_MAX 160u

/* samples_per_s in 0..SP_PARSE_RATE_MAX; 0: no target. */
void sp_rate_limit_init(struct sp_rate_limit *ret, uint64_t samples_per_s);

/* A sample was taken at now_ns, of any clock that does not go back: due_ns from
 * then on.  At first it is 0. */
uint64_t sp_rate_limit_charge(const struct sp_rate_limit *rate_limit,
			      uint64_t due_ns, uint64_t now_ns);

/*
 * The step of the period now, 0..SP_RATE_LIMIT_STEPS_MAX, after it was `step`:
 * it rises at once, and falls when the lead has shrunk by more than a step, so
 * that a steady program does not go to and fro between two.
 */
unsigned int sp_rate_limit_step(const struct sp_rate_limit *rate_limit,
				unsigned int step, uint64_t due_ns,
				uint64_t now_ns);

/* The period of a step in bytes: base_bytes * 2^(step / 4), at most 2^40.
 * base_bytes in 1..2^40. */
uint64_t sp_rate_limit_period(uint64_t base_bytes, unsigned int step);
