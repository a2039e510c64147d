/* SPDX-License-Identifier: MIT */
#include "report/view_stacks.h"

#include <inttypes.h>

#include "report/text.h"

static void print_symbol(FILE *out, const struct sp_symbol *symbol,
			 const char *module)
{
	fputs("    ", out);
	sp_text_print(out, symbol->function);
	if (symbol->is_inlined)
		fputs(" (inline)", out);
	if (symbol->file) {
		fputs("  ", out);
		sp_text_print(out, symbol->file);
		if (symbol->line)
			fprintf(out, ":%" PRIu32, symbol->line);
	}
	if (*module) {
		fputs("  (", out);
		sp_text_print(out, sp_text_base_name(module));
		putc(')', out);
	}
	putc('\n', out);
}

static void print_frames(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_stack *stack)
{
	if (!stack->n_frames)
		fputs("    " SP_AGGREGATE_NO_STACK "\n", out);
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		struct sp_symbols symbols =
			sp_aggregate_symbols(aggregate, stack->frames[i]);
		const char *module =
			sp_aggregate_module_path(aggregate, stack->frames[i]);

		for (size_t k = 0; k < symbols.count; k++)
			print_symbol(out, &symbols.symbol[k], module);
	}
	if (stack->flags & SP_STACK_TRUNCATED)
		fputs("    ... deeper than SAMPLEPROF_DEPTH\n", out);
	if (stack->flags & SP_STACK_CALLER_ONLY)
		fputs("    ... only the calling function is known\n", out);
}

static void print_stack(FILE *out, const struct sp_aggregate *aggregate,
			const struct sp_stack *stack, size_t number)
{
	struct sp_interval bytes =
		sp_estimate_bytes(&stack->acc, SP_REPORT_CONFIDENCE);

	fprintf(out, "\n#%zu  %s  %s  %s: %s  %s sample%s\n", number,
		sp_text_point(bytes, stack->acc.samples).text,
		sp_text_percent(bytes.value, aggregate->profile->acc.est_bytes)
			.text,
		SP_REPORT_CONFIDENCE_TEXT, sp_text_interval(bytes).text,
		sp_text_count(stack->acc.samples).text,
		stack->acc.samples == 1 ? "" : "s");
	print_frames(out, aggregate, stack);
}

void sp_view_stacks_print(FILE *out, const struct sp_aggregate *aggregate,
			  size_t n_max)
{
	size_t n = aggregate->n_stacks;

	if (!n)
		return;
	if (n_max && n_max < n)
		n = n_max;
	fprintf(out, "\nShowing %s of %s call stacks, innermost frame first:\n",
		sp_text_count(n).text, sp_text_count(aggregate->n_stacks).text);
	for (size_t i = 0; i < n; i++)
		print_stack(out, aggregate, aggregate->stacks[i], i + 1);
}
