/* SPDX-License-Identifier: MIT */
/*
 * Distinct frames and distinct paths are found by sorting: a hash table would
 * leave it to the file how long its chains are.
 */
#include "export/callpath.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

/* A distinct frame of the profile: texts[first], and those of the functions
 * that it was inlined into. */
struct known {
	struct sp_frame frame; /* the first, for sp_profile_compare_frames() */
	uint32_t first;
	uint32_t n;
	bool is_wanted;
};

struct builder {
	const struct sp_aggregate *aggregate;
	const struct sp_profile *profile;
	bool *wanted; /* which of the stacks */
	struct sp_callpaths *paths;
	struct known *known;
	size_t n_known;
};

/* The frame of stacks that have none. */
#define NO_STACK 1u

static struct known *find_frame(const struct builder *b, struct sp_frame frame)
{
	return bsearch(&frame, b->known, b->n_known, sizeof(*b->known),
		       sp_profile_compare_frames);
}

static int collect_frames(struct builder *b)
{
	const struct sp_profile *p = b->profile;
	struct sp_frame *frames = sp_profile_frames(p, &b->n_known);

	b->known = calloc(b->n_known + 1, sizeof(*b->known));
	for (size_t i = 0; frames && b->known && i < b->n_known; i++)
		b->known[i].frame = frames[i];
	free(frames);
	if (!frames || !b->known)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_stacks; i++)
		for (uint32_t k = 0; b->wanted[i] && k < p->stacks[i].n_frames;
		     k++)
			find_frame(b, p->stacks[i].frames[k])->is_wanted = true;
	return 0;
}

/* Of the call, which ends before the address that it returns to. */
static uint64_t call_address(const struct builder *b, struct sp_frame frame)
{
	const struct sp_module *module =
		sp_profile_module(b->profile, frame.module);
	const uint64_t address = frame.offset + (module ? module->start_pc : 0);

	return address - (address != 0);
}

static char *frame_text(const struct builder *b, struct sp_frame frame,
			const struct sp_symbol *symbol)
{
	const uint64_t address = call_address(b, frame);
	const char *module = sp_aggregate_module_path(b->aggregate, frame);
	const char *name = sp_aggregate_name(b->aggregate, symbol);
	char *text = NULL;
	int r;

	if (symbol->file)
		r = asprintf(&text, "0x%" PRIx64 ": %s (%s:%" PRIu32 ")",
			     address, name, sp_text_base_name(symbol->file),
			     symbol->line);
	else if (*module)
		r = asprintf(&text, "0x%" PRIx64 ": %s (in %s)", address, name,
			     module);
	else
		r = asprintf(&text, "0x%" PRIx64 ": %s", address, name);
	return r < 0 ? NULL : text;
}

static int add_text(struct sp_callpaths *paths, char *text)
{
	if (!text)
		return -ENOMEM;
	paths->texts[paths->n_texts++] = text;
	return 0;
}

/* The texts of all frames, and the first one of each. */
static int write_texts(struct builder *b)
{
	struct sp_callpaths *paths = b->paths;
	size_t n = NO_STACK + 1;

	for (size_t i = 0; i < b->n_known; i++)
		if (b->known[i].is_wanted)
			n += sp_aggregate_symbols(b->aggregate,
						  b->known[i].frame)
				     .count;
	if (n > UINT32_MAX)
		return -ENOMEM;
	paths->texts = calloc(n, sizeof(*paths->texts));
	if (!paths->texts || add_text(paths, strdup("[root]")) < 0 ||
	    add_text(paths, strdup(SP_LABEL_NO_STACK)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_known; i++) {
		struct known *known = &b->known[i];
		struct sp_symbols symbols = {0};

		if (known->is_wanted)
			symbols = sp_aggregate_symbols(b->aggregate,
						       known->frame);
		known->first = paths->n_texts;
		known->n = (uint32_t)symbols.count;
		for (size_t k = 0; k < symbols.count; k++)
			if (add_text(paths, frame_text(b, known->frame,
						       &symbols.symbol[k])) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* A stack's path, before equal paths are merged. */
struct candidate {
	struct sp_callpath path;
	uint32_t stack;
};

static size_t count_frames(const struct builder *b, size_t *ret_n_stacks)
{
	size_t n = 0, n_stacks = 0;

	for (size_t i = 0; i < b->profile->n_stacks; i++) {
		const struct sp_stack *stack = &b->profile->stacks[i];

		if (!b->wanted[i])
			continue;
		n_stacks++;
		n += !stack->n_frames;
		for (uint32_t k = 0; k < stack->n_frames; k++)
			n += find_frame(b, stack->frames[k])->n;
	}
	*ret_n_stacks = n_stacks;
	return n;
}

static uint32_t fill_path(const struct builder *b, const struct sp_stack *stack,
			  uint32_t *out)
{
	uint32_t n = 0;

	if (!stack->n_frames)
		out[n++] = NO_STACK;
	for (uint32_t k = 0; k < stack->n_frames; k++) {
		const struct known *known = find_frame(b, stack->frames[k]);

		for (uint32_t i = 0; i < known->n; i++)
			out[n++] = known->first + i;
	}
	return n;
}

static int compare_paths(const void *a, const void *b)
{
	const struct sp_callpath *x = &((const struct candidate *)a)->path;
	const struct sp_callpath *y = &((const struct candidate *)b)->path;

	for (uint32_t i = 0; i < x->n_frames && i < y->n_frames; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return (x->n_frames > y->n_frames) - (x->n_frames < y->n_frames);
}

static void keep_distinct(struct sp_callpaths *paths,
			  struct candidate *candidates, size_t n)
{
	qsort(candidates, n, sizeof(*candidates), compare_paths);
	for (size_t i = 0; i < n; i++) {
		if (!i || compare_paths(&candidates[i - 1], &candidates[i]))
			paths->paths[paths->n_paths++] = candidates[i].path;
		paths->path_of_stack[candidates[i].stack] = paths->n_paths - 1;
	}
}

static int write_paths(struct builder *b)
{
	struct sp_callpaths *paths = b->paths;
	const size_t n_stacks = b->profile->n_stacks;
	size_t n_wanted, n = 0, at = 0;
	const size_t n_frames = count_frames(b, &n_wanted);
	struct candidate *candidates;

	candidates = calloc(n_wanted + 1, sizeof(*candidates));
	paths->all_frames = calloc(n_frames + 1, sizeof(uint32_t));
	paths->paths = calloc(n_wanted + 1, sizeof(*paths->paths));
	paths->path_of_stack = calloc(n_stacks + 1, sizeof(uint32_t));
	if (!candidates || !paths->all_frames || !paths->paths ||
	    !paths->path_of_stack) {
		free(candidates);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_stacks; i++) {
		struct candidate *c = &candidates[n];

		paths->path_of_stack[i] = UINT32_MAX;
		if (!b->wanted[i])
			continue;
		c->stack = (uint32_t)i;
		c->path.frames = paths->all_frames + at;
		c->path.n_frames = fill_path(b, &b->profile->stacks[i],
					     paths->all_frames + at);
		at += c->path.n_frames;
		n++;
	}
	keep_distinct(paths, candidates, n);
	free(candidates);
	return 0;
}

int sp_callpaths_init(struct sp_callpaths *paths,
		      const struct sp_aggregate *aggregate,
		      const struct sp_selection *selection,
		      struct sp_error *err)
{
	struct builder b = {.aggregate = aggregate,
			    .profile = aggregate->analysis->profile,
			    .paths = paths};
	int r;

	*paths = (struct sp_callpaths){0};
	b.wanted = sp_selection_stacks(selection, b.profile);
	r = b.wanted ? collect_frames(&b) : -ENOMEM;
	if (r >= 0)
		r = write_texts(&b);
	if (r >= 0)
		r = write_paths(&b);
	free(b.known);
	free(b.wanted);
	if (r >= 0)
		return 0;
	sp_callpaths_done(paths);
	return sp_error_memory(err, b.profile->path);
}

void sp_callpaths_done(struct sp_callpaths *paths)
{
	for (uint32_t i = 0; i < paths->n_texts; i++)
		free(paths->texts[i]);
	free(paths->texts);
	free(paths->paths);
	free(paths->path_of_stack);
	free(paths->all_frames);
}
