/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "stats/estimator.h"

/* The samples of a set that have one value of something: size, lifetime, ... */
struct sp_value_group {
	double value;
	struct sp_acc acc;
};

/*
 * The value that `share` in (0, 1) of the bytes of the set do not exceed, with
 * limits at `confidence` (E20).  Groups are given by ascending value, n >= 1 of
 * them, each with a sample at least.  A limit that the samples do not bound is
 * -INFINITY or INFINITY.
 */
struct sp_interval sp_percentile(const struct sp_value_group *groups, size_t n,
				 double share, double confidence);
