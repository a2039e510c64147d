/* SPDX-License-Identifier: MIT */
/* Every function of every stack has to have its number before the first stack
 * is written: the symbolizer is asked twice, and remembers. */
#include "export/format.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "report/calls.h"
#include "stats/adjust.h"
#include "text/json.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct writer {
	struct sp_json json;
	const struct sp_aggregate *aggregate;
	const struct sp_profile *profile;
	struct sp_intern strings;
	struct sp_intern functions; /* name and file, numbers of strings */
	struct sp_calls calls;
	int error; /* negative errno, once there was one */
};

/* One profile of the file. */
struct part {
	const char *name;
	const struct sp_sums *sums;
};

static uint32_t intern_bytes(struct writer *w, struct sp_intern *table,
			     const void *bytes, size_t n)
{
	uint32_t number = 0;
	int r = sp_intern_add(table, bytes, n, &number);

	if (r < 0)
		w->error = r;
	return number;
}

/* The number of a function, known by its name and its source file. */
static uint32_t number_of(struct writer *w, const char *name, const char *file)
{
	const char *path = file ? file : "";
	const uint32_t key[2] = {
		intern_bytes(w, &w->strings, name, strlen(name)),
		intern_bytes(w, &w->strings, path, strlen(path))};

	return intern_bytes(w, &w->functions, key, sizeof(key));
}

/* The functions of a stack, outermost first, into the file or, without
 * `json`, into the table. */
static void put_stack(struct writer *w, const struct sp_stack *stack,
		      struct sp_json *json)
{
	if (sp_calls_read(&w->calls, w->aggregate, stack) < 0)
		w->error = -ENOMEM;
	for (size_t i = w->calls.n; i-- > 0;) {
		const struct sp_symbol *symbol = w->calls.at[i].symbol;
		const uint32_t number =
			number_of(w, sp_aggregate_name(w->aggregate, symbol),
				  symbol->file);

		if (json)
			sp_json_u64(json, NULL, number);
	}
}

static void put_frames(struct writer *w)
{
	struct sp_json *json = &w->json;

	sp_json_open(json, "shared", '{');
	sp_json_open(json, "frames", '[');
	for (uint32_t i = 0; i < w->functions.n_entries; i++) {
		const uint32_t *key = SP_INTERN_AT(&w->functions, i, uint32_t);
		const char *file = sp_intern_bytes(&w->strings, key[1]);

		sp_json_open_flat(json, NULL, '{');
		sp_json_string(json, "name",
			       sp_intern_bytes(&w->strings, key[0]));
		if (*file)
			sp_json_string(json, "file", file);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

static uint64_t stack_weight(const struct writer *w, const struct part *part,
			     size_t stack)
{
	const size_t n = w->profile->n_stacks;
	const uint64_t hash = sp_hash_word(sp_export_seed(w->profile), stack);

	return (uint64_t)sp_export_round(
		sp_adjusted(&w->aggregate->analysis->how,
			    &part->sums->stacks[stack])
			.est_bytes,
		hash, INT64_MAX / (int64_t)(n + 1));
}

static void put_part(struct writer *w, const struct part *part)
{
	const struct sp_profile *p = w->profile;
	struct sp_json *json = &w->json;
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_stacks; i++)
		sum += stack_weight(w, part, i);
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "type", "sampled");
	sp_json_string(json, "name", part->name);
	sp_json_string(json, "unit", "bytes");
	sp_json_u64(json, "startValue", 0);
	sp_json_u64(json, "endValue", sum);
	sp_json_open(json, "samples", '[');
	for (size_t i = 0; i < p->n_stacks; i++) {
		if (!part->sums->stacks[i].all.samples)
			continue;
		sp_json_open_flat(json, NULL, '[');
		put_stack(w, &p->stacks[i], json);
		sp_json_close(json, ']');
	}
	sp_json_close(json, ']');
	sp_json_open_flat(json, "weights", '[');
	for (size_t i = 0; i < p->n_stacks; i++)
		if (part->sums->stacks[i].all.samples)
			sp_json_u64(json, NULL, stack_weight(w, part, i));
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

static void put_file(struct writer *w, const struct part *parts, size_t n)
{
	struct sp_json *json = &w->json;

	sp_json_open(json, NULL, '{');
	sp_json_string(json, "$schema", SCHEMA);
	sp_json_string(json, "exporter", "sampleprof-report " SP_VERSION);
	sp_json_string(json, "name", w->profile->command);
	sp_json_u64(json, "activeProfileIndex",
		    parts[0].sums == w->aggregate->analysis->view ? 0 : n - 1);
	put_frames(w);
	sp_json_open(json, "profiles", '[');
	for (size_t i = 0; i < n; i++)
		put_part(w, &parts[i]);
	sp_json_close(json, ']');
	sp_json_end(json);
}

/* Allocated bytes, and the view; if they are the same, live bytes. */
static size_t choose_parts(const struct sp_analysis *a, struct part parts[2])
{
	parts[0] = (struct part){"alloc", a->alloc};
	if (a->view != a->alloc)
		parts[1] = (struct part){
			sp_view_name_of(a->profile, a->selection.view),
			a->view};
	else
		parts[1] = (struct part){"live", a->live};
	return parts[1].sums ? 2 : 1;
}

int sp_export_speedscope_write(FILE *out, const struct sp_aggregate *aggregate,
			       const struct sp_export_options *options,
			       struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	struct writer w = {
		.json = {.out = out, .is_first = true},
		.aggregate = aggregate,
		.profile = a->profile,
	};
	struct part parts[2];
	const size_t n = choose_parts(a, parts);

	(void)options;
	(void)number_of(&w, SP_LABEL_NO_STACK, NULL); /* always the first */
	/* Live samples may have call stacks that no other has (has_survivors).
	 */
	for (size_t i = 0; i < a->profile->n_stacks && !w.error; i++)
		if (parts[0].sums->stacks[i].all.samples ||
		    parts[n - 1].sums->stacks[i].all.samples)
			put_stack(&w, &a->profile->stacks[i], NULL);
	if (!w.error)
		put_file(&w, parts, n);
	if (w.error)
		sp_error_memory(err, a->profile->path);
	sp_intern_done(&w.strings);
	sp_intern_done(&w.functions);
	sp_calls_done(&w.calls);
	return w.error;
}
