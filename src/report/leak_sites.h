/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/aggregate.h"
#include "stats/leaks.h"

/* A row of an aggregate with its verdict. */
struct sp_leak_site {
	const struct sp_aggregate_function *function; /* NULL: the program */
	const struct sp_leak *leak;
	/* Growth after the start by second, and by MiB that the program
	 * allocated meanwhile; 95 %. */
	struct sp_interval per_s;
	struct sp_interval per_mib;
	uint64_t samples; /* from which both are estimated */
	/* If undecided: the length of a run that would probably decide, and the
	 * period that would; 0: unknown, or it would not help. */
	uint64_t longer_ns;
	uint64_t period_bytes;
	/* The call stack that keeps most of the function's growth, and its
	 * share; NULL: no growth. */
	const struct sp_aggregate_stack *stack;
	double stack_share;
};

struct sp_leak_sites {
	struct sp_leaks *leaks; /* owned */
	struct sp_leak_site all;
	/* Leaks first, then undecided ones that grow, filling ones, the other
	 * undecided and the steady ones; in each group the fastest growth
	 * first. */
	struct sp_leak_site *sites;
	size_t n_sites;
	double seconds; /* after the start, until the end */
};

/*
 * `aggregate` has all allocations, and is borrowed.  Times and errors are those
 * of sp_leaks_new(); -ENODATA also if the run is too short for rates.  0 and
 * *ret, to be freed by the caller.
 */
int sp_leak_sites_new(const struct sp_aggregate *aggregate, uint64_t from_ns,
		      uint64_t to_ns, struct sp_leak_sites **ret,
		      struct sp_error *err);

void sp_leak_sites_free(struct sp_leak_sites *sites);
