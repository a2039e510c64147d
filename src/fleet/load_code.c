/* SPDX-License-Identifier: MIT */
#include "fleet/load_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "fleet/code.h"
#include "read/codemap.h"

/* A module by its id in the database: ids of the profile are small. */
struct module_id {
	uint64_t id;
	uint32_t number;
};

struct reader {
	struct sp_fleet_db *db;
	struct sp_profile *p;
	struct sp_codemap map; /* of the modules alone */
	struct module_id *modules;
	size_t n_modules, modules_room;
	struct sp_index by_id;
	size_t stacks_room, ids_room;
	struct sp_error *err;
};

static int fail_memory(struct reader *r)
{
	return sp_error_set(r->err, -ENOMEM, r->db->path,
			    "not enough memory for the call stacks: choose "
			    "fewer processes with --label or --host");
}

static uint64_t get_word(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* ---- modules ---- */

static int load_module(struct reader *r, uint64_t id, uint32_t *ret)
{
	sqlite3_stmt *s =
		sp_fleet_statement(r->db, SP_FLEET_GET_MODULE, r->err);
	struct sp_module m = {.id = 0};
	int n, row;

	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, id);
	row = sp_fleet_step(r->db, s, r->err);
	if (row < 0)
		return row;
	n = row ? sqlite3_column_bytes(s, 1) : 0;
	if (!row || n > SP_FORMAT_BUILD_ID_MAX)
		return sp_fleet_damaged(r->db, "a module", r->err);
	m.path = sp_fleet_text(s, 0);
	m.build_id_len = (uint32_t)n;
	if (n)
		memcpy(m.build_id, sqlite3_column_blob(s, 1), (size_t)n);
	m.start_pc = sp_fleet_u64(s, 2);
	m.end_pc = sp_fleet_u64(s, 3);
	m.bias = sp_fleet_u64(s, 4);
	m.is_main = sqlite3_column_int(s, 5) == 1;
	if (m.end_pc < m.start_pc)
		return sp_fleet_damaged(r->db, "a module", r->err);
	row = sp_codemap_add_module(&r->map, &m, ret);
	sqlite3_reset(s);
	return row < 0 ? fail_memory(r) : 0;
}

static int find_module(struct reader *r, uint64_t id, uint32_t *ret)
{
	struct sp_index_probe probe = sp_index_begin(sp_hash_word(0, id));
	struct module_id *m;
	int code;

	if (id <= SP_FLEET_NO_MODULE) {
		*ret = id == SP_FLEET_ANONYMOUS ? 0 : SP_CODEMAP_NO_MODULE;
		return 0;
	}
	if (sp_index_reserve(&r->by_id) ||
	    sp_array_reserve((void **)&r->modules, &r->modules_room,
			     r->n_modules, sizeof(*r->modules)))
		return fail_memory(r);
	while (sp_index_next(&r->by_id, &probe))
		if (r->modules[probe.position].id == id) {
			*ret = r->modules[probe.position].number;
			return 0;
		}
	m = &r->modules[r->n_modules];
	m->id = id;
	code = load_module(r, id, &m->number);
	if (code < 0)
		return code;
	*ret = m->number;
	sp_index_put(&r->by_id, &probe, r->n_modules++);
	return 0;
}

/* ---- stacks ---- */

static int add_stack(struct reader *r, struct sp_fleet_code *code,
		     sqlite3_stmt *s)
{
	struct sp_profile *p = r->p;
	const int bytes = sqlite3_column_bytes(s, 2);
	const unsigned char *at = sqlite3_column_blob(s, 2);
	const uint32_t n = (uint32_t)bytes / SP_FLEET_FRAME_BYTES;
	struct sp_stack *to;
	int c = 0;

	if (bytes % (int)SP_FLEET_FRAME_BYTES || n > SP_FORMAT_FRAMES_MAX ||
	    p->n_stacks >= UINT32_MAX - 1)
		return sp_fleet_damaged(r->db, "a call stack", r->err);
	if (sp_array_reserve((void **)&p->stacks, &r->stacks_room, p->n_stacks,
			     sizeof(*to)) ||
	    sp_array_reserve((void **)&code->stacks, &r->ids_room, p->n_stacks,
			     sizeof(*code->stacks)))
		return fail_memory(r);
	to = &p->stacks[p->n_stacks];
	*to = (struct sp_stack){
		.id = (uint32_t)p->n_stacks + 1,
		.flags = (uint32_t)sp_fleet_u64(s, 1),
		.n_frames = n,
		.frames = sp_blocks_get(&p->storage,
					(n + 1) * sizeof(*to->frames)),
	};
	if (!to->frames)
		return fail_memory(r);
	for (uint32_t i = 0; i < n && c >= 0; i++, at += SP_FLEET_FRAME_BYTES) {
		to->frames[i].offset = get_word(at + 8);
		c = find_module(r, get_word(at), &to->frames[i].module);
	}
	code->stacks[p->n_stacks++] = sp_fleet_u64(s, 0);
	code->n_stacks = p->n_stacks;
	return c;
}

static int load_stacks(struct reader *r, struct sp_fleet_code *code)
{
	sqlite3_stmt *s =
		sp_fleet_statement(r->db, SP_FLEET_GET_STACKS, r->err);
	int c = -EIO;

	while (s && (c = sp_fleet_step(r->db, s, r->err)) > 0) {
		c = add_stack(r, code, s);
		if (c < 0)
			return c;
	}
	return c;
}

/* SQL's order is that of signed numbers. */
static int compare_ids(const void *a, const void *b)
{
	const int64_t x = (int64_t) * (const uint64_t *)a;
	const int64_t y = (int64_t) * (const uint64_t *)b;

	return (x > y) - (x < y);
}

bool sp_fleet_code_find(const struct sp_fleet_code *code, uint64_t id,
			uint32_t *ret)
{
	const uint64_t *at =
		code->n_stacks ? bsearch(&id, code->stacks, code->n_stacks,
					 sizeof(*code->stacks), compare_ids)
			       : NULL;

	if (at)
		*ret = (uint32_t)(at - code->stacks);
	return at != NULL;
}

/* ---- names ---- */

static const char *keep_text(struct reader *r, sqlite3_stmt *s, int i)
{
	const char *text = sp_fleet_text(s, i);

	return sqlite3_column_type(s, i) == SQLITE_NULL
		       ? NULL
		       : sp_blocks_text(&r->p->storage, text, strlen(text));
}

static int read_lines(struct reader *r, sqlite3_stmt *s,
		      struct sp_symbol lines[SP_FORMAT_LINES_MAX])
{
	int n = 0, c;

	while ((c = sp_fleet_step(r->db, s, r->err)) > 0) {
		if (n == SP_FORMAT_LINES_MAX)
			return sp_fleet_damaged(r->db, "a name", r->err);
		lines[n] = (struct sp_symbol){
			.identity = keep_text(r, s, 0),
			.file = keep_text(r, s, 1),
			.line = (uint32_t)sp_fleet_u64(s, 2),
			.is_inlined = sqlite3_column_int(s, 3) == 1,
			.is_fallback = sqlite3_column_int(s, 4) == 1,
		};
		/* A symbolizer says what it is called. */
		lines[n].function = lines[n].identity;
		if (!lines[n].function || !*lines[n++].function)
			return sp_fleet_damaged(r->db, "a name", r->err);
	}
	return c < 0 ? c : n;
}

static int add_names(struct reader *r, struct sp_frame frame, uint64_t module)
{
	sqlite3_stmt *s = sp_fleet_statement(r->db, SP_FLEET_GET_NAMES, r->err);
	struct sp_symbol lines[SP_FORMAT_LINES_MAX];
	struct sp_embedded_frame *to = &r->p->stored[r->p->n_stored];
	int n;

	if (!s)
		return -EIO;
	sp_fleet_bind(s, 1, module);
	sp_fleet_bind(s, 2, frame.offset);
	n = read_lines(r, s, lines);
	if (n <= 0)
		return n;
	to->frame = frame;
	to->symbols.count = (size_t)n;
	to->symbols.symbol = sp_blocks_copy(&r->p->storage, lines,
					    (size_t)n * sizeof(*lines));
	if (!to->symbols.symbol)
		return fail_memory(r);
	r->p->n_stored++;
	return 0;
}

/* Modules have their numbers in the order in which they came. */
static int load_names(struct reader *r)
{
	size_t n;
	struct sp_frame *frames = sp_profile_frames(r->p, &n);
	uint64_t *ids = calloc(r->p->n_modules + 1, sizeof(*ids));
	int c = 0;

	r->p->stored = calloc(n + 1, sizeof(*r->p->stored));
	if (!frames || !ids || !r->p->stored)
		c = fail_memory(r);
	for (size_t i = 0; i < r->n_modules && c >= 0; i++)
		ids[r->modules[i].number] = r->modules[i].id;
	for (size_t i = 0; i < n && c >= 0; i++)
		if (frames[i].module && frames[i].module <= r->p->n_modules)
			c = add_names(r, frames[i], ids[frames[i].module]);
	free(frames);
	free(ids);
	return c;
}

int sp_fleet_code_load(struct sp_fleet_code *code, struct sp_fleet_db *db,
		       struct sp_profile *profile, struct sp_error *err)
{
	struct reader r = {.db = db, .p = profile, .err = err};
	int c;

	sp_codemap_init(&r.map, profile);
	c = load_stacks(&r, code);
	if (c >= 0)
		c = load_names(&r);
	if (c >= 0 && sp_codemap_spread(&r.map) < 0)
		c = fail_memory(&r);
	sp_codemap_done(&r.map);
	sp_index_done(&r.by_id);
	free(r.modules);
	return c;
}

void sp_fleet_code_done(struct sp_fleet_code *code)
{
	free(code->stacks);
	*code = (struct sp_fleet_code){.n_stacks = 0};
}
