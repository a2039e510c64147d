/* SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>
#include <stdint.h>

#include "base/rng.h"

/* Uniform in (0, 1): 53 bits, neither end. */
static inline double sp_lab_uniform(struct sp_rng *rng)
{
	return ((double)(sp_rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

/* Exponential with mean 1. */
static inline double sp_lab_exponential(struct sp_rng *rng)
{
	return -log(sp_lab_uniform(rng));
}

/* 0 .. n - 1, n >= 1 and small. */
static inline uint32_t sp_lab_below(struct sp_rng *rng, uint32_t n)
{
	return (uint32_t)(sp_lab_uniform(rng) * n);
}
