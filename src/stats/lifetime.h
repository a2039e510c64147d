/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "stats/sums.h"

/*
 * How long objects lived: the weighted Kaplan-Meier curve over the samples of a
 * row, each with the number of objects that it stands for (E26).  Objects that
 * were alive at the end count as having lived at least that long.
 */
struct sp_lifetime {
	uint64_t samples;
	uint64_t alive; /* of them at the end */
	/* The shortest time within which half, or nine in ten, of the objects
	 * were freed; SP_NEVER if the run was too short to tell, or if there
	 * are no samples. */
	uint64_t median_ns;
	uint64_t p90_ns;
	double alive_share; /* of the objects, weighted; in [0, 1] */
};

/*
 * Groups have to be of a plan with lifetimes: quantiles are within 1/128 of
 * those of the same profile with every sample.
 *
 * One result for each row; row_of_stack[i] is the row of profile->stacks[i],
 * UINT32_MAX for none.  `selection` chooses by birth, size and thread.  0 and
 * rows[0..n_rows), or -ENOMEM and *err.
 */
int sp_lifetimes(const struct sp_profile *profile,
		 const struct sp_selection *selection,
		 const uint32_t *row_of_stack, struct sp_lifetime *rows,
		 size_t n_rows, struct sp_error *err);
