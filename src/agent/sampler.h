/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_SAMPLER_H
#define SP_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/*
 * The sampling law (docs/statistics.md, E1-E3): gap = floor(E * R) with E
 * exponential, so that an object of z bytes is hit with probability
 * 1 - exp(-z / R).  Integer arithmetic only: the host may trap on
 * floating-point exceptions or round differently.
 */

/* floor(-ln((k + 1/2) / 2^53) * period), for k < 2^53 and period <= 2^40;
 * 0 for period 1, which records everything. */
uint64_t sp_sampler_gap(uint64_t k, uint64_t period_bytes);

/* A fresh gap: bytes that pass before the next hit byte. */
uint64_t sp_sampler_draw(struct sp_rng *rng, uint64_t period_bytes);

/*
 * Pass `used` bytes, then an object of size_bytes >= 1.  True if the object is
 * hit: *ret_offset is its hit byte (0-based), *ret_period what the gap was
 * drawn with, and a new gap counts from the object's end (memorylessness makes
 * that legal).  Otherwise the gap shrinks by what passed.
 */
struct sp_sampler {
	struct sp_rng *rng;
	uint64_t *gap;
	uint64_t period_bytes;
};

bool sp_sampler_pass(const struct sp_sampler *sampler, uint64_t used,
		     uint64_t size_bytes, uint64_t *ret_offset);

#endif
