/* SPDX-License-Identifier: MIT */
#include "report/stack_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "symbols/home.h"
#include "text/text.h"

#define ANONYMOUS "[anonymous]"

/* A function of a frame: its number among paths, and its identity's. */
struct sp_known_symbol {
	uint32_t frame, identity;
};

/* Its functions, innermost first. */
struct sp_known_frame {
	struct sp_frame frame;
	size_t first, n;
};

/* What was made of a stack. */
struct sp_stack_path {
	bool is_made;
	bool is_cut;       /* at the function that it is flat for: */
	uint32_t identity; /* of that */
	uint32_t path;
};

static int reserve_name(struct sp_stack_paths *s, size_t bytes)
{
	char *grown;

	if (bytes <= s->name_room)
		return 0;
	grown = realloc(s->name, bytes);
	if (!grown)
		return -ENOMEM;
	s->name = grown;
	s->name_room = bytes;
	return 0;
}

/* ---- frames ---- */

/* "module!function", "function" or "!function" */
static int name_frame(struct sp_stack_paths *s, const struct sp_symbol *symbol,
		      const struct sp_module *in, uint32_t *ret)
{
	/* Functions of Python are in no module, as all of a script's. */
	const struct sp_module *module =
		in && strcmp(in->path, SP_FORMAT_PYTHON) == 0 ? NULL : in;
	const bool is_program = !module || module->is_main;
	const char *base = is_program ? "" : sp_text_base_name(module->path);
	const char *function = symbol->is_fallback && !module ? ANONYMOUS
			       : symbol->is_fallback          ? SP_PATHS_UNKNOWN
			       : symbol->identity             ? symbol->identity
						  : symbol->function;
	const bool is_bare = is_program && !strchr(function, '!');
	char *kept = sp_home_without_address(function);
	char *end;

	if (!kept ||
	    reserve_name(s, 3 * (strlen(base) + strlen(kept)) + 1) < 0) {
		free(kept);
		return -ENOMEM;
	}
	end = sp_paths_put_module(s->name, module);
	*end++ = '!';
	end = sp_paths_put_utf8(end, kept);
	free(kept);
	return sp_intern_add(&s->paths->frames, s->name + is_bare,
			     (size_t)(end - s->name) - is_bare, ret);
}

static int find_identity(struct sp_stack_paths *s, const char *identity,
			 uint32_t *ret)
{
	return sp_intern_add(&s->identities, identity, strlen(identity), ret);
}

/* Functions of which only an address tells that they are several: paths know
 * no addresses. */
static int count_functions(struct sp_stack_paths *s,
			   const struct sp_known_symbol *known)
{
	const char *identity = sp_intern_bytes(&s->identities, known->identity);
	const struct sp_home home = sp_home_of(identity);
	uint32_t number, n = 0;

	if (home.file_bytes == home.bytes)
		return 0;
	if (sp_intern_add(&s->built, known, sizeof(*known), &number) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->built.n_entries; i++)
		n += SP_INTERN_AT(&s->built, i, struct sp_known_symbol)
			     ->frame == known->frame;
	return sp_paths_set_functions(s->paths, known->frame, n);
}

static int know_symbols(struct sp_stack_paths *s,
			const struct sp_symbols *symbols,
			const struct sp_module *module)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const struct sp_symbol *symbol = &symbols->symbol[i];
		struct sp_known_symbol *known;

		if (sp_array_reserve((void **)&s->symbols, &s->symbols_room,
				     s->n_symbols, sizeof(*s->symbols)) < 0)
			return -ENOMEM;
		known = &s->symbols[s->n_symbols];
		if (name_frame(s, symbol, module, &known->frame) < 0 ||
		    find_identity(s,
				  symbol->identity ? symbol->identity
						   : symbol->function,
				  &known->identity) < 0 ||
		    count_functions(s, known) < 0)
			return -ENOMEM;
		s->n_symbols++;
	}
	return 0;
}

static int know_frame(struct sp_stack_paths *s,
		      const struct sp_aggregate *aggregate,
		      struct sp_frame frame, struct sp_known_frame *ret)
{
	struct sp_index_probe probe =
		sp_index_begin(sp_hash_word(frame.module, frame.offset));
	struct sp_symbols symbols;

	if (sp_index_reserve(&s->index) < 0 ||
	    sp_array_reserve((void **)&s->known, &s->known_room, s->n_known,
			     sizeof(*s->known)) < 0)
		return -ENOMEM;
	while (sp_index_next(&s->index, &probe)) {
		*ret = s->known[probe.position];
		if (ret->frame.module == frame.module &&
		    ret->frame.offset == frame.offset)
			return 0;
	}
	symbols = sp_aggregate_symbols(aggregate, frame);
	*ret = (struct sp_known_frame){frame, s->n_symbols, symbols.count};
	if (know_symbols(s, &symbols,
			 sp_profile_module(s->profile, frame.module)) < 0)
		return -ENOMEM;
	sp_index_put(&s->index, &probe, s->n_known);
	s->known[s->n_known++] = *ret;
	return 0;
}

/* ---- paths ---- */

static int append_frame(struct sp_stack_paths *s, uint32_t frame)
{
	if (sp_array_reserve((void **)&s->frames, &s->frames_room, s->n_frames,
			     sizeof(*s->frames)) < 0)
		return -ENOMEM;
	s->frames[s->n_frames++] = frame;
	return 0;
}

static int append_frames(struct sp_stack_paths *s,
			 const struct sp_aggregate *aggregate,
			 const struct sp_stack *stack,
			 const struct sp_stack_path *as)
{
	bool is_inside = as->is_cut && stack->n_frames > 0;

	s->n_frames = 0;
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		struct sp_known_frame known;

		if (know_frame(s, aggregate, stack->frames[i], &known) < 0)
			return -ENOMEM;
		for (size_t k = known.first; k < known.first + known.n; k++) {
			is_inside &= s->symbols[k].identity != as->identity;
			if (!is_inside &&
			    append_frame(s, s->symbols[k].frame) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int make_path(struct sp_stack_paths *s,
		     const struct sp_aggregate *aggregate,
		     const struct sp_stack *stack, struct sp_stack_path *as)
{
	if (append_frames(s, aggregate, stack, as) < 0)
		return -ENOMEM;
	if (!s->n_frames)
		return sp_stack_paths_label(s, SP_LABEL_NO_STACK, &as->path);
	return sp_paths_add(s->paths, s->frames, s->n_frames, &as->path);
}

int sp_stack_paths_add(struct sp_stack_paths *s,
		       const struct sp_aggregate *aggregate,
		       const struct sp_aggregate_function *flat,
		       const struct sp_stack *stack, size_t at,
		       uint32_t *ret_path)
{
	struct sp_stack_path as = {.is_made = true, .is_cut = flat->name};
	int r = find_identity(s, flat->identity, &as.identity);

	if (!r && !s->made) {
		s->made = calloc(s->profile->n_stacks + 1, sizeof(*s->made));
		r = s->made ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	if (s->made[at].is_made && s->made[at].is_cut == as.is_cut &&
	    s->made[at].identity == as.identity) {
		*ret_path = s->made[at].path;
		return 0;
	}
	r = make_path(s, aggregate, stack, &as);
	if (r < 0)
		return r;
	s->made[at] = as;
	*ret_path = as.path;
	return 0;
}

int sp_stack_paths_label(struct sp_stack_paths *s, const char *name,
			 uint32_t *ret_path)
{
	uint32_t frame;
	char *end;

	if (reserve_name(s, 3 * strlen(name) + 1) < 0)
		return -ENOMEM;
	end = sp_paths_put_utf8(s->name, name);
	if (sp_intern_add(&s->paths->frames, s->name, (size_t)(end - s->name),
			  &frame) < 0)
		return -ENOMEM;
	return sp_paths_add(s->paths, &frame, 1, ret_path);
}

void sp_stack_paths_done(struct sp_stack_paths *s)
{
	sp_index_done(&s->index);
	sp_intern_done(&s->identities);
	sp_intern_done(&s->built);
	free(s->known);
	free(s->symbols);
	free(s->made);
	free(s->frames);
	free(s->name);
}
