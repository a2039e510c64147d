/* SPDX-License-Identifier: MIT */
#include "fleet/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/order.h"
#include "fleet/sql.h"

/* Something of the profile, by its id in the database. */
struct named {
	uint64_t id;
	size_t position;
	bool is_there;
};

struct writer {
	struct sp_fleet_db *db;
	const struct sp_profile *profile;
	uint64_t process;
	uint64_t *modules;     /* id of each of the profile's modules */
	unsigned char *frames; /* of one stack, as the database has it */
	struct sp_error *err;
};

/* ---- ids ---- */

/* Ids below 2 have a meaning of their own. */
static uint64_t finish_id(uint64_t h)
{
	h = sp_hash_word(sp_hash_word(h, h >> 32), 0x5350);
	return h < 2 ? h + 2 : h;
}

static uint64_t module_id(const struct sp_module *m)
{
	uint64_t h = sp_hash_bytes(1, m->path, strlen(m->path));

	h = sp_hash_word(h, strlen(m->path));
	h = sp_hash_bytes(h, m->build_id, m->build_id_len);
	h = sp_hash_word(h, m->end_pc - m->start_pc);
	return finish_id(sp_hash_word(h, m->start_pc - m->bias));
}

static void put_word(unsigned char *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t module_of(const struct writer *w, uint32_t id)
{
	const struct sp_module *m = sp_profile_module(w->profile, id);

	if (!id)
		return SP_FLEET_ANONYMOUS;
	return m ? w->modules[m - w->profile->modules] : SP_FLEET_NO_MODULE;
}

static int fail_clash(const struct writer *w, const char *what)
{
	return sp_error_set(w->err, -EEXIST, w->profile->path,
			    "has a %s whose id stands for another one in the "
			    "database: one of the files is forged; nothing of "
			    "this one was added",
			    what);
}

static int fail_memory(const struct writer *w)
{
	return sp_error_memory(w->err, w->profile->path);
}

/* ---- what is there ---- */

SP_ORDER(compare_named, struct named, SP_UP(id));

/* By ids, each once, without those that are known: how many are left. */
static size_t sort_named(const struct writer *w, struct named *all, size_t n)
{
	size_t kept = 0;

	qsort(all, n, sizeof(*all), compare_named);
	for (size_t i = 0; i < n; i++)
		if ((!kept || all[kept - 1].id != all[i].id) &&
		    !sp_fleet_knows(&w->db->known, all[i].id))
			all[kept++] = all[i];
	return kept;
}

/* Does the row equal the local object of that id?  Its first column is the id.
 */
typedef bool is_same_fn(struct writer *w, struct sp_fleet_rows *rows,
			size_t position);

static int check_row(struct writer *w, struct sp_fleet_rows *rows,
		     struct named *all, size_t n, is_same_fn *is_same,
		     const char *what)
{
	const struct named key = {.id = sp_fleet_get(rows, 0)};
	struct named *found =
		bsearch(&key, all, n, sizeof(*all), compare_named);

	if (!found)
		return 0;
	if (!is_same(w, rows, found->position))
		return fail_clash(w, what);
	found->is_there = true;
	return 0;
}

/* Finds out which of `all`, at most SP_FLEET_LIST_MAX, are there. */
static int look_up(struct writer *w, const char *sql, struct named *all,
		   size_t n, is_same_fn *is_same, const char *what)
{
	uint64_t ids[SP_FLEET_LIST_MAX];
	const struct sp_fleet_value list = sp_fleet_list(ids, n);
	struct sp_fleet_rows *rows;
	int r;

	for (size_t i = 0; i < n; i++)
		ids[i] = all[i].id;
	r = sp_fleet_ask(w->db, sql, &list, 1, &rows, w->err);
	while (r >= 0 && (r = sp_fleet_next(rows, w->err)) > 0)
		r = check_row(w, rows, all, n, is_same, what);
	sp_fleet_rows_free(rows);
	return r;
}

typedef int put_fn(struct writer *w, const struct named *one);

/* Puts those of `all` that are not there yet. */
static int put_missing(struct writer *w, const char *sql, struct named *all,
		       size_t n, is_same_fn *is_same, put_fn *put,
		       const char *what)
{
	int r = 0;

	n = sort_named(w, all, n);
	for (size_t i = 0; i < n && r >= 0; i += SP_FLEET_LIST_MAX) {
		const size_t some =
			n - i < SP_FLEET_LIST_MAX ? n - i : SP_FLEET_LIST_MAX;

		r = look_up(w, sql, &all[i], some, is_same, what);
		for (size_t k = i; k < i + some && r >= 0; k++) {
			if (!all[k].is_there)
				r = put(w, &all[k]);
			if (r >= 0)
				sp_fleet_learn(&w->db->known, all[k].id);
		}
	}
	return r;
}

/* ---- modules ---- */

static bool is_same_module(struct writer *w, struct sp_fleet_rows *rows,
			   size_t position)
{
	const struct sp_module *m = &w->profile->modules[position];
	const uint64_t start_pc = sp_fleet_get(rows, 3);
	size_t n;
	const char *build_id = sp_fleet_get_bytes(rows, 2, &n);

	return n == m->build_id_len && memcmp(build_id, m->build_id, n) == 0 &&
	       strcmp(sp_fleet_get_text(rows, 1), m->path) == 0 &&
	       sp_fleet_get(rows, 4) - start_pc == m->end_pc - m->start_pc &&
	       start_pc - sp_fleet_get(rows, 5) == m->start_pc - m->bias;
}

static int put_module(struct writer *w, const struct named *one)
{
	const struct sp_module *m = &w->profile->modules[one->position];
	const struct sp_fleet_value row[] = {
		sp_fleet_number(one->id),
		sp_fleet_text(m->path),
		sp_fleet_bytes(m->build_id, m->build_id_len),
		sp_fleet_number(m->start_pc),
		sp_fleet_number(m->end_pc),
		sp_fleet_number(m->bias),
		sp_fleet_number(m->is_main),
	};

	return sp_fleet_put(w->db, SP_FLEET_MODULES, row, w->err);
}

static int put_modules(struct writer *w)
{
	const size_t n = w->profile->n_modules;
	struct named *all = calloc(n + 1, sizeof(*all));
	int r;

	if (!all)
		return fail_memory(w);
	for (size_t i = 0; i < n; i++) {
		w->modules[i] = module_id(&w->profile->modules[i]);
		all[i] = (struct named){w->modules[i], i, false};
	}
	r = put_missing(w, sp_fleet_find_modules, all, n, is_same_module,
			put_module, "module");
	free(all);
	return r;
}

/* ---- stacks ---- */

/* The column frames of a stack, in w->frames; *ret_id is its id. */
static size_t write_frames(struct writer *w, const struct sp_stack *stack,
			   uint64_t *ret_id)
{
	uint64_t h = sp_hash_word(2, stack->flags);

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct sp_frame *f = &stack->frames[i];
		unsigned char *to = w->frames + i * SP_FLEET_FRAME_BYTES;
		const uint64_t module = module_of(w, f->module);

		put_word(to, module);
		put_word(to + 8, f->offset);
		h = sp_hash_word(sp_hash_word(h, module), f->offset);
	}
	*ret_id = finish_id(sp_hash_word(h, stack->n_frames));
	return stack->n_frames * SP_FLEET_FRAME_BYTES;
}

static bool is_same_stack(struct writer *w, struct sp_fleet_rows *rows,
			  size_t position)
{
	const struct sp_stack *stack = &w->profile->stacks[position];
	size_t n;
	const char *frames = sp_fleet_get_bytes(rows, 2, &n);
	uint64_t id;

	return sp_fleet_get(rows, 1) == stack->flags &&
	       n == write_frames(w, stack, &id) &&
	       memcmp(frames, w->frames, n) == 0;
}

static int put_stack(struct writer *w, const struct named *one)
{
	const struct sp_stack *stack = &w->profile->stacks[one->position];
	uint64_t id;
	const size_t n = write_frames(w, stack, &id);
	const struct sp_fleet_value row[] = {
		sp_fleet_number(id),
		sp_fleet_number(stack->flags),
		sp_fleet_bytes(w->frames, n),
	};

	return sp_fleet_put(w->db, SP_FLEET_STACKS, row, w->err);
}

static int put_stacks(struct writer *w, uint64_t *ids)
{
	const size_t n = w->profile->n_stacks;
	struct named *all = calloc(n + 1, sizeof(*all));
	int r;

	w->frames = malloc(SP_FORMAT_FRAMES_MAX * SP_FLEET_FRAME_BYTES);
	if (!all || !w->frames) {
		free(all);
		return fail_memory(w);
	}
	for (size_t i = 0; i < n; i++) {
		write_frames(w, &w->profile->stacks[i], &ids[i]);
		all[i] = (struct named){ids[i], i, false};
	}
	r = put_missing(w, sp_fleet_find_stacks, all, n, is_same_stack,
			put_stack, "call stack");
	free(all);
	return r;
}

/* ---- names ---- */

/* How much is known about an address: nothing, its place, its function, or its
 * line.  The build id is part of the module's id, so a line from any sender is
 * right.  Anything less is looked up again. */
enum quality { NOTHING, PLACE, FUNCTION, LINE };

static enum quality quality_of(bool is_fallback, uint64_t line)
{
	return is_fallback ? PLACE : line ? LINE : FUNCTION;
}

/* Codes for "the line is known" and "this machine has looked". */
static uint64_t name_key(uint64_t module, uint64_t offset, bool has_line)
{
	return sp_hash_word(sp_hash_word(has_line ? 3 : 4, module), offset);
}

static int put_line(struct writer *w, const struct sp_symbol *symbol,
		    uint64_t module, uint64_t offset, size_t depth)
{
	/* With its parameters: the reader decides whether to show them. */
	const struct sp_fleet_value row[] = {
		sp_fleet_number(module),
		sp_fleet_number(offset),
		sp_fleet_number(depth),
		sp_fleet_text(symbol->identity ? symbol->identity
					       : symbol->function),
		sp_fleet_text(symbol->file),
		sp_fleet_number(symbol->line),
		sp_fleet_number(
			(symbol->is_inlined ? SP_FLEET_NAME_INLINED : 0) |
			(symbol->is_clone ? SP_FLEET_NAME_CLONE : 0) |
			(symbol->lacks_inlined ? SP_FLEET_NAME_LACKS : 0) |
			(symbol->calls_wrapper ? SP_FLEET_NAME_CALLS : 0)),
		sp_fleet_number(symbol->is_fallback),
		sp_fleet_number(w->process),
	};

	return sp_fleet_put(w->db, SP_FLEET_NAMES, row, w->err);
}

/* Looks an address up of which so much is known. */
static int put_frame(struct writer *w, struct sp_symbolizer *symbolizer,
		     struct sp_frame frame, enum quality known)
{
	const uint64_t key[] = {module_of(w, frame.module), frame.offset};
	const struct sp_symbols s =
		sp_symbolizer_lookup(symbolizer, frame, true);
	const enum quality found =
		quality_of(s.symbol->is_fallback, s.symbol->line);
	int r = 0;

	if (found > known) {
		r = sp_fleet_erase(w->db, SP_FLEET_NAMES, key, 2, w->err);
		for (size_t i = 0; i < s.count && r >= 0; i++)
			r = put_line(w, &s.symbol[i], key[0], key[1], i);
	}
	if (r >= 0)
		sp_fleet_learn(&w->db->known,
			       name_key(key[0], key[1], found == LINE));
	return r;
}

/* Set known[i] for frames of one module, sorted, at most SP_FLEET_LIST_MAX. */
static int look_up_names(struct writer *w, uint64_t module,
			 const struct sp_frame *frames, size_t n,
			 enum quality *known)
{
	uint64_t offsets[SP_FLEET_LIST_MAX];
	const struct sp_fleet_value values[] = {sp_fleet_number(module),
						sp_fleet_list(offsets, n)};
	struct sp_fleet_rows *rows;
	int r;

	for (size_t i = 0; i < n; i++)
		offsets[i] = frames[i].offset;
	r = sp_fleet_ask(w->db, sp_fleet_find_names, values, 2, &rows, w->err);
	while (r >= 0 && (r = sp_fleet_next(rows, w->err)) > 0) {
		const struct sp_frame key = {frames[0].module,
					     sp_fleet_get(rows, 0)};
		const struct sp_frame *found =
			bsearch(&key, frames, n, sizeof(*frames),
				sp_profile_compare_frames);
		const enum quality q = quality_of(sp_fleet_get(rows, 1) == 1,
						  sp_fleet_get(rows, 2));

		if (found && known[found - frames] < q)
			known[found - frames] = q;
	}
	sp_fleet_rows_free(rows);
	return r;
}

/* Frames of one module, as above, that are not known. */
static int put_some_names(struct writer *w, struct sp_symbolizer *symbolizer,
			  const struct sp_frame *frames, size_t n)
{
	const uint64_t module = module_of(w, frames[0].module);
	enum quality known[SP_FLEET_LIST_MAX] = {NOTHING};
	int r = look_up_names(w, module, frames, n, known);

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (known[i] < LINE)
			r = put_frame(w, symbolizer, frames[i], known[i]);
		else
			sp_fleet_learn(
				&w->db->known,
				name_key(module, frames[i].offset, true));
	}
	return r;
}

/* Outside of modules an address is another function in each process.  Names in
 * the profile may be better than those that this machine found. */
static bool wants_name(const struct writer *w, struct sp_frame frame)
{
	const uint64_t module = module_of(w, frame.module);

	return module != SP_FLEET_ANONYMOUS && module != SP_FLEET_NO_MODULE &&
	       !sp_fleet_knows(&w->db->known,
			       name_key(module, frame.offset, true)) &&
	       (w->profile->n_embedded ||
		!sp_fleet_knows(&w->db->known,
				name_key(module, frame.offset, false)));
}

/* Frames are sorted by module and offset. */
static int put_all_names(struct writer *w, struct sp_symbolizer *symbolizer,
			 struct sp_frame *frames, size_t n)
{
	size_t kept = 0, end;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (wants_name(w, frames[i]))
			frames[kept++] = frames[i];
	for (size_t i = 0; i < kept && r >= 0; i = end) {
		end = i + 1;
		while (end < kept && end - i < SP_FLEET_LIST_MAX &&
		       frames[end].module == frames[i].module)
			end++;
		r = put_some_names(w, symbolizer, &frames[i], end - i);
	}
	return r;
}

static int put_names(struct writer *w,
		     const struct sp_symbolizer_options *options)
{
	struct sp_symbolizer *symbolizer;
	size_t n;
	struct sp_frame *frames = sp_profile_frames(w->profile, &n);
	int r = frames ? sp_symbolizer_new(w->profile, options, &symbolizer,
					   w->err)
		       : fail_memory(w);

	if (r >= 0) {
		r = put_all_names(w, symbolizer, frames, n);
		sp_symbolizer_free(symbolizer);
	}
	free(frames);
	return r;
}

int sp_fleet_put_code(struct sp_fleet_db *db, const struct sp_profile *profile,
		      uint64_t process,
		      const struct sp_symbolizer_options *symbols,
		      uint64_t **ret_stacks, struct sp_error *err)
{
	struct writer w = {
		.db = db, .profile = profile, .process = process, .err = err};
	uint64_t *ids = calloc(profile->n_stacks + 1, sizeof(*ids));
	int r;

	w.modules = calloc(profile->n_modules + 1, sizeof(*w.modules));
	r = ids && w.modules ? put_modules(&w) : fail_memory(&w);
	if (r >= 0)
		r = put_stacks(&w, ids);
	if (r >= 0)
		r = put_names(&w, symbols);
	free(w.modules);
	free(w.frames);
	if (r < 0)
		free(ids);
	else
		*ret_stacks = ids;
	return r;
}
