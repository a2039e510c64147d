/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "base/rng.h"
#include "lab/trace.h"

/*
 * Programs made up to show what a way of sampling does well or badly.  They
 * last ten seconds, one of them a minute.
 */
struct sp_lab_workload {
	const char *name;
	const char *about; /* one line */
	/* Sites, threads, focus and allocations; 0 or -ENOMEM. */
	int (*make)(struct sp_lab_trace *trace, uint64_t samples,
		    struct sp_rng *rng);
};

/* The one behind the last has no name. */
extern const struct sp_lab_workload sp_lab_workloads[];

/* NULL: there is none of that name. */
const struct sp_lab_workload *sp_lab_workload_find(const char *name);

/*
 * The trace, complete; `samples` >= 1 is the budget, with which one of them
 * resonates.  0, to be freed by the caller, or -ENOMEM.
 */
int sp_lab_workload_make(const struct sp_lab_workload *workload,
			 uint64_t samples, uint64_t seed,
			 struct sp_lab_trace *ret);
