/* SPDX-License-Identifier: MIT */
/* Stacks of the same names, at different addresses or lines, are one line. */
#include "export/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/intern.h"
#include "report/calls.h"
#include "stats/adjust.h"
#include "text/text.h"

struct lines {
	struct sp_intern names; /* all of a line but its weight */
	double *weights;
	size_t room;
	struct sp_calls calls;
};

/* A ';' in a name would end it. */
static int print_name(FILE *out, const char *name)
{
	char *copy;

	if (!strchr(name, ';')) {
		sp_text_print(out, name);
		return 0;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	for (char *p = copy; (p = strchr(p, ';'));)
		*p = ':';
	sp_text_print(out, copy);
	free(copy);
	return 0;
}

static int print_names(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_calls *calls)
{
	int r = 0;

	for (size_t i = calls->n; !r && i-- > 0;) {
		r = print_name(
			out, sp_aggregate_name(aggregate, calls->at[i].symbol));
		if (i)
			putc(';', out);
	}
	return r;
}

static int add_line(struct lines *lines, const struct sp_aggregate *aggregate,
		    const struct sp_stack *stack, double weight)
{
	const size_t n_before = lines->names.n_entries;
	void *weights = lines->weights;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	uint32_t number;
	int r = out ? sp_calls_read(&lines->calls, aggregate, stack) : -ENOMEM;

	if (r >= 0)
		r = print_names(out, aggregate, &lines->calls);
	if (out && fclose(out) != 0)
		r = -ENOMEM;
	if (r >= 0)
		r = sp_intern_add(&lines->names, text, n, &number);
	free(text);
	if (r >= 0)
		r = sp_array_reserve(&weights, &lines->room, number,
				     sizeof(*lines->weights));
	lines->weights = weights;
	if (r < 0)
		return r;
	if (lines->names.n_entries > n_before)
		lines->weights[number] = 0;
	lines->weights[number] += weight;
	return 0;
}

static void print_lines(FILE *out, const struct lines *lines, uint64_t seed)
{
	const size_t n = lines->names.n_entries;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t hash =
			sp_hash_word(seed, lines->names.entries[i].hash);

		fprintf(out, "%s %" PRId64 "\n",
			sp_intern_bytes(&lines->names, i),
			sp_export_round(lines->weights[i], hash,
					INT64_MAX / (int64_t)(n + 1)));
	}
}

int sp_export_collapsed_write(FILE *out, const struct sp_aggregate *aggregate,
			      const struct sp_export_options *options,
			      struct sp_error *err)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	struct lines lines = {0};
	int r = 0;

	for (size_t i = 0; !r && i < aggregate->n_stacks; i++) {
		const struct sp_acc acc = sp_adjusted(
			&aggregate->analysis->how, aggregate->stacks[i].sums);

		r = add_line(&lines, aggregate, aggregate->stacks[i].stack,
			     options->of_objects ? acc.est_count
						 : acc.est_bytes);
	}
	if (r < 0)
		sp_error_memory(err, p->path);
	else
		print_lines(out, &lines, sp_export_seed(p));
	sp_intern_done(&lines.names);
	free(lines.weights);
	sp_calls_done(&lines.calls);
	return r;
}
