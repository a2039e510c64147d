/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "read/load.h"
#include "report/analysis.h"
#include "report/label.h"
#include "stats/lifetime.h"
#include "stats/size_class_sums.h"
#include "symbols/pattern.h"
#include "symbols/symbolizer.h"

/* What a row stands for, and the fields that identify it. */
enum sp_granularity {
	SP_BY_FUNCTION, /* name, module */
	SP_BY_FILE,     /* name is the file, or the module if there is none */
	SP_BY_LINE,     /* name, module, file, line */
	SP_BY_MODULE,   /* name is the module */
	SP_BY_ADDRESS,  /* name, module, offset */
};

/* "function", "file", ...: its name; the i-th, NULL behind the last; and the
 * one of that name, false if there is none. */
const char *sp_granularity_name(enum sp_granularity granularity);
const char *sp_granularity_word(size_t i);
bool sp_granularity_parse(const char *text, enum sp_granularity *ret);

/*
 * A function over all call stacks, identified by its demangled name with
 * parameters and the path of its module, or by other fields of the granularity.
 * Estimates are made from the merged sums when they are shown, because limits
 * of estimates do not add up.
 */
struct sp_aggregate_function {
	const char *name;       /* as people read it (report/label.h) */
	const char *identity;   /* the full name */
	const char *short_name; /* without parameters; not unique */
	const char *module;     /* path; "" if the code is in no module */
	const char *file;  /* otherwise that of the heaviest stack; or NULL */
	uint32_t line;     /* 0: unknown */
	uint64_t offset;   /* in the module; of SP_BY_ADDRESS */
	uint32_t row;      /* its number, in whatever order they are */
	enum sp_role role; /* by its name alone: of a function or line */
	bool is_own;       /* in one stack or more (sp_calls_foreign()) */
	bool is_embedded;  /* at least in one stack it is the profile that names
			    * it */
	/* Samples of the view whose innermost function of the program's own
	 * this is (report/calls.h). */
	struct sp_class_sums flat;
	/* Samples of the view with it anywhere in the stack; recursion counts
	 * once. */
	struct sp_class_sums cum;
	struct sp_class_sums live; /* as flat, of live objects */
	double flat_bytes;         /* values of the estimates, for the order */
	double cum_bytes;
	double flat_objects;
	double cum_objects;
};

struct sp_aggregate_stack {
	const struct sp_stack *stack;
	const struct sp_class_sums *sums; /* of the view */
	const struct sp_class_sums *live; /* NULL without frees */
	double bytes;                     /* value of the estimate */
	/* Its rows in aggregate->rows: the flat one, its caller, ... Equal
	 * files or modules that follow each other are one row. */
	size_t first_row;
	uint32_t n_rows;
	/* Number of rows before them: those that the flat one calls, up to the
	 * innermost that is no allocator. */
	uint32_t n_inner;
	uint32_t flat_module; /* its id, of the flat one */
	bool flat_is_unnamed;
	/* Bit i < 63: a function of the module with that id has no name; bit
	 * 63: one of a module with a larger id. */
	uint64_t unnamed_modules;
};

enum sp_aggregate_order {
	SP_AGGREGATE_BY_FLAT,
	SP_AGGREGATE_BY_CUM,
	SP_AGGREGATE_BY_COUNT, /* of the objects, flat */
	SP_AGGREGATE_BY_NAME,
};

/*
 * Functions and stacks with at least one sample in the view.  Samples without a
 * stack belong to the function SP_LABEL_NO_STACK, so that the flat sums of all
 * functions add up to those of all stacks.  All text is borrowed from the
 * profile and the symbolizer.  They and the analysis must outlive the
 * aggregate.
 */
struct sp_aggregate {
	const struct sp_analysis *analysis;
	struct sp_symbolizer *symbolizer;
	enum sp_granularity granularity;
	struct sp_estimation how; /* of rows: the analysis', or raised */
	struct sp_aggregate_function *functions;
	size_t n_functions;
	size_t n_dropped; /* functions behind those (sp_aggregate_drop()) */
	uint32_t *place_of_row; /* where in `functions` sp_aggregate_at() is */
	enum sp_aggregate_order order;     /* of the functions */
	struct sp_aggregate_stack *stacks; /* most bytes first, then by names */
	size_t n_stacks;
	uint32_t *row_of_stack; /* of profile->stacks: the function for which
				 * it is flat; UINT32_MAX if it is not here */
	uint32_t *rows;         /* of all stacks: `row` of a function */
	bool *is_foreign; /* each of these: left out where the program's own
			   * functions are shown (sp_calls_foreign()) */
	size_t n_rows;
	struct sp_labels labels; /* names by which functions are shown */
};

#define SP_AGGREGATE_NO_FILE   "[no source file]"
#define SP_AGGREGATE_NO_MODULE "[no module]"
/* The module of code that a runtime generated and named. */
#define SP_AGGREGATE_JIT "[jit]"

/*
 * Symbolize and sum up; functions are in SP_AGGREGATE_BY_FLAT order.
 * `progress` (may be NULL) is called as it goes, counting stacks.  0 and
 * *ret_aggregate, to be freed by the caller, or -ENOMEM and *err.
 */
int sp_aggregate_new(const struct sp_analysis *analysis,
		     struct sp_symbolizer *symbolizer, sp_progress_fn *progress,
		     void *progress_arg, struct sp_aggregate **ret_aggregate,
		     struct sp_error *err);

/* The same at another granularity than SP_BY_FUNCTION. */
int sp_aggregate_new_by(const struct sp_analysis *analysis,
			struct sp_symbolizer *symbolizer,
			enum sp_granularity granularity,
			sp_progress_fn *progress, void *progress_arg,
			struct sp_aggregate **ret_aggregate,
			struct sp_error *err);

/* For aggregate.c: make the shown names of functions distinct. 0 or -ENOMEM. */
int sp_aggregate_label(struct sp_aggregate *aggregate);

/*
 * Make the shown names distinct also from those of another aggregate, or of the
 * same one, in all stacks of the selected births, whatever its view. 0, or
 * -ENOMEM and *err.
 */
int sp_aggregate_label_with(struct sp_aggregate *aggregate,
			    const struct sp_aggregate *other,
			    struct sp_error *err);

/* The name by which a function of a call stack is shown (`name` of struct
 * sp_aggregate_function). */
const char *sp_aggregate_name(const struct sp_aggregate *aggregate,
			      const struct sp_symbol *symbol);

/* Does the pattern match the function's name, with or without parameters?
 * Returns what sp_pattern_search() returns. */
int sp_aggregate_matches(const struct sp_aggregate_function *function,
			 const struct sp_pattern *pattern,
			 struct sp_error *err);

/* Order the functions: most estimated bytes or objects first, then the other
 * columns, then by name and module. */
void sp_aggregate_sort(struct sp_aggregate *aggregate,
		       enum sp_aggregate_order order);

/* The order by values of estimates, the larger first; those that differ by a
 * rounding are equal. */
int sp_aggregate_compare_values(double a, double b);

/* The order by identity, module, file, line, offset: less than, equal to or
 * greater than 0. */
int sp_aggregate_compare(const struct sp_aggregate_function *a,
			 const struct sp_aggregate_function *b);

/* The function with that `row`, dropped or not. */
static inline const struct sp_aggregate_function *sp_aggregate_at(
	const struct sp_aggregate *aggregate, uint32_t row)
{
	return &aggregate->functions[aggregate->place_of_row[row]];
}

/* The i-th of a stack's path: the flat one, its caller, ... */
static inline const struct sp_aggregate_function *sp_aggregate_in_path(
	const struct sp_aggregate *aggregate,
	const struct sp_aggregate_stack *stack, uint32_t i)
{
	return sp_aggregate_at(aggregate,
			       aggregate->rows[stack->first_row + i]);
}

/* The next of a stack's path behind the i-th that is the program's own; n_rows:
 * there is none. */
static inline uint32_t sp_aggregate_next_own(
	const struct sp_aggregate *aggregate,
	const struct sp_aggregate_stack *stack, uint32_t i)
{
	do
		i++;
	while (i < stack->n_rows &&
	       aggregate->is_foreign[stack->first_row + i]);
	return i;
}

/* Bytes of the whole view, or objects if these are what the order is by. */
double sp_aggregate_whole(const struct sp_aggregate *aggregate);

/*
 * Drop the functions whose `cum` is less than `share` (0..1) of that, and with
 * `only_own` those of libraries that only call others.  They move behind the
 * others, and n_dropped is their number; the order of the others stays.  Call
 * it once. 0 or -ENOMEM and *err.
 */
int sp_aggregate_drop(struct sp_aggregate *aggregate, double share,
		      bool only_own, struct sp_error *err);

/* Raise the confidence of each interval so that those of a column hold together
 * at the requested confidence (E19).  All rows count, whatever is shown of
 * them: so a row has the same limits in every table. */
void sp_aggregate_hold_together(struct sp_aggregate *aggregate);

/*
 * Lifetimes of the objects of each function (flat, at its `row`) and of each of
 * the profile's stacks.  0 and both arrays, to be freed by the caller (free()),
 * or -ENOMEM and *err.
 */
int sp_aggregate_lifetimes(const struct sp_aggregate *aggregate,
			   struct sp_lifetime **ret_functions,
			   struct sp_lifetime **ret_stacks,
			   struct sp_error *err);

/* Symbols of one frame of a stack, innermost first; never empty. */
struct sp_symbols sp_aggregate_symbols(const struct sp_aggregate *aggregate,
				       struct sp_frame frame);

/* Path of a frame's module; "" if it is in none. */
const char *sp_aggregate_module_path(const struct sp_aggregate *aggregate,
				     struct sp_frame frame);

void sp_aggregate_free(struct sp_aggregate *aggregate);
