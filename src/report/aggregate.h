/* SPDX-License-Identifier: MIT */
#ifndef SP_REPORT_AGGREGATE_H
#define SP_REPORT_AGGREGATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"
#include "profile/symbolizer.h"

/* Confidence of every interval in a report. */
#define SP_REPORT_CONFIDENCE      0.95
#define SP_REPORT_CONFIDENCE_TEXT "95 %"

/*
 * A function over all call stacks, known by its demangled name and the path of
 * its module.  Estimates are made from the merged accumulators when they are
 * shown: limits of estimates do not add up.
 */
struct sp_aggregate_function {
	const char *name;
	const char *module; /* path; "" if the code is in no module */
	const char *file;   /* of the line in the heaviest stack, or NULL */
	uint32_t line;      /* 0: unknown */
	struct sp_acc flat; /* samples whose innermost function this is, not
			     * counting operator new and std::allocator */
	struct sp_acc cum;  /* samples with it anywhere, recursion counted
			     * once */
};

enum sp_aggregate_order {
	SP_AGGREGATE_BY_FLAT,
	SP_AGGREGATE_BY_CUM,
};

/*
 * Functions and stacks with at least one sample.  Samples without a stack
 * belong to the function SP_AGGREGATE_NO_STACK, so that the flat accumulators
 * of all functions add up to those of all stacks.  All text is borrowed from
 * the profile and the symbolizer, which have to outlive the aggregate.
 */
struct sp_aggregate {
	const struct sp_profile *profile;
	struct sp_symbolizer *symbolizer;
	struct sp_aggregate_function *functions;
	size_t n_functions;
	const struct sp_stack **stacks; /* most bytes first, then by names */
	size_t n_stacks;
};

#define SP_AGGREGATE_NO_STACK "[no stack]"

/*
 * Symbolize and sum up; functions are in SP_AGGREGATE_BY_FLAT order.
 * `progress` (may be NULL) is called as it goes, counting stacks.  0 and
 * *ret_aggregate, to be freed by the caller, or -ENOMEM and *err.
 */
int sp_aggregate_new(const struct sp_profile *profile,
		     struct sp_symbolizer *symbolizer, sp_progress_fn *progress,
		     void *progress_arg, struct sp_aggregate **ret_aggregate,
		     struct sp_error *err);

/* Order the functions: most estimated bytes first, then the other column, then
 * by name and module. */
void sp_aggregate_sort(struct sp_aggregate *aggregate,
		       enum sp_aggregate_order order);

/* Symbols of one frame of a stack, innermost first; never empty. */
struct sp_symbols sp_aggregate_symbols(const struct sp_aggregate *aggregate,
				       struct sp_frame frame);

/* Path of a frame's module; "" if it is in none. */
const char *sp_aggregate_module_path(const struct sp_aggregate *aggregate,
				     struct sp_frame frame);

void sp_aggregate_free(struct sp_aggregate *aggregate);

#endif
