/* SPDX-License-Identifier: MIT */
#pragma once

#include "stats/estimator.h"

/*
 * The bytes of a subset as other profilers estimate them (E6, E18), to compare
 * with; docs/statistics.md says what each of them assumes.  Objects that were
 * certain to be sampled are added apart: they are known, and they were no
 * trials.
 */

/* Weighted estimate, normal limits. */
struct sp_interval sp_other_weighted(const struct sp_acc *acc,
				     double confidence);

/* On which sample the tested bytes are taken to end. */
enum sp_compensation {
	SP_COMPENSATE_NONE, /* on the last one: s above, as published */
	SP_COMPENSATE_END,  /* before one: s + 1 above (E6) */
};

/*
 * Failed trials, s q / p + u, with negative binomial limits.  A mixture of
 * periods has no such law: the limits are then sp_estimate_bytes_p3()'s, and
 * the value is the weighted one.
 */
struct sp_interval sp_other_negbinom(const struct sp_acc *acc,
				     enum sp_compensation compensation,
				     double confidence);
