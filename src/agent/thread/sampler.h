/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/*
 * The sampling law (docs/statistics.md, E1-E3).  Integer arithmetic only: the
 * host may trap on floating-point exceptions or round differently.
 */
enum sp_law_kind {
	/* gap = floor(E * R), E exponential: an object of z bytes is hit with
	 * probability 1 - exp(-z / R). */
	SP_LAW_EXPONENTIAL,
	/* Each byte is hit with probability 1 / R: .NET's convention. */
	SP_LAW_DOTNET,
};

/*
 * A period with what follows from it.  Objects of always_bytes = ceil(R ln 100)
 * and more do not take part in the lottery: they are always sampled.
 */
struct sp_law {
	/* R, 1 to 2^40; 1 records everything; 0 nothing (period.h). */
	uint64_t period_bytes;
	uint64_t always_bytes; /* > 0 */
	/* Gaps are -ln(u) * mean * 2^-mean_shift: R exactly, or .NET's
	 * -1 / ln(1 - 1 / R) to within one part in 2^60. */
	uint64_t mean;
	unsigned int mean_shift;
};

/* period_bytes in 1..2^40. */
void sp_law_init(struct sp_law *ret, enum sp_law_kind kind,
		 uint64_t period_bytes);

/* The gap for the uniform u = (k + 1/2) / 2^53, k < 2^53, not yet capped; 0 for
 * period 1. */
uint64_t sp_law_gap(const struct sp_law *law, uint64_t k);

/*
 * How many allocated bytes a sample of size_bytes >= 1 stands for, size_bytes
 * divided by the probability that it was sampled (E3), as an integer whose mean
 * over uniform `random` is that.  The period is not 0.
 */
uint64_t sp_law_weight(const struct sp_law *law, uint64_t size_bytes,
		       uint64_t random);

/*
 * The lottery of one thread.  `gap` bytes remain until the hit byte; a gap of
 * always_bytes - 1 or more is held as that many with `is_hollow` set: when they
 * have passed, another is drawn (memorylessness) and no object is hit.  So gap
 * < always_bytes, and an object that is always sampled is always noticed.
 */
struct sp_sampler {
	struct sp_rng rng;
	uint64_t gap : 63;
	uint64_t is_hollow : 1;
	const struct sp_law *law; /* borrowed */
};

/* The first gap of thread `thread` (1..) of generation `generation` of a
 * process with that seed: threads and forked children are independent. */
void sp_sampler_begin(struct sp_sampler *sampler, const struct sp_law *law,
		      uint64_t seed, uint32_t generation, uint32_t thread);

/*
 * Pass `used` bytes of objects that are known to have been missed, then an
 * object of size_bytes >= 1.  True if it is sampled: *ret_offset is its hit
 * byte (0-based), and a new gap counts from the object's end.  An object that
 * is always sampled has offset 0, and its bytes do not pass.
 */
bool sp_sampler_pass(struct sp_sampler *sampler, uint64_t used,
		     uint64_t size_bytes, uint64_t *ret_offset);

/* Pass bytes of objects that are known to have been missed, and nothing else.
 */
void sp_sampler_skip(struct sp_sampler *sampler, uint64_t used);

/* Go over to another period now: the pending gap is discarded and redrawn.
 * The moment may not depend on the gap. */
void sp_sampler_change(struct sp_sampler *sampler, const struct sp_law *law);
