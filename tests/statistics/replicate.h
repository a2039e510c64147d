/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "stats/estimate.h"
#include "program.h"

/*
 * Runs of one program under the agent's sampler, as class sums.  Objects that
 * the gap passes over cost nothing.
 */
struct replicator;

/*
 * Borrows the program, whose kinds' period is the period of the recording; a
 * second one may occur.  The exact totals lack the last late_bytes or less of
 * the largest class, as when the process was killed, and say so.
 */
struct replicator *replicator_new(const struct program *p, uint64_t late_bytes);
void replicator_free(struct replicator *r);

/* What one run recorded; valid until the next. */
struct recording {
	struct sp_class_sums subset, rest;
	/* Subset and rest together, with exact totals of their classes. */
	const struct sp_population *population;
};

void replicator_run(struct replicator *r, uint64_t seed, uint32_t run,
		    struct recording *ret);
