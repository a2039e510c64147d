/* SPDX-License-Identifier: MIT */
/*
 * Functions that were renamed.  For a function that one side lacks, each path
 * is written with a hole in its place.  A function of the other side with the
 * same holes is the same function.  Bytes decide this, not the number of paths,
 * so that a few other changed paths do no harm.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "compare/match.h"

#define HOLE UINT32_MAX

/* Pairs that are looked at: two programs that have nothing in common are no
 * long work. */
#define PAIRS_MAX 256

/* Samples with which a function is missing from the other side for a reason: if
 * both had it alike, all of n samples were on one side with probability
 * 2^(1 - n). */
#define SAMPLES_MIN 12

/* One path with a hole, of a function that only one side has. */
struct holed {
	uint32_t shape; /* the path with the hole */
	uint32_t frame; /* what was there */
	bool is_new;
	double bytes;
};

/* All that a frame has that only one side has. */
struct own {
	double bytes;
	double seen_bytes; /* of the objects that were sampled */
	uint64_t samples;
};

struct finder {
	const struct sp_pair *pair;
	bool *old_has, *new_has; /* frames of either side */
	struct own *own;         /* of each frame */
	struct sp_intern shapes;
	struct holed *holed;
	size_t n, room;
	uint32_t *buffer;
};

void sp_match_mark(const struct sp_pair *pair, const struct sp_side *side,
		   bool *has)
{
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows =
			&side->run[i]->rows[SP_VIEW_ALLOC];

		for (size_t k = 0; k < rows->n; k++) {
			const struct sp_path p =
				sp_paths_at(pair->paths, rows->at[k].path);

			for (size_t d = 0; d < p.n; d++)
				has[p.frame[d]] = true;
		}
	}
}

/* The path with a hole wherever `frame` is. */
static int add_shape(struct finder *f, uint32_t path, uint32_t frame,
		     bool is_new, double bytes)
{
	const struct sp_path p = sp_paths_at(f->pair->paths, path);
	void *array = f->holed;
	uint32_t shape, *grown;

	grown = realloc(f->buffer, (p.n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->buffer = grown;
	for (size_t d = 0; d < p.n; d++)
		f->buffer[d] = p.frame[d] == frame ? HOLE : p.frame[d];
	if (sp_intern_add(&f->shapes, f->buffer, p.n * sizeof(*f->buffer),
			  &shape) < 0)
		return -ENOMEM;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): for finder_done() */
	if (sp_array_reserve(&array, &f->room, f->n, sizeof(*f->holed)) < 0)
		return -ENOMEM;
	f->holed = array;
	f->holed[f->n++] = (struct holed){shape, frame, is_new, bytes};
	return 0;
}

/* The only frame of the path that the other side lacks; HOLE if there is none,
 * or more than one: such a path is like none of the other side's. */
static uint32_t only_own(const struct sp_paths *paths, uint32_t path,
			 const bool *others)
{
	const struct sp_path p = sp_paths_at(paths, path);
	uint32_t only = HOLE;

	for (size_t d = 0; d < p.n; d++) {
		const uint32_t at = p.frame[d];

		if (others[at] || at == only)
			continue;
		if (only != HOLE)
			return HOLE;
		only = at;
	}
	return only;
}

/* The bytes of frames that the other side lacks, with a shape or without. */
static void add_own(struct finder *f, const struct sp_path_row *row,
		    const bool *others)
{
	const struct sp_path p = sp_paths_at(f->pair->paths, row->path);

	for (size_t d = 0; d < p.n; d++) {
		const uint32_t at = p.frame[d];

		if (others[at])
			continue;
		f->own[at].bytes += row->acc.est_bytes;
		f->own[at].seen_bytes += (double)row->acc.size_bytes;
		f->own[at].samples += row->acc.samples;
	}
}

static int add_shapes(struct finder *f, const struct sp_side *side, bool is_new)
{
	const bool *others = is_new ? f->old_has : f->new_has;

	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows *rows =
			&side->run[i]->rows[SP_VIEW_ALLOC];

		for (size_t k = 0; k < rows->n; k++) {
			const uint32_t path = rows->at[k].path;
			const uint32_t only =
				only_own(f->pair->paths, path, others);

			add_own(f, &rows->at[k], others);
			if (only != HOLE &&
			    add_shape(f, path, only, is_new,
				      rows->at[k].acc.est_bytes) < 0)
				return -ENOMEM;
		}
	}
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): for finder_done() */
	return 0;
}

SP_ORDER(compare_holed, struct holed,
	 SP_UP(shape) || SP_UP(is_new) || SP_UP(frame));

/* Bytes that `frame` has on shapes that `partner` has, too. */
static double shared_paths(const struct finder *f, uint32_t frame,
			   uint32_t partner)
{
	double bytes = 0;

	for (size_t i = 0, end; i < f->n; i = end) {
		double own = 0;
		bool has = false;

		for (end = i;
		     end < f->n && f->holed[end].shape == f->holed[i].shape;
		     end++) {
			has |= f->holed[end].frame == partner;
			if (f->holed[end].frame == frame)
				own += f->holed[end].bytes;
		}
		bytes += has ? own : 0;
	}
	return bytes;
}

/* Or else chance may have put its few samples on one side. */
static bool is_missed(const struct own *own)
{
	return own->samples >= SAMPLES_MIN || own->seen_bytes >= own->bytes;
}

static bool has_name(const struct finder *f, uint32_t frame)
{
	size_t module;

	return strcmp(sp_paths_function(sp_paths_name(f->pair->paths, frame),
					&module),
		      SP_PATHS_UNKNOWN) != 0;
}

/* Is it the same function?  Most bytes of each must be on paths of the other.
 */
static bool is_renamed(const struct finder *f, uint32_t old, uint32_t new)
{
	return has_name(f, old) && has_name(f, new) &&
	       sp_paths_same_module(f->pair->paths, old, new) &&
	       is_missed(&f->own[old]) && is_missed(&f->own[new]) &&
	       shared_paths(f, old, new) > f->own[old].bytes / 2 &&
	       shared_paths(f, new, old) > f->own[new].bytes / 2;
}

static bool is_paired(const struct sp_renamed *list, size_t n, uint32_t old,
		      uint32_t new)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].old == old || list[i].new == new)
			return true;
	return false;
}

static int add_pair(struct sp_renamed **list, size_t *n, size_t *room,
		    uint32_t old, uint32_t new)
{
	void *array = *list;

	if (sp_array_reserve(&array, room, *n, sizeof(**list)) < 0)
		return -ENOMEM;
	*list = array;
	(*list)[(*n)++] = (struct sp_renamed){old, new};
	return 0;
}

/* Candidates are a shape's only old and only new function. */
static int pair_up(struct finder *f, struct sp_renamed **list, size_t *n)
{
	size_t room = 0, tried = 0;

	if (f->n)
		qsort(f->holed, f->n, sizeof(*f->holed), compare_holed);
	for (size_t i = 0, end; i < f->n && tried < PAIRS_MAX; i = end) {
		uint32_t old = HOLE, new = HOLE;
		bool is_clear = true;

		for (end = i;
		     end < f->n && f->holed[end].shape == f->holed[i].shape;
		     end++) {
			uint32_t *at = f->holed[end].is_new ? &new : &old;

			is_clear &= *at == HOLE || *at == f->holed[end].frame;
			*at = f->holed[end].frame;
		}
		if (!is_clear || old == HOLE || new == HOLE ||
		    is_paired(*list, *n, old, new))
			continue;
		tried++;
		if (is_renamed(f, old, new) &&
		    add_pair(list, n, &room, old, new) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- under new names ---- */

static int rename_path(struct finder *f, const uint32_t *name, uint32_t *path)
{
	const struct sp_path p = sp_paths_at(f->pair->paths, *path);
	uint32_t *grown = realloc(f->buffer, (p.n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	f->buffer = grown;
	for (size_t d = 0; d < p.n; d++)
		f->buffer[d] = name[p.frame[d]];
	return sp_paths_add(f->pair->paths, f->buffer, p.n, path);
}

static int rename_rows(struct finder *f, const uint32_t *name,
		       struct sp_path_rows *rows)
{
	int r = 0;

	for (size_t k = 0; !r && k < rows->n; k++)
		r = rename_path(f, name, &rows->at[k].path);
	sp_path_rows_settle(rows);
	return r;
}

int sp_match_rename(const struct sp_pair *pair, const struct sp_side *side,
		    const uint32_t *name)
{
	struct finder f = {.pair = pair};
	int r = 0;

	for (size_t i = 0; !r && i < side->n; i++) {
		struct sp_summary *run = side->run[i];

		for (int v = 0; !r && v < SP_SUMMARY_VIEWS; v++) {
			r = rename_rows(&f, name, &run->rows[v]);
			if (!r)
				r = rename_rows(&f, name, &run->whole[v]);
		}
		for (size_t p = 0; !r && p < run->n_phases; p++) {
			r = rename_rows(&f, name, &run->phases[p].rows);
			if (!r)
				r = rename_rows(&f, name,
						&run->phases[p].whole);
		}
	}
	free(f.buffer);
	return r;
}

/* Each frame under its own name, to be freed; NULL without memory. */
static uint32_t *own_names(size_t n)
{
	uint32_t *name = malloc((n + 1) * sizeof(*name));

	for (size_t i = 0; name && i < n; i++)
		name[i] = (uint32_t)i;
	return name;
}

static int rename_old(struct finder *f, const struct sp_renamed *list, size_t n)
{
	uint32_t *name = own_names(f->pair->paths->frames.n_entries);
	int r = name ? 0 : -ENOMEM;

	for (size_t i = 0; name && i < n; i++)
		name[list[i].old] = list[i].new;
	if (!r)
		r = sp_match_rename(f->pair, &f->pair->old, name);
	free(name);
	return r;
}

static void finder_done(struct finder *f)
{
	sp_intern_done(&f->shapes);
	free(f->old_has);
	free(f->new_has);
	free(f->own);
	free(f->holed);
	free(f->buffer);
}

static int finder_init(struct finder *f, const struct sp_pair *pair)
{
	const size_t n_frames = pair->paths->frames.n_entries;

	*f = (struct finder){.pair = pair};
	f->old_has = calloc(n_frames + 1, sizeof(*f->old_has));
	f->new_has = calloc(n_frames + 1, sizeof(*f->new_has));
	f->own = calloc(n_frames + 1, sizeof(*f->own));
	if (!f->old_has || !f->new_has || !f->own)
		return -ENOMEM;
	sp_match_mark(pair, &pair->old, f->old_has);
	sp_match_mark(pair, &pair->new, f->new_has);
	return 0;
}

int sp_match_renamed(const struct sp_pair *pair, struct sp_renamed **ret,
		     size_t *ret_n)
{
	struct sp_renamed *list = NULL;
	struct finder f;
	size_t n = 0;
	int r = finder_init(&f, pair);

	if (!r)
		r = add_shapes(&f, &pair->old, false);
	if (!r)
		r = add_shapes(&f, &pair->new, true);
	if (!r)
		r = pair_up(&f, &list, &n);
	if (!r && n)
		r = rename_old(&f, list, n);
	finder_done(&f);
	if (r < 0) {
		free(list);
		return r;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ---- lambdas ---- */

/* "main::{lambda(int)#*}::operator()" for number 2, and "main::$_*" for clang's
 * "main::$_1"; in place, since it is no longer.  False: it has no number. */
static bool cut_numbers(char *name)
{
	bool has_any = false;
	char *to = name;

	for (const char *c = name; *c;) {
		const bool is_clang = strncmp(c, "$_", 2) == 0;
		const size_t mark = is_clang ? 2 : *c == '#';
		const size_t digits = strspn(c + mark, "0123456789");

		if (!mark || !digits || (!is_clang && c[1 + digits] != '}')) {
			*to++ = *c++;
			continue;
		}
		to = (char *)mempcpy(to, c, mark);
		*to++ = '*';
		c += mark + digits;
		has_any = true;
	}
	*to = '\0';
	return has_any;
}

/* All lambdas of a function with the same name except for the number. */
struct family {
	bool is_old, is_new; /* it is there on that side */
	bool is_other;       /* one of them is not, for a reason */
};

/* The family of each of n frames, 1 + number in `keys`; 0: none. */
static int find_families(const struct finder *f, size_t n,
			 struct sp_intern *keys, uint32_t *family_of)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		char *name = strdup(sp_paths_name(f->pair->paths, i));

		if (!name)
			return -ENOMEM;
		if ((f->old_has[i] || f->new_has[i]) && cut_numbers(name)) {
			r = sp_intern_add(keys, name, strlen(name),
					  &family_of[i]);
			family_of[i]++;
		}
		free(name);
	}
	return r;
}

static void look_at_families(const struct finder *f, size_t n,
			     const uint32_t *family_of, struct family *families)
{
	for (size_t i = 0; i < n; i++) {
		struct family *family = &families[family_of[i]];

		family->is_old |= f->old_has[i];
		family->is_new |= f->new_has[i];
		family->is_other |=
			f->old_has[i] != f->new_has[i] && is_missed(&f->own[i]);
	}
}

/* Frames of families of which one side has others go by the name of the family;
 * such names to *list. */
static int name_families(struct finder *f, size_t n, struct sp_intern *keys,
			 const uint32_t *family_of,
			 const struct family *families, uint32_t *name,
			 uint32_t *list, size_t *ret_n)
{
	uint32_t *frame = calloc(keys->n_entries + 1, sizeof(*frame));
	int r = frame ? 0 : -ENOMEM;

	for (uint32_t k = 0; !r && k < keys->n_entries; k++) {
		const struct family *family = &families[k + 1];
		const char *key = sp_intern_bytes(keys, k);

		if (!family->is_old || !family->is_new || !family->is_other)
			continue;
		r = sp_intern_add(&f->pair->paths->frames, key, strlen(key),
				  &frame[k + 1]);
		if (!r)
			list[(*ret_n)++] = frame[k + 1];
	}
	for (size_t i = 0; !r && i < n; i++)
		if (frame[family_of[i]])
			name[i] = frame[family_of[i]];
	free(frame);
	return r;
}

int sp_match_lambdas(const struct sp_pair *pair, uint32_t **ret, size_t *ret_n)
{
	const size_t n = pair->paths->frames.n_entries;
	uint32_t *family_of = calloc(n + 1, sizeof(*family_of));
	struct family *families = calloc(n + 1, sizeof(*families));
	uint32_t *list = calloc(n + 1, sizeof(*list));
	uint32_t *name = own_names(n);
	struct sp_intern keys = {0};
	struct finder f;
	int r = finder_init(&f, pair);

	*ret_n = 0;
	if (!family_of || !families || !list || !name)
		r = -ENOMEM;
	if (!r)
		r = add_shapes(&f, &pair->old, false);
	if (!r)
		r = add_shapes(&f, &pair->new, true);
	if (!r)
		r = find_families(&f, n, &keys, family_of);
	if (!r) {
		look_at_families(&f, n, family_of, families);
		r = name_families(&f, n, &keys, family_of, families, name, list,
				  ret_n);
	}
	if (!r && *ret_n)
		r = sp_match_rename(pair, &pair->old, name);
	if (!r && *ret_n)
		r = sp_match_rename(pair, &pair->new, name);
	finder_done(&f);
	sp_intern_done(&keys);
	free(family_of);
	free(families);
	free(name);
	if (r < 0) {
		free(list);
		return r;
	}
	*ret = list;
	return 0;
}
