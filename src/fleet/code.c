/* SPDX-License-Identifier: MIT */
#include "fleet/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct writer {
	struct sp_fleet_db *db;
	const struct sp_profile *profile;
	uint64_t *modules; /* id of each of the profile's modules */
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

/* ---- modules ---- */

static bool is_same_module(sqlite3_stmt *s, const struct sp_module *m)
{
	return strcmp(sp_fleet_text(s, 0), m->path) == 0 &&
	       sqlite3_column_bytes(s, 1) == (int)m->build_id_len &&
	       (!m->build_id_len ||
		memcmp(sqlite3_column_blob(s, 1), m->build_id,
		       m->build_id_len) == 0) &&
	       sp_fleet_u64(s, 2) == m->end_pc - m->start_pc &&
	       sp_fleet_u64(s, 3) == m->start_pc - m->bias;
}

/* 1: it is there; 0: it is not; negative errno. */
static int find_row(struct writer *w, sqlite3_stmt *s, uint64_t id)
{
	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, id);
	return sp_fleet_step(w->db, s, w->err);
}

static int put_module(struct writer *w, const struct sp_module *m, uint64_t id)
{
	sqlite3_stmt *s =
		sp_fleet_statement(w->db, SP_FLEET_FIND_MODULE, w->err);
	int r = find_row(w, s, id);

	if (r)
		return r < 0                  ? r
		       : is_same_module(s, m) ? 0
					      : fail_clash(w, "module");
	s = sp_fleet_statement(w->db, SP_FLEET_PUT_MODULE, w->err);
	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, id);
	sp_fleet_bind_text(s, 2, m->path);
	sqlite3_bind_blob(s, 3, m->build_id, (int)m->build_id_len,
			  SQLITE_STATIC);
	sp_fleet_bind(s, 4, m->start_pc);
	sp_fleet_bind(s, 5, m->end_pc);
	sp_fleet_bind(s, 6, m->bias);
	sp_fleet_bind(s, 7, m->is_main);
	return sp_fleet_run(w->db, s, w->err);
}

static int put_modules(struct writer *w)
{
	int r = 0;

	for (size_t i = 0; i < w->profile->n_modules && r >= 0; i++) {
		w->modules[i] = module_id(&w->profile->modules[i]);
		r = put_module(w, &w->profile->modules[i], w->modules[i]);
	}
	return r;
}

/* ---- stacks ---- */

static int put_stack(struct writer *w, const struct sp_stack *stack,
		     unsigned char *frames, uint64_t *ret_id)
{
	const size_t bytes = stack->n_frames * SP_FLEET_FRAME_BYTES;
	uint64_t h = sp_hash_word(2, stack->flags);
	sqlite3_stmt *s;
	int r;

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct sp_frame *f = &stack->frames[i];
		unsigned char *to = frames + i * SP_FLEET_FRAME_BYTES;
		const uint64_t module = module_of(w, f->module);

		put_word(to, module);
		put_word(to + 8, f->offset);
		h = sp_hash_word(sp_hash_word(h, module), f->offset);
	}
	*ret_id = finish_id(sp_hash_word(h, stack->n_frames));
	s = sp_fleet_statement(w->db, SP_FLEET_FIND_STACK, w->err);
	r = find_row(w, s, *ret_id);
	if (r)
		return r < 0 ? r
		       : sp_fleet_u64(s, 0) == stack->flags &&
				       sqlite3_column_bytes(s, 1) ==
					       (int)bytes &&
				       (!bytes ||
					memcmp(sqlite3_column_blob(s, 1),
					       frames, bytes) == 0)
			       ? 0
			       : fail_clash(w, "call stack");
	s = sp_fleet_statement(w->db, SP_FLEET_PUT_STACK, w->err);
	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, *ret_id);
	sp_fleet_bind(s, 2, stack->flags);
	sqlite3_bind_blob(s, 3, frames, (int)bytes, SQLITE_STATIC);
	return sp_fleet_run(w->db, s, w->err);
}

static int put_stacks(struct writer *w, uint64_t *ids)
{
	unsigned char *frames =
		malloc(SP_FORMAT_FRAMES_MAX * SP_FLEET_FRAME_BYTES);
	int r = frames ? 0
		       : sp_error_set(w->err, -ENOMEM, w->profile->path,
				      "not enough memory");

	for (size_t i = 0; i < w->profile->n_stacks && r >= 0; i++)
		r = put_stack(w, &w->profile->stacks[i], frames, &ids[i]);
	free(frames);
	return r;
}

/* ---- names ---- */

static int put_line(struct writer *w, const struct sp_symbol *symbol,
		    uint64_t module, uint64_t offset, size_t depth)
{
	sqlite3_stmt *s = sp_fleet_statement(w->db, SP_FLEET_PUT_NAME, w->err);

	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, module);
	sp_fleet_bind(s, 2, offset);
	sp_fleet_bind(s, 3, depth);
	/* With its parameters: how it is shown is up to who reads it. */
	sp_fleet_bind_text(
		s, 4, symbol->identity ? symbol->identity : symbol->function);
	sp_fleet_bind_text(s, 5, symbol->file);
	sp_fleet_bind(s, 6, symbol->line);
	sp_fleet_bind(s, 7, symbol->is_inlined);
	sp_fleet_bind(s, 8, symbol->is_fallback);
	return sp_fleet_run(w->db, s, w->err);
}

/* What is there with its line is right, whoever brought it: the build id is
 * part of the module's id.  Anything less is looked for again. */
static int put_frame(struct writer *w, struct sp_symbolizer *symbolizer,
		     struct sp_frame frame)
{
	const uint64_t module = module_of(w, frame.module);
	sqlite3_stmt *s = sp_fleet_statement(w->db, SP_FLEET_HAS_NAMES, w->err);
	struct sp_symbols symbols;
	int r;

	/* Outside of modules an address is another function in each process. */
	if (module == SP_FLEET_ANONYMOUS || module == SP_FLEET_NO_MODULE)
		return 0;
	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, module);
	sp_fleet_bind(s, 2, frame.offset);
	r = sp_fleet_step(w->db, s, w->err);
	if (r)
		return r < 0 ? r : 0;
	symbols = sp_symbolizer_lookup(symbolizer, frame, true);
	s = sp_fleet_statement(w->db, SP_FLEET_DROP_NAMES, w->err);
	if (s) {
		sp_fleet_bind(s, 1, module);
		sp_fleet_bind(s, 2, frame.offset);
	}
	r = sp_fleet_run(w->db, s, w->err);
	for (size_t i = 0; i < symbols.count && r >= 0; i++)
		r = put_line(w, &symbols.symbol[i], module, frame.offset, i);
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
		       : sp_error_set(w->err, -ENOMEM, w->profile->path,
				      "not enough memory");

	if (r >= 0) {
		for (size_t i = 0; i < n && r >= 0; i++)
			r = put_frame(w, symbolizer, frames[i]);
		sp_symbolizer_free(symbolizer);
	}
	free(frames);
	return r;
}

int sp_fleet_put_code(struct sp_fleet_db *db, const struct sp_profile *profile,
		      const struct sp_symbolizer_options *symbols,
		      uint64_t **ret_stacks, struct sp_error *err)
{
	struct writer w = {db, profile, NULL, err};
	uint64_t *ids = calloc(profile->n_stacks + 1, sizeof(*ids));
	int r;

	w.modules = calloc(profile->n_modules + 1, sizeof(*w.modules));
	r = ids && w.modules ? put_modules(&w)
			     : sp_error_set(err, -ENOMEM, profile->path,
					    "not enough memory");
	if (r >= 0)
		r = put_stacks(&w, ids);
	if (r >= 0)
		r = put_names(&w, symbols);
	free(w.modules);
	if (r < 0)
		free(ids);
	else
		*ret_stacks = ids;
	return r;
}
