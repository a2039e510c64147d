/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* One output of splitmix64 (Steele, Lea, Flood 2014); advances *state. */
uint64_t sp_splitmix64(uint64_t *state);

/* xoshiro256++ 1.0 (Blackman, Vigna 2019): 256 bits of state, never all zero.
 */
struct sp_rng {
	uint64_t s[4];
};

/* An independent generator per (seed, stream): both go through splitmix64. */
void sp_rng_init(struct sp_rng *rng, uint64_t seed, uint64_t stream);

uint64_t sp_rng_next(struct sp_rng *rng);
