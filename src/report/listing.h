/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "report/aggregate.h"

/* The lines of one source file that a function has samples on. */
struct sp_listing {
	const struct sp_aggregate_function *function; /* of all its files */
	const char *file;                             /* NULL: unknown */
	/* Ascending; line 0: unknown. */
	const struct sp_aggregate_function *const *lines;
	size_t n_lines;
};

struct sp_listings {
	struct sp_listing *listings;
	size_t n_listings;
	const struct sp_aggregate_function *
		*lines; /* memory of all `lines` above */
};

/*
 * Make a listing for each function and file of the functions whose names match
 * the regular expression, in the order of `functions`.  `lines` is an aggregate
 * of the same analysis, by SP_BY_LINE. 0 and *ret, to be released by the caller
 * in any case; -ENOENT and *err if no function matches; the errors of
 * symbols/pattern.h.
 */
int sp_listings_init(struct sp_listings *ret,
		     const struct sp_aggregate *functions,
		     const struct sp_aggregate *lines, const char *regex,
		     struct sp_error *err);

void sp_listings_done(struct sp_listings *listings);
