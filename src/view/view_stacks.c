/* SPDX-License-Identifier: MIT */
#include "view/view_stacks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "model/whole.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "view/view_row.h"

static void print_symbol(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_symbol *symbol, const char *module)
{
	const char *name = sp_aggregate_name(aggregate, symbol);

	fputs("    ", out);
	sp_lines_print_name(out, name);
	if (symbol->is_inlined)
		fputs(" (inline)", out);
	if (symbol->is_clone)
		fputs(" (clone)", out);
	if (symbol->file) {
		fputs("  ", out);
		sp_lines_print_name(out, symbol->file);
		if (symbol->line)
			fprintf(out, ":%" PRIu32, symbol->line);
	}
	sp_view_row_module(out, name, module);
	putc('\n', out);
}

/* Lines that are not worth a line which says that they are left out. */
#define FEW_LINES 1

/* Of the library's functions only the outermost, which the program calls, and
 * the innermost, unless all are wanted. */
static void print_frames(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_aggregate_stack *of, bool is_whole)
{
	const size_t n_before = is_whole ? 0 : of->n_before;
	const struct sp_stack *stack = of->stack;
	size_t line = 0;

	if (!stack->n_frames)
		fputs("    " SP_LABEL_NO_STACK "\n", out);
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		struct sp_symbols symbols =
			sp_aggregate_symbols(aggregate, stack->frames[i]);
		const char *module =
			sp_aggregate_module_path(aggregate, stack->frames[i]);

		for (size_t k = 0; k < symbols.count; k++, line++) {
			const bool is_left_out = n_before > 2 + FEW_LINES &&
						 line > 0 &&
						 line < n_before - 1;

			if (!is_left_out)
				print_symbol(out, aggregate, &symbols.symbol[k],
					     module);
			else if (line == 1)
				fprintf(out,
					"    ... %zu library functions: see "
					"--all-frames\n",
					n_before - 2);
		}
	}
	if (stack->flags & SP_STACK_TRUNCATED)
		fputs("    ... deeper than SAMPLEPROF_DEPTH\n", out);
	if (stack->flags & SP_STACK_CALLER_ONLY)
		fputs("    ... only the calling function is known\n", out);
	if (stack->flags & SP_STACK_NO_POINTER)
		fputs("    ... its callers are not known\n", out);
}

/* The library reads its clock once in a microsecond.  In between its times only
 * tell which event came first: a nanosecond or two for each. */
#define CLOCK_NS 1000

static uint64_t least_age(const struct sp_profile *p)
{
	return p->time_error_ns > CLOCK_NS ? p->time_error_ns : CLOCK_NS;
}

/* From a minute on as the head has the length of the run. */
static void print_age(FILE *out, uint64_t ns, const struct sp_profile *p)
{
	const uint64_t error_ns =
		ns < CLOCK_NS ? least_age(p) : p->time_error_ns;

	fputs(ns < 60000000000 ? sp_text_moment_within(ns, error_ns).text
			       : sp_text_duration(ns).text,
	      out);
}

static void print_quantiles(FILE *out, const struct sp_lifetime *lifetime,
			    const struct sp_profile *p, uint64_t known_ns)
{
	const bool is_known = known_ns == SP_NEVER;

	if (lifetime->median_ns == SP_NEVER) {
		fputs(is_known ? "median longer than the run"
			       : "median longer than is known",
		      out);
		return;
	}
	fputs("median ", out);
	print_age(out, lifetime->median_ns, p);
	if (lifetime->p90_ns == SP_NEVER) {
		fprintf(out, ", less than 90 %% freed%s",
			is_known ? " in the run" : " as far as is known");
		return;
	}
	fputs(lifetime->p90_ns < least_age(p) ? ", 90 % " : ", 90 % at most ",
	      out);
	print_age(out, lifetime->p90_ns, p);
}

/* Of all objects of the stack, whichever of them the view shows. */
static void print_lifetime(FILE *out, const struct sp_lifetime *lifetime,
			   const struct sp_profile *p)
{
	const struct sp_whole whole = sp_whole_of(p);

	if (!lifetime->samples)
		return;
	fputs("    lifetime: ", out);
	print_quantiles(out, lifetime, p, whole.known_ns);
	fprintf(out, ", %s alive %s\n",
		sp_text_percent(lifetime->alive_share, 1).text,
		whole.known_ns == SP_NEVER ? "at the end" : "when last known");
}

static void print_stack(FILE *out, const struct sp_aggregate *aggregate,
			size_t number, const struct sp_lifetime *lifetimes,
			bool is_whole)
{
	const struct sp_analysis *a = aggregate->analysis;
	const struct sp_aggregate_stack *stack = &aggregate->stacks[number - 1];
	const uint64_t samples = stack->sums->all.samples;
	double total = sp_estimate_bytes(&a->how, a->whole).value;

	putc('\n', out);
	sp_style_begin(out, SP_STYLE_HEAD);
	fprintf(out, "#%zu  ", number);
	fprintf(out, "%s  %s\n",
		sp_text_estimate_cell(
			sp_estimate_bytes(&aggregate->how, stack->sums),
			samples)
			.text,
		sp_text_percent(stack->bytes, total).text);
	sp_style_begin(out, SP_STYLE_PLAIN);
	if (lifetimes)
		print_lifetime(out,
			       &lifetimes[stack->stack - a->profile->stacks],
			       a->profile);
	print_frames(out, aggregate, stack, is_whole);
}

int sp_view_stacks_print(FILE *out, const struct sp_aggregate *aggregate,
			 size_t n_max, bool is_whole, struct sp_error *err)
{
	struct sp_lifetime *functions = NULL, *stacks = NULL;
	size_t n = aggregate->n_stacks;
	int r;

	if (!n)
		return 0;
	if (aggregate->analysis->profile->has_frees) {
		r = sp_aggregate_lifetimes(aggregate, &functions, &stacks, err);
		if (r < 0)
			return r;
	}
	if (n_max && n_max < n)
		n = n_max;
	fprintf(out, "\nShowing %s of %s call stacks, innermost frame first:\n",
		sp_text_count(n).text, sp_text_count(aggregate->n_stacks).text);
	for (size_t i = 0; i < n; i++)
		print_stack(out, aggregate, i + 1, stacks, is_whole);
	free(functions);
	free(stacks);
	return 0;
}
