/* SPDX-License-Identifier: MIT */
#pragma once

#include "lab/random.h"

/* The standard normal distribution. */
static inline double draw_normal(struct sp_rng *rng)
{
	return sqrt(-2 * log(sp_lab_uniform(rng))) *
	       cos(2 * M_PI * sp_lab_uniform(rng));
}
