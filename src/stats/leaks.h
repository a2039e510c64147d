/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "stats/leak.h"

/* Verdicts for rows of call stacks of a profile. */
struct sp_leaks {
	struct sp_leak *rows; /* n_rows, and one more: all of them */
	size_t n_rows;
	/* Of each of the profile's stacks: the bytes that it has gained, which
	 * became old after the start and are there at the end. */
	double *gained_bytes;
	struct sp_growth_clock clock; /* by time */
	/* When the program began to free all that it had, as programs do at
	 * their end: the run ends there.  SP_NEVER: it did not. */
	uint64_t teardown_ns;
	bool left_idle; /* it was idle at first or at last: left out */
	bool is_uneven; /* windows were cut by bytes, too */
	/* What the program allocated after the start, as samples have it. */
	double alloc_bytes;
	struct sp_leak_judging judging;
};

/*
 * Of what happened from from_ns until to_ns.  SP_NEVER: from when on there are
 * all samples, and until the end or the teardown, in both cases without what is
 * idle.  Rows are those of row_of_stack, one for each of the profile's stacks;
 * others belong to none.  Reads the files twice again if the profile has
 * groups.
 *
 * 0 and *ret, to be freed by the caller; -ENODATA and *err of a profile without
 * frees or times, or of a run without length; other errors are those of
 * sp_profile_walk().
 */
int sp_leaks_new(const struct sp_profile *profile, const uint32_t *row_of_stack,
		 size_t n_rows, uint64_t from_ns, uint64_t to_ns,
		 struct sp_leaks **ret, struct sp_error *err);

void sp_leaks_free(struct sp_leaks *leaks);
