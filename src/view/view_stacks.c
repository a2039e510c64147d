/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "model/whole.h"
#include "report/calls.h"
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

struct reading {
	struct sp_calls calls;
	bool is_whole; /* nothing is left out */
	bool has_said; /* how to see what is left out */
};

/* How many of the functions from `i` on are left out: a run of a library's but,
 * of those that the flat one calls, the outermost and the innermost. */
static size_t left_out(const struct reading *reading, size_t i)
{
	const struct sp_calls *calls = &reading->calls;
	const bool is_inner = i < calls->flat;
	size_t end = i;

	if (i == 0 || reading->is_whole)
		return 0;
	while (end < calls->n && sp_calls_foreign(calls, end))
		end++;
	if (is_inner && end == calls->flat)
		end--;
	return end > i + FEW_LINES ? end - i : 0;
}

/* Of the library's functions few, unless all are wanted. */
static int print_frames(FILE *out, const struct sp_aggregate *aggregate,
			const struct sp_stack *stack, struct reading *reading)
{
	const struct sp_calls *calls = &reading->calls;

	if (!stack->n_frames)
		fputs("    " SP_LABEL_NO_STACK "\n", out);
	if (sp_calls_read(&reading->calls, aggregate, stack) < 0)
		return -ENOMEM;
	for (size_t i = 0; stack->n_frames && i < calls->n; i++) {
		const struct sp_call *call = &calls->at[i];
		const size_t n = left_out(reading, i);

		if (!n) {
			print_symbol(out, aggregate, call->symbol,
				     sp_aggregate_module_path(aggregate,
							      call->frame));
			continue;
		}
		fprintf(out, "    ... %zu library functions%s\n", n,
			reading->has_said ? "" : ": see --all-frames");
		reading->has_said = true;
		i += n - 1;
	}
	if (stack->flags & SP_STACK_TRUNCATED)
		fputs("    ... deeper than SAMPLEPROF_DEPTH\n", out);
	if (stack->flags & SP_STACK_CALLER_ONLY)
		fputs("    ... only the calling function is known\n", out);
	if (stack->flags & SP_STACK_NO_POINTER)
		fputs("    ... its callers are not known\n", out);
	return 0;
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

static int print_stack(FILE *out, const struct sp_aggregate *aggregate,
		       size_t number, const struct sp_lifetime *lifetimes,
		       struct reading *reading)
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
	return print_frames(out, aggregate, stack->stack, reading);
}

int sp_view_stacks_print(FILE *out, const struct sp_aggregate *aggregate,
			 size_t n_max, bool is_whole, struct sp_error *err)
{
	struct reading reading = {.is_whole = is_whole};
	struct sp_lifetime *functions = NULL, *stacks = NULL;
	size_t n = aggregate->n_stacks;
	int r = 0;

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
	for (size_t i = 0; i < n && !r; i++)
		r = print_stack(out, aggregate, i + 1, stacks, &reading);
	if (r < 0)
		sp_error_memory(err, aggregate->analysis->profile->path);
	sp_calls_done(&reading.calls);
	free(functions);
	free(stacks);
	return r;
}
