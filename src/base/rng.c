/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

uint64_t sp_splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void sp_rng_init(struct sp_rng *rng, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed;

	/* Hashing the seed before the stream is mixed in keeps neighbouring
	 * (seed, stream) pairs from sharing outputs. */
	state = sp_splitmix64(&state) ^ (stream * 0xd1342543de82ef95ull);
	for (int i = 0; i < 4; i++)
		rng->s[i] = sp_splitmix64(&state);
	if (!(rng->s[0] | rng->s[1] | rng->s[2] | rng->s[3]))
		rng->s[0] = 1;
}

static uint64_t rotate_left(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t sp_rng_next(struct sp_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}
