/* SPDX-License-Identifier: MIT */
/*
 * The patterns are matched once against each distinct frame, and the results
 * are kept in a table by address.  Then each stack is walked with them.
 */
#include "report/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "read/load.h"
#include "report/label.h"
#include "symbols/pattern.h"

/* Of the frame that stands for a stack without frames. */
#define PSEUDO_MODULE UINT32_MAX

/* Results of the patterns for one address. */
struct place {
	struct sp_frame frame;
	struct sp_symbols left;  /* of its symbols */
	struct sp_symbol *owned; /* memory of `left`, if it was cut */
	bool is_focused;
	bool is_ignored;
	bool is_first;       /* SHOW_FROM matches: the outermost frame shown */
	bool is_last;        /* PRUNE_FROM matches: the innermost frame shown */
	bool is_foreign;     /* none of its functions is the program's own */
	bool is_script;      /* one is a script's */
	bool is_interpreter; /* one is called by scripts */
};

struct sp_filter {
	struct sp_profile profile; /* borrows all but `stacks` */
	struct sp_symbolizer *symbolizer;
	const struct sp_filter_patterns *texts;
	struct sp_pattern *patterns[SP_FILTER_COUNT];
	bool *keeps;
	struct sp_frame *frames; /* of all stacks */
	struct place *places;
	size_t n_places;
	size_t room;
	struct sp_index index; /* of places, by frame */
};

static const char *const names[] = {
	[SP_FILTER_FOCUS] = "--focus",
	[SP_FILTER_IGNORE] = "--ignore",
	[SP_FILTER_HIDE] = "--hide",
	[SP_FILTER_SHOW] = "--show",
	[SP_FILTER_SHOW_FROM] = "--show-from",
	[SP_FILTER_PRUNE_FROM] = "--prune-from",
};

const char *sp_filter_name(enum sp_filter_kind kind)
{
	return names[kind];
}

/* As for pprof, an empty pattern is none. */
static bool has_pattern(const struct sp_filter_patterns *patterns, int kind)
{
	return patterns->text[kind] && *patterns->text[kind];
}

bool sp_filter_is_given(const struct sp_filter_patterns *patterns)
{
	for (int i = 0; i < SP_FILTER_COUNT; i++)
		if (has_pattern(patterns, i))
			return true;
	return patterns->only_own;
}

int sp_filter_check(const struct sp_filter_patterns *patterns,
		    struct sp_error *err)
{
	struct sp_pattern *pattern;
	int r = 0;

	for (int i = 0; i < SP_FILTER_COUNT && r >= 0; i++) {
		if (!has_pattern(patterns, i))
			continue;
		r = sp_pattern_new(names[i], patterns->text[i], &pattern, err);
		if (r >= 0)
			sp_pattern_free(pattern);
	}
	return r;
}

/* ---- one address ---- */

static int search_pattern(const struct sp_filter *f, enum sp_filter_kind kind,
			  const char *text, struct sp_error *err)
{
	return text ? sp_pattern_search(f->patterns[kind], text, err) : 0;
}

/* 1: the name of the function, with parameters or without, or of its file
 * matches; 0; negative errno. */
static int symbol_matches(const struct sp_filter *f, enum sp_filter_kind kind,
			  const struct sp_symbol *symbol, struct sp_error *err)
{
	int r = search_pattern(f, kind, symbol->function, err);

	if (!r && symbol->identity)
		r = sp_pattern_search_full(f->patterns[kind], symbol->identity,
					   err);
	return r ? r : search_pattern(f, kind, symbol->file, err);
}

static int module_matches(const struct sp_filter *f, enum sp_filter_kind kind,
			  struct sp_frame frame, struct sp_error *err)
{
	const struct sp_module *module =
		sp_profile_module(&f->profile, frame.module);

	if (!module)
		return 0;
	return search_pattern(f, kind,
			      module->is_main && !*module->path
				      ? f->profile.program
				      : module->path,
			      err);
}

/* Any of the frame's names. */
static int frame_matches(const struct sp_filter *f, enum sp_filter_kind kind,
			 const struct place *place, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < place->left.count; i++)
		r = symbol_matches(f, kind, &place->left.symbol[i], err);
	return r ? r : module_matches(f, kind, place->frame, err);
}

/* A copy of the symbols that can be cut. */
static struct sp_symbol *own_symbols(struct place *place)
{
	if (!place->owned) {
		place->owned =
			calloc(place->left.count + 1, sizeof(*place->owned));
		if (!place->owned)
			return NULL;
		memcpy(place->owned, place->left.symbol,
		       place->left.count * sizeof(*place->owned));
		place->left.symbol = place->owned;
	}
	return place->owned;
}

/* HIDE: drop the symbols that match; SHOW: those that do not.  All of them go
 * or stay with the module. */
static int cut_matching(const struct sp_filter *f, enum sp_filter_kind kind,
			struct place *place, struct sp_error *err)
{
	const bool hides = kind == SP_FILTER_HIDE;
	const int whole = module_matches(f, kind, place->frame, err);
	struct sp_symbol *symbols;
	size_t n = 0;

	if (whole < 0)
		return whole;
	if (whole) {
		place->left.count = hides ? 0 : place->left.count;
		return 0;
	}
	symbols = own_symbols(place);
	if (!symbols)
		return sp_error_memory(err, NULL);
	for (size_t i = 0; i < place->left.count; i++) {
		int r = symbol_matches(f, kind, &symbols[i], err);

		if (r < 0)
			return r;
		if ((r == 1) != hides)
			symbols[n++] = symbols[i];
	}
	place->left.count = n;
	return 0;
}

/* SHOW_FROM: nothing outside the outermost symbol that matches. */
static int cut_callers(const struct sp_filter *f, struct place *place,
		       struct sp_error *err)
{
	int r = module_matches(f, SP_FILTER_SHOW_FROM, place->frame, err);

	for (size_t i = place->left.count; !r && i-- > 0;) {
		r = symbol_matches(f, SP_FILTER_SHOW_FROM,
				   &place->left.symbol[i], err);
		if (r == 1)
			place->left.count = i + 1;
	}
	place->is_first = r == 1;
	return r < 0 ? r : 0;
}

/* The name without an argument list; "operator()" and "(anonymous namespace)"
 * are no such thing. */
static size_t name_length(const char *name)
{
	static const char *const parts_of_names[] = {"(anonymous namespace)",
						     "operator()"};
	size_t i = 0;

	while (name[i]) {
		size_t n = 0;

		for (int k = 0; k < 2 && !n; k++)
			if (!strncmp(name + i, parts_of_names[k],
				     strlen(parts_of_names[k])))
				n = strlen(parts_of_names[k]);
		if (!n && name[i] == '(')
			break;
		i += n ? n : 1;
	}
	return i;
}

/* PRUNE_FROM: nothing inside the innermost symbol that matches. */
static int cut_callees(const struct sp_filter *f, struct place *place,
		       struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < place->left.count; i++) {
		const char *function = place->left.symbol[i].function;
		char *name = strndup(function, name_length(function));

		if (!name)
			return sp_error_memory(err, NULL);
		r = search_pattern(f, SP_FILTER_PRUNE_FROM, name, err);
		free(name);
		if (r != 1)
			continue;
		place->left.symbol += i;
		place->left.count -= i;
	}
	place->is_last = r == 1;
	return r < 0 ? r : 0;
}

/* only_own: the own ones; if there are none, all of them. */
static int cut_foreign(struct place *place, struct sp_error *err)
{
	struct sp_symbol *symbols;
	size_t n = 0;

	for (size_t i = 0; i < place->left.count; i++) {
		const enum sp_role role = place->left.symbol[i].role;

		n += role < SP_ROLE_LIBRARY;
		place->is_script |= role == SP_ROLE_SCRIPT;
		place->is_interpreter |= role == SP_ROLE_INTERPRETER;
	}
	place->is_foreign = !n;
	if (!n || n == place->left.count)
		return 0;
	symbols = own_symbols(place);
	if (!symbols)
		return sp_error_memory(err, NULL);
	n = 0;
	for (size_t i = 0; i < place->left.count; i++)
		if (place->left.symbol[i].role < SP_ROLE_LIBRARY)
			symbols[n++] = place->left.symbol[i];
	place->left = (struct sp_symbols){symbols, n};
	return 0;
}

static int judge_place(const struct sp_filter *f, struct place *place,
		       struct sp_error *err)
{
	int ignored = 0, focused = 1, r = 0;

	if (f->patterns[SP_FILTER_IGNORE])
		ignored = frame_matches(f, SP_FILTER_IGNORE, place, err);
	if (!ignored && f->patterns[SP_FILTER_FOCUS])
		focused = frame_matches(f, SP_FILTER_FOCUS, place, err);
	if (ignored < 0 || focused < 0)
		return ignored < 0 ? ignored : focused;
	place->is_ignored = ignored;
	place->is_focused = focused;
	if (f->patterns[SP_FILTER_HIDE])
		r = cut_matching(f, SP_FILTER_HIDE, place, err);
	if (r >= 0 && f->patterns[SP_FILTER_SHOW])
		r = cut_matching(f, SP_FILTER_SHOW, place, err);
	if (r >= 0 && f->patterns[SP_FILTER_SHOW_FROM])
		r = cut_callers(f, place, err);
	if (r >= 0 && f->patterns[SP_FILTER_PRUNE_FROM])
		r = cut_callees(f, place, err);
	if (r >= 0 && f->texts->only_own)
		r = cut_foreign(place, err);
	return r;
}

/* ---- all addresses ---- */

/* The frame's entry, or NULL, and *ret is where to insert it. */
static struct place *find_place(const struct sp_filter *f,
				struct sp_frame frame,
				struct sp_index_probe *ret)
{
	*ret = sp_index_begin(sp_hash_word(frame.module, frame.offset));
	while (sp_index_next(&f->index, ret)) {
		struct place *place = &f->places[ret->position];

		if (place->frame.module == frame.module &&
		    place->frame.offset == frame.offset)
			return place;
	}
	return NULL;
}

static int reserve_places(struct sp_filter *f)
{
	size_t room = 2 * f->room + 64;
	struct place *grown;

	if (sp_index_reserve(&f->index) < 0)
		return -ENOMEM;
	if (f->n_places < f->room)
		return 0;
	if (room > UINT32_MAX)
		return -ENOMEM;
	grown = realloc(f->places, room * sizeof(*f->places));
	if (!grown)
		return -ENOMEM;
	f->places = grown;
	f->room = room;
	return 0;
}

/* Index of the frame's place, judged; 0 or negative errno. */
static int place_frame(struct sp_filter *f, struct sp_frame frame,
		       size_t *ret_index, struct sp_error *err)
{
	static const struct sp_symbol no_stack = {
		.function = SP_LABEL_NO_STACK,
	};
	const bool is_real = frame.module != PSEUDO_MODULE;
	struct sp_index_probe probe;
	struct place *place;

	if (reserve_places(f) < 0)
		return sp_error_memory(err, f->profile.path);
	place = find_place(f, frame, &probe);
	if (place) {
		*ret_index = probe.position;
		return 0;
	}
	*ret_index = f->n_places++;
	sp_index_put(&f->index, &probe, *ret_index);
	place = &f->places[*ret_index];
	*place = (struct place){
		.frame = frame,
		.left = is_real ? sp_symbolizer_lookup(f->symbolizer, frame,
						       true)
				: (struct sp_symbols){&no_stack, 1},
	};
	return judge_place(f, place, err);
}

/* ---- stacks ---- */

static const struct place *place_of(const struct sp_filter *f,
				    struct sp_frame frame)
{
	struct sp_index_probe probe;

	return find_place(f, frame, &probe);
}

/* Drop the frames that are not the program's own.  Where a script calls the
 * interpreter, that module works for the script (sp_find_flat()). */
static uint32_t drop_foreign(const struct sp_filter *f, struct sp_frame *frames,
			     uint32_t n)
{
	uint64_t interpreter = UINT64_MAX;
	uint32_t n_own = 0;

	for (uint32_t i = 0; i + 1 < n && interpreter == UINT64_MAX; i++)
		if (place_of(f, frames[i])->is_interpreter &&
		    place_of(f, frames[i + 1])->is_script)
			interpreter = frames[i].module;
	for (int keeps = 0; keeps < 2; keeps++) {
		uint32_t kept = 0;

		if (keeps && !n_own)
			return n;
		for (uint32_t i = 0; i < n; i++) {
			const struct place *place = place_of(f, frames[i]);

			if (place->is_foreign ||
			    (frames[i].module == interpreter &&
			     !place->is_script))
				continue;
			if (keeps)
				frames[kept] = frames[i];
			kept++;
		}
		n_own = kept;
	}
	return n_own;
}

/*
 * Write the remaining frames of a stack to `out`.  Returns their number, 0 if
 * the stack is dropped; negative errno.
 */
static int cut_stack(struct sp_filter *f, const struct sp_stack *stack,
		     struct sp_frame *out, struct sp_error *err)
{
	uint32_t n = 0, begin = UINT32_MAX, end = 0;
	bool is_focused = false;

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct place *place;
		size_t index = 0;
		int r = place_frame(f, stack->frames[i], &index, err);

		if (r < 0)
			return r;
		place = &f->places[index];
		if (place->is_ignored)
			return 0;
		is_focused |= place->is_focused;
		if (!place->left.count)
			continue;
		if (place->is_last && begin == UINT32_MAX)
			begin = n;
		out[n++] = place->frame;
		if (place->is_first)
			end = n;
	}
	if (!f->patterns[SP_FILTER_SHOW_FROM])
		end = n;
	if (!is_focused)
		return 0;
	/* A match among the callers that were dropped is none. */
	if (begin >= end)
		return (int)end;
	memmove(out, out + begin, (end - begin) * sizeof(*out));
	return (int)(end - begin);
}

static int cut_all(struct sp_filter *f, const struct sp_profile *profile,
		   sp_progress_fn *progress, void *progress_arg,
		   struct sp_error *err)
{
	struct sp_frame *at = f->frames;

	for (size_t i = 0; i < profile->n_stacks; i++) {
		struct sp_frame none = {.module = PSEUDO_MODULE};
		struct sp_stack stack = profile->stacks[i];
		const bool is_real = stack.n_frames;
		int n;

		if (!is_real) {
			stack.frames = &none;
			stack.n_frames = 1;
		}
		n = cut_stack(f, &stack, at, err);
		if (n < 0)
			return n;
		if (f->texts->only_own)
			n = (int)drop_foreign(f, at, (uint32_t)n);
		f->keeps[i] = n > 0;
		stack.n_frames = is_real ? (uint32_t)n : 0;
		stack.frames = at;
		f->profile.stacks[i] = stack;
		at += stack.n_frames;
		if (progress)
			progress(progress_arg, i + 1, profile->n_stacks);
	}
	return 0;
}

static int allocate_filter(struct sp_filter *f,
			   const struct sp_profile *profile,
			   struct sp_error *err)
{
	size_t n_frames = 0;

	for (size_t i = 0; i < profile->n_stacks; i++)
		n_frames += profile->stacks[i].n_frames;
	f->profile.stacks =
		calloc(profile->n_stacks + 1, sizeof(*f->profile.stacks));
	f->keeps = calloc(profile->n_stacks + 1, sizeof(*f->keeps));
	/* One more, for a stack without frames. */
	f->frames = calloc(n_frames + 1, sizeof(*f->frames));
	if (f->profile.stacks && f->keeps && f->frames)
		return 0;
	return sp_error_memory(err, profile->path);
}

int sp_filter_new(const struct sp_profile *profile,
		  struct sp_symbolizer *symbolizer,
		  const struct sp_filter_patterns *patterns,
		  sp_progress_fn *progress, void *progress_arg,
		  struct sp_filter **ret_filter, struct sp_error *err)
{
	struct sp_filter *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return sp_error_memory(err, profile->path);
	f->profile = *profile;
	f->symbolizer = symbolizer;
	f->texts = patterns;
	r = allocate_filter(f, profile, err);
	for (int i = 0; i < SP_FILTER_COUNT && r >= 0; i++)
		if (has_pattern(patterns, i))
			r = sp_pattern_new(names[i], patterns->text[i],
					   &f->patterns[i], err);
	if (r >= 0)
		r = cut_all(f, profile, progress, progress_arg, err);
	if (r < 0) {
		sp_filter_free(f);
		return r;
	}
	*ret_filter = f;
	return 0;
}

const struct sp_profile *sp_filter_profile(const struct sp_filter *filter)
{
	return &filter->profile;
}

const bool *sp_filter_keeps(const struct sp_filter *filter)
{
	return filter->keeps;
}

const struct sp_filter_patterns *sp_filter_patterns_of(
	const struct sp_filter *filter)
{
	return filter->texts;
}

struct sp_symbols sp_filter_symbols(const struct sp_filter *filter,
				    struct sp_frame frame)
{
	return place_of(filter, frame)->left;
}

void sp_filter_free(struct sp_filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->n_places; i++)
		free(filter->places[i].owned);
	for (int i = 0; i < SP_FILTER_COUNT; i++)
		sp_pattern_free(filter->patterns[i]);
	free(filter->places);
	sp_index_done(&filter->index);
	free(filter->frames);
	free(filter->keeps);
	free(filter->profile.stacks);
	free(filter);
}
