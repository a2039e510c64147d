/* SPDX-License-Identifier: MIT */
/*
 * Sums over functions, in one pass over the stacks.  Functions are found by
 * name and module path in a hash index, because the same name comes from many
 * addresses and the symbolizer does not promise one pointer per name.  Names
 * are long, and the same frames recur in nearly every stack, so the result for
 * a frame is cached.
 */
#include "report/aggregate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "report/calls.h"
#include "read/load.h"
#include "report/label.h"

/* Data about a function that only the pass needs. */
struct visit {
	size_t last_stack; /* 1 + the stack that counted it last */
	double heaviest;   /* bytes of the stack that gave file and line */
};

#define REMEMBERED 8192u /* a power of two */

struct remembered {
	struct sp_frame frame;
	const struct sp_symbol *symbol; /* of the frame; NULL: nothing yet */
	uint32_t index;
};

struct builder {
	struct sp_aggregate *aggregate;
	struct remembered *remembered;
	struct visit *visits;  /* of the function with the same index */
	size_t room;           /* for functions and visits */
	struct sp_index index; /* of functions */
	size_t rows_room;      /* for the paths of stacks */
	size_t foreign_room;
	struct sp_calls calls; /* of the stack */
};

/* The fields that identify a row; the others are zero. */
struct key {
	const char *name; /* all of it */
	const char *short_name;
	const char *module;
	const char *file;
	uint32_t line;
	uint64_t offset;
};

static struct key key_of(const struct sp_aggregate *a,
			 const struct sp_symbol *symbol, struct sp_frame frame)
{
	const char *module = sp_aggregate_module_path(a, frame);
	struct key key = {.name = symbol->identity ? symbol->identity
						   : symbol->function,
			  .short_name = symbol->function,
			  .module = module};

	switch (a->granularity) {
	case SP_BY_FUNCTION:
		break;
	case SP_BY_FILE:
		key.name = symbol->file ? symbol->file : SP_AGGREGATE_NO_FILE;
		key.short_name = key.name;
		key.module = symbol->file ? "" : module;
		break;
	case SP_BY_LINE:
		key.file = symbol->file;
		key.line = symbol->line;
		break;
	case SP_BY_MODULE:
		key.name = *module               ? module
			   : symbol->is_fallback ? SP_AGGREGATE_NO_MODULE
						 : SP_AGGREGATE_JIT;
		key.short_name = key.name;
		key.module = "";
		break;
	case SP_BY_ADDRESS:
		key.offset = frame.offset;
		break;
	}
	return key;
}

static uint64_t hash_key(const struct key *key)
{
	uint64_t h = sp_hash_bytes(0, key->name, strlen(key->name) + 1);

	h = sp_hash_bytes(h, key->module, strlen(key->module) + 1);
	if (key->file)
		h = sp_hash_bytes(h, key->file, strlen(key->file));
	h = sp_hash_word(h, key->line);
	return sp_hash_word(h, key->offset);
}

/* Room for one more function in both arrays and in the index. */
static int reserve_functions(struct builder *b)
{
	struct sp_aggregate *a = b->aggregate;
	size_t room = 2 * b->room + 64;
	void *grown;

	if (sp_index_reserve(&b->index) < 0)
		return -ENOMEM;
	if (a->n_functions < b->room)
		return 0;
	if (room > UINT32_MAX)
		return -ENOMEM;
	grown = realloc(a->functions, room * sizeof(*a->functions));
	if (!grown)
		return -ENOMEM;
	a->functions = grown;
	grown = realloc(b->visits, room * sizeof(*b->visits));
	if (!grown)
		return -ENOMEM;
	b->visits = grown;
	b->room = room;
	return 0;
}

static void add_empty(struct sp_aggregate *a, size_t index,
		      const struct key *key)
{
	const uint64_t period_bytes = a->analysis->profile->period_bytes;
	struct sp_aggregate_function *f = &a->functions[index];

	*f = (struct sp_aggregate_function){.name = key->short_name,
					    .identity = key->name,
					    .short_name = key->short_name,
					    .module = key->module,
					    .file = key->file,
					    .line = key->line,
					    .offset = key->offset,
					    .row = (uint32_t)index};
	sp_class_sums_init(&f->flat, period_bytes);
	sp_class_sums_init(&f->cum, period_bytes);
	sp_class_sums_init(&f->live, period_bytes);
	sp_class_sums_judge(&f->flat, &a->analysis->view->all);
	sp_class_sums_judge(&f->cum, &a->analysis->view->all);
	if (a->analysis->live)
		sp_class_sums_judge(&f->live, &a->analysis->live->all);
}

static bool has_key(const struct sp_aggregate *a,
		    const struct sp_aggregate_function *f,
		    const struct key *key)
{
	if (strcmp(f->identity, key->name) != 0 ||
	    strcmp(f->module, key->module) != 0 || f->offset != key->offset)
		return false;
	return a->granularity != SP_BY_LINE ||
	       (f->line == key->line &&
		!strcmp(f->file ? f->file : "", key->file ? key->file : ""));
}

/* Index of the function, new if need be; negative errno. */
static int find_by_name(struct builder *b, const struct key *key,
			size_t *ret_index)
{
	struct sp_aggregate *a = b->aggregate;
	struct sp_index_probe probe = sp_index_begin(hash_key(key));
	int r = reserve_functions(b);

	if (r < 0)
		return r;
	while (sp_index_next(&b->index, &probe)) {
		*ret_index = probe.position;
		if (has_key(a, &a->functions[probe.position], key))
			return 0;
	}
	*ret_index = a->n_functions++;
	sp_index_put(&b->index, &probe, *ret_index);
	b->visits[*ret_index] = (struct visit){.heaviest = -1};
	add_empty(a, *ret_index, key);
	return 0;
}

/* The same for a frame's symbol. */
static int find_function(struct builder *b, const struct sp_symbol *symbol,
			 struct sp_frame frame, size_t *ret_index)
{
	const uint64_t h = sp_hash_word(
		sp_hash_word(frame.module, frame.offset), (uintptr_t)symbol);
	struct remembered *last = &b->remembered[h & (REMEMBERED - 1)];
	struct sp_aggregate_function *f;
	struct key key;
	int r;

	if (last->symbol == symbol && last->frame.module == frame.module &&
	    last->frame.offset == frame.offset) {
		*ret_index = last->index;
		return 0;
	}
	key = key_of(b->aggregate, symbol, frame);
	r = find_by_name(b, &key, ret_index);
	if (r < 0)
		return r;
	f = &b->aggregate->functions[*ret_index];
	f->role = symbol->role;
	f->is_embedded |= symbol->is_embedded;
	*last = (struct remembered){frame, symbol, (uint32_t)*ret_index};
	return 0;
}

/* Add a stack's samples to the function for which it is flat. */
static int add_flat(struct sp_aggregate *a, size_t stack_number, size_t index)
{
	const struct sp_aggregate_stack *stack = &a->stacks[stack_number - 1];
	struct sp_aggregate_function *f = &a->functions[index];
	size_t position = (size_t)(stack->stack - a->analysis->profile->stacks);

	a->row_of_stack[position] = (uint32_t)index;
	if (sp_class_sums_merge(&f->flat, stack->sums) < 0)
		return -ENOMEM;
	return stack->live ? sp_class_sums_merge(&f->live, stack->live) : 0;
}

/* Do rows that follow each other in a stack become one? */
static bool is_merged(const struct sp_aggregate *a)
{
	return a->granularity == SP_BY_FILE || a->granularity == SP_BY_MODULE;
}

static int append_row(struct builder *b, uint32_t row, bool is_foreign)
{
	struct sp_aggregate *a = b->aggregate;

	if (sp_array_reserve((void **)&a->rows, &b->rows_room, a->n_rows,
			     sizeof(*a->rows)) < 0 ||
	    sp_array_reserve((void **)&a->is_foreign, &b->foreign_room,
			     a->n_rows, sizeof(*a->is_foreign)) < 0)
		return -ENOMEM;
	a->is_foreign[a->n_rows] = is_foreign;
	a->rows[a->n_rows++] = row;
	return 0;
}

/* One more row of the stack's path, which begins with the flat one. */
static int add_to_path(struct builder *b, struct sp_aggregate_stack *stack,
		       uint32_t row, bool is_flat, bool is_foreign)
{
	struct sp_aggregate *a = b->aggregate;
	const bool is_repeated = stack->n_inner + stack->n_rows &&
				 a->rows[a->n_rows - 1] == row && is_merged(a);

	if (is_repeated && is_flat && stack->n_inner) {
		stack->n_inner--;
		a->n_rows--;
	} else if (is_repeated) {
		a->is_foreign[a->n_rows - 1] &= is_foreign;
		return 0;
	}
	if (is_flat)
		stack->first_row = a->n_rows;
	if (is_flat || stack->n_rows)
		stack->n_rows++;
	else
		stack->n_inner++;
	return append_row(b, row, is_foreign);
}

/* The heaviest stack says on which line of a function most happens; of stacks
 * that are as heavy, in whatever order they come, the one with the first line.
 */
static void note_line(struct builder *b, size_t index,
		      const struct sp_symbol *symbol, double bytes)
{
	struct sp_aggregate_function *f = &b->aggregate->functions[index];
	const bool is_first = bytes == b->visits[index].heaviest &&
			      symbol->line < f->line && symbol->file &&
			      f->file && !strcmp(symbol->file, f->file);

	if (b->aggregate->granularity == SP_BY_LINE ||
	    !(bytes > b->visits[index].heaviest || is_first))
		return;
	b->visits[index].heaviest = bytes;
	f->file = symbol->file;
	f->line = symbol->line;
}

static int add_function(struct builder *b, size_t stack_number, size_t call)
{
	struct sp_aggregate *a = b->aggregate;
	const struct sp_symbol *symbol = b->calls.at[call].symbol;
	const bool is_flat = call == b->calls.flat;
	struct sp_aggregate_stack *stack = &a->stacks[stack_number - 1];
	struct visit *visit;
	bool is_started;
	size_t index;
	int r = find_function(b, symbol, b->calls.at[call].frame, &index);

	if (r < 0)
		return r;
	a->functions[index].is_own |= !sp_calls_foreign(&b->calls, call);
	if (is_flat && add_flat(a, stack_number, index) < 0)
		return -ENOMEM;
	is_started = stack->n_inner || stack->n_rows;
	if ((is_flat || is_started || symbol->role != SP_ROLE_ALLOCATOR) &&
	    add_to_path(b, stack, (uint32_t)index, is_flat,
			sp_calls_foreign(&b->calls, call)) < 0)
		return -ENOMEM;
	visit = &b->visits[index];
	if (visit->last_stack == stack_number)
		return 0;
	visit->last_stack = stack_number;
	if (sp_class_sums_merge(&a->functions[index].cum, stack->sums) < 0)
		return -ENOMEM;
	note_line(b, index, symbol, stack->sums->all.est_bytes);
	return 0;
}

static int add_stack(struct builder *b, size_t stack_number)
{
	const struct sp_aggregate *a = b->aggregate;
	struct sp_aggregate_stack *of = &a->stacks[stack_number - 1];
	const struct sp_calls *calls = &b->calls;
	int r = sp_calls_read(&b->calls, a, of->stack);

	if (r < 0)
		return r;
	of->flat_module = calls->at[calls->flat].frame.module;
	of->flat_is_unnamed = calls->at[calls->flat].symbol->is_fallback;
	for (size_t i = 0; !r && i < calls->n; i++) {
		const struct sp_call *call = &calls->at[i];

		if (call->symbol->is_fallback)
			of->unnamed_modules |=
				1ull
				<< (call->frame.module < 63 ? call->frame.module
							    : 63);
		r = add_function(b, stack_number, i);
	}
	return r;
}

/* By bytes; ties by the names in the stacks, so that the order says something
 * about the program and not about the file. */
static int compare_stacks(const void *a, const void *b, void *arg)
{
	const struct sp_aggregate *aggregate = arg;
	const struct sp_aggregate_stack *ra = a, *rb = b;
	const struct sp_stack *sa = ra->stack, *sb = rb->stack;
	int c = sp_aggregate_compare_values(ra->bytes, rb->bytes);

	for (uint32_t i = 0; !c && i < sa->n_frames && i < sb->n_frames; i++) {
		struct sp_symbols a_symbols =
			sp_aggregate_symbols(aggregate, sa->frames[i]);
		struct sp_symbols b_symbols =
			sp_aggregate_symbols(aggregate, sb->frames[i]);

		for (size_t k = 0; !c && k < a_symbols.count; k++)
			c = k < b_symbols.count
				    ? strcmp(a_symbols.symbol[k].function,
					     b_symbols.symbol[k].function)
				    : 1;
		if (!c && a_symbols.count < b_symbols.count)
			c = -1;
	}
	if (!c)
		c = (sa->n_frames > sb->n_frames) -
		    (sa->n_frames < sb->n_frames);
	return c ? c : (sa->id > sb->id) - (sa->id < sb->id);
}

static int select_stacks(struct sp_aggregate *a)
{
	const struct sp_profile *profile = a->analysis->profile;
	const struct sp_sums *view = a->analysis->view;
	const struct sp_sums *live = a->analysis->live;

	a->stacks = calloc(profile->n_stacks + 1, sizeof(*a->stacks));
	a->row_of_stack =
		malloc((profile->n_stacks + 1) * sizeof(*a->row_of_stack));
	if (!a->stacks || !a->row_of_stack)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		a->row_of_stack[i] = UINT32_MAX;
		if (!view->stacks[i].all.samples)
			continue;
		a->stacks[a->n_stacks++] = (struct sp_aggregate_stack){
			.stack = &profile->stacks[i],
			.sums = &view->stacks[i],
			.live = live ? &live->stacks[i] : NULL,
		};
	}
	return 0;
}

static int build_rows(struct sp_aggregate *a, sp_progress_fn *progress,
		      void *progress_arg)
{
	struct builder b = {
		.aggregate = a,
		.remembered = calloc(REMEMBERED, sizeof(*b.remembered)),
	};
	int r = b.remembered ? select_stacks(a) : -ENOMEM;

	for (size_t i = 0; !r && i < a->n_stacks; i++) {
		r = add_stack(&b, i + 1);
		if (progress)
			progress(progress_arg, i + 1, a->n_stacks);
	}
	free(b.visits);
	sp_index_done(&b.index);
	free(b.remembered);
	sp_calls_done(&b.calls);
	return r;
}

static void estimate_values(struct sp_aggregate *a)
{
	for (size_t i = 0; i < a->n_functions; i++) {
		struct sp_aggregate_function *f = &a->functions[i];

		f->flat_bytes = sp_estimate_bytes_value(&a->how, &f->flat);
		f->cum_bytes = sp_estimate_bytes_value(&a->how, &f->cum);
		f->flat_objects = sp_estimate_objects_value(&a->how, &f->flat);
		f->cum_objects = sp_estimate_objects_value(&a->how, &f->cum);
	}
	for (size_t i = 0; i < a->n_stacks; i++)
		a->stacks[i].bytes =
			sp_estimate_bytes_value(&a->how, a->stacks[i].sums);
}

int sp_aggregate_new(const struct sp_analysis *analysis,
		     struct sp_symbolizer *symbolizer, sp_progress_fn *progress,
		     void *progress_arg, struct sp_aggregate **ret_aggregate,
		     struct sp_error *err)
{
	return sp_aggregate_new_by(analysis, symbolizer, SP_BY_FUNCTION,
				   progress, progress_arg, ret_aggregate, err);
}

int sp_aggregate_new_by(const struct sp_analysis *analysis,
			struct sp_symbolizer *symbolizer,
			enum sp_granularity granularity,
			sp_progress_fn *progress, void *progress_arg,
			struct sp_aggregate **ret_aggregate,
			struct sp_error *err)
{
	struct sp_aggregate *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	if (a) {
		a->analysis = analysis;
		a->symbolizer = symbolizer;
		a->granularity = granularity;
		a->how = analysis->how;
		a->labels.are_full =
			sp_symbolizer_options_of(symbolizer)->full_names;
		r = build_rows(a, progress, progress_arg);
		if (!r)
			r = sp_aggregate_label(a);
		a->place_of_row =
			malloc((a->n_functions + 1) * sizeof(uint32_t));
		if (!a->place_of_row)
			r = -ENOMEM;
	}
	if (r < 0) {
		sp_aggregate_free(a);
		return sp_error_memory(err, analysis->profile->path);
	}
	estimate_values(a);
	qsort_r(a->stacks, a->n_stacks, sizeof(*a->stacks), compare_stacks, a);
	sp_aggregate_sort(a, SP_AGGREGATE_BY_FLAT);
	*ret_aggregate = a;
	return 0;
}

int sp_aggregate_lifetimes(const struct sp_aggregate *aggregate,
			   struct sp_lifetime **ret_functions,
			   struct sp_lifetime **ret_stacks,
			   struct sp_error *err)
{
	const struct sp_analysis *a = aggregate->analysis;
	const size_t n_stacks = a->profile->n_stacks;
	const size_t n_functions =
		aggregate->n_functions + aggregate->n_dropped;
	struct sp_lifetime *functions, *stacks;
	uint32_t *each = malloc((n_stacks + 1) * sizeof(*each));
	int r = -ENOMEM;

	functions = calloc(n_functions + 1, sizeof(*functions));
	stacks = calloc(n_stacks + 1, sizeof(*stacks));
	if (!each || !functions || !stacks) {
		sp_error_memory(err, a->profile->path);
		goto out;
	}
	for (size_t i = 0; i < n_stacks; i++)
		each[i] = (uint32_t)i;
	r = sp_lifetimes(a->profile, &a->selection, aggregate->row_of_stack,
			 functions, n_functions, err);
	if (r >= 0)
		r = sp_lifetimes(a->profile, &a->selection, each, stacks,
				 n_stacks, err);
out:
	free(each);
	if (r < 0) {
		free(functions);
		free(stacks);
		return r;
	}
	*ret_functions = functions;
	*ret_stacks = stacks;
	return 0;
}

struct sp_symbols sp_aggregate_symbols(const struct sp_aggregate *aggregate,
				       struct sp_frame frame)
{
	const struct sp_filter *filter = aggregate->analysis->filter;

	return filter ? sp_filter_symbols(filter, frame)
		      : sp_symbolizer_lookup(aggregate->symbolizer, frame,
					     true);
}

const char *sp_aggregate_module_path(const struct sp_aggregate *aggregate,
				     struct sp_frame frame)
{
	const struct sp_module *module =
		sp_profile_module(aggregate->analysis->profile, frame.module);

	return module ? module->path : "";
}

void sp_aggregate_free(struct sp_aggregate *aggregate)
{
	if (!aggregate)
		return;
	for (size_t i = 0; i < aggregate->n_functions + aggregate->n_dropped;
	     i++) {
		sp_class_sums_free(&aggregate->functions[i].flat);
		sp_class_sums_free(&aggregate->functions[i].cum);
		sp_class_sums_free(&aggregate->functions[i].live);
	}
	sp_labels_done(&aggregate->labels);
	free(aggregate->functions);
	free(aggregate->stacks);
	free(aggregate->row_of_stack);
	free(aggregate->place_of_row);
	free(aggregate->rows);
	free(aggregate->is_foreign);
	free(aggregate);
}
