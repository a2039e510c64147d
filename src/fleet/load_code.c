/* SPDX-License-Identifier: MIT */
#include "fleet/load_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "fleet/code.h"
#include "fleet/sql.h"
#include "model/codemap.h"

struct reader {
	struct sp_fleet_db *db;
	struct sp_profile *p;
	struct sp_fleet_code *code;
	struct sp_codemap map; /* of the modules alone */
	/* Modules in the order in which stacks name them: ids of the database,
	 * and those of the profile, 0 before they are read. */
	uint64_t *modules;
	uint32_t *numbers;
	size_t n_modules, modules_room;
	struct sp_index by_id;
	size_t stacks_room;
	struct sp_error *err;
};

static int fail_memory(struct reader *r)
{
	return sp_error_memory(r->err, r->db->path);
}

static uint64_t get_word(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* Parts of a list that is too long to be asked for at once. */
static size_t part_of_list(size_t n, size_t from)
{
	return n - from < SP_FLEET_LIST_MAX ? n - from : SP_FLEET_LIST_MAX;
}

/* The position of an id among others, which begins a search. */
static bool find_id(const struct sp_index *index, const uint64_t *ids,
		    uint64_t id, struct sp_index_probe *probe)
{
	*probe = sp_index_begin(sp_hash_word(0, id));
	while (sp_index_next(index, probe))
		if (ids[probe->position] == id)
			return true;
	return false;
}

/* ---- stacks ---- */

/* The module number of a frame until all are read: 1 + its position. */
static int find_module(struct reader *r, uint64_t id, uint32_t *ret)
{
	struct sp_index_probe probe;

	if (id <= SP_FLEET_NO_MODULE) {
		*ret = id == SP_FLEET_ANONYMOUS ? 0 : SP_CODEMAP_NO_MODULE;
		return 0;
	}
	if (sp_index_reserve(&r->by_id) ||
	    sp_array_reserve((void **)&r->modules, &r->modules_room,
			     r->n_modules, sizeof(*r->modules)))
		return fail_memory(r);
	if (!find_id(&r->by_id, r->modules, id, &probe)) {
		r->modules[r->n_modules] = id;
		sp_index_put(&r->by_id, &probe, r->n_modules++);
		*ret = (uint32_t)r->n_modules;
	} else {
		*ret = probe.position + 1;
	}
	return 0;
}

static int read_stack(struct reader *r, struct sp_fleet_rows *rows,
		      struct sp_stack *to)
{
	size_t bytes;
	const unsigned char *at =
		(const unsigned char *)sp_fleet_get_bytes(rows, 2, &bytes);
	const size_t n = bytes / SP_FLEET_FRAME_BYTES;
	int c = 0;

	if (bytes % SP_FLEET_FRAME_BYTES || n > SP_FORMAT_FRAMES_MAX)
		return sp_fleet_damaged(r->db, "a call stack", r->err);
	*to = (struct sp_stack){
		.id = (uint32_t)r->p->n_stacks + 1,
		.flags = (uint32_t)sp_fleet_get(rows, 1),
		.n_frames = (uint32_t)n,
		.frames = sp_blocks_get(&r->p->storage,
					(n + 1) * sizeof(*to->frames)),
	};
	if (!to->frames)
		return fail_memory(r);
	for (size_t i = 0; i < n && c >= 0; i++, at += SP_FLEET_FRAME_BYTES) {
		to->frames[i].offset = get_word(at + 8);
		c = find_module(r, get_word(at), &to->frames[i].module);
	}
	return c;
}

static int add_stack(struct reader *r, struct sp_fleet_rows *rows)
{
	const uint64_t id = sp_fleet_get(rows, 0);
	struct sp_profile *p = r->p;
	struct sp_index_probe probe;
	struct sp_stack stack;
	int c = read_stack(r, rows, &stack);

	if (c < 0)
		return c;
	if (p->n_stacks >= UINT32_MAX - 1)
		return sp_fleet_damaged(r->db, "a call stack", r->err);
	if (sp_index_reserve(&r->code->by_id) ||
	    sp_array_reserve((void **)&p->stacks, &r->stacks_room, p->n_stacks,
			     sizeof(*p->stacks)) ||
	    sp_array_reserve((void **)&r->code->stacks, &r->code->room,
			     p->n_stacks, sizeof(*r->code->stacks)))
		return fail_memory(r);
	/* Other processes have it too, or it is there twice. */
	if (find_id(&r->code->by_id, r->code->stacks, id, &probe))
		return sp_stack_is_same(&p->stacks[probe.position], &stack)
			       ? 0
			       : sp_fleet_damaged(r->db, "a call stack",
						  r->err);
	p->stacks[p->n_stacks] = stack;
	r->code->stacks[p->n_stacks] = id;
	sp_index_put(&r->code->by_id, &probe, p->n_stacks++);
	return 0;
}

static int load_stacks(struct reader *r, const char *sql,
		       const uint64_t *processes, size_t n)
{
	const struct sp_fleet_value list = sp_fleet_list(processes, n);
	struct sp_fleet_rows *rows;
	int c = sp_fleet_ask(r->db, sql, &list, 1, &rows, r->err);

	while (c >= 0 && (c = sp_fleet_next(rows, r->err)) > 0)
		c = add_stack(r, rows);
	sp_fleet_rows_free(rows);
	return c;
}

bool sp_fleet_code_find(const struct sp_fleet_code *code, uint64_t id,
			uint32_t *ret)
{
	struct sp_index_probe probe;
	const bool is_there = find_id(&code->by_id, code->stacks, id, &probe);

	if (is_there)
		*ret = probe.position;
	return is_there;
}

/* ---- modules ---- */

static int add_module(struct reader *r, struct sp_fleet_rows *rows)
{
	struct sp_module m = {
		.path = sp_fleet_get_text(rows, 1),
		.start_pc = sp_fleet_get(rows, 3),
		.end_pc = sp_fleet_get(rows, 4),
		.bias = sp_fleet_get(rows, 5),
		.is_main = sp_fleet_get(rows, 6) == 1,
	};
	struct sp_index_probe probe;
	size_t n;
	const char *build_id = sp_fleet_get_bytes(rows, 2, &n);

	if (!find_id(&r->by_id, r->modules, sp_fleet_get(rows, 0), &probe))
		return 0;
	if (n > SP_FORMAT_BUILD_ID_MAX || m.end_pc < m.start_pc)
		return sp_fleet_damaged(r->db, "a module", r->err);
	memcpy(m.build_id, build_id, n);
	m.build_id_len = (uint32_t)n;
	return sp_codemap_add_module(&r->map, &m, &r->numbers[probe.position]) <
			       0
		       ? fail_memory(r)
		       : 0;
}

static int load_some_modules(struct reader *r, size_t from, size_t n)
{
	const struct sp_fleet_value list = sp_fleet_list(&r->modules[from], n);
	struct sp_fleet_rows *rows;
	int c = sp_fleet_ask(r->db, sp_fleet_get_modules, &list, 1, &rows,
			     r->err);

	while (c >= 0 && (c = sp_fleet_next(rows, r->err)) > 0)
		c = add_module(r, rows);
	sp_fleet_rows_free(rows);
	for (size_t i = from; i < from + n && c >= 0; i++)
		if (!r->numbers[i])
			c = sp_fleet_damaged(r->db, "a module", r->err);
	return c;
}

static int load_modules(struct reader *r)
{
	int c = 0;

	r->numbers = calloc(r->n_modules + 1, sizeof(*r->numbers));
	if (!r->numbers)
		return fail_memory(r);
	for (size_t i = 0; i < r->n_modules && c >= 0; i += SP_FLEET_LIST_MAX)
		c = load_some_modules(r, i, part_of_list(r->n_modules, i));
	for (size_t i = 0; i < r->p->n_stacks && c >= 0; i++)
		for (uint32_t k = 0; k < r->p->stacks[i].n_frames; k++) {
			uint32_t *m = &r->p->stacks[i].frames[k].module;

			if (*m && *m != SP_CODEMAP_NO_MODULE)
				*m = r->numbers[*m - 1];
		}
	return c;
}

/* ---- names ---- */

/* The names of an address that one source brought. */
struct names {
	struct sp_symbol lines[SP_FORMAT_LINES_MAX];
	size_t n;
	uint64_t offset, source;
};

static const char *keep_text(struct reader *r, struct sp_fleet_rows *rows,
			     int i)
{
	const char *text = sp_fleet_get_text(rows, i);

	return sp_fleet_is_null(rows, i)
		       ? NULL
		       : sp_blocks_text(&r->p->storage, text, strlen(text));
}

static int read_line(struct reader *r, struct sp_fleet_rows *rows,
		     struct names *to)
{
	const uint64_t flags = sp_fleet_get(rows, 5);
	struct sp_symbol *line = &to->lines[to->n];

	/* Duplicate rows count once. */
	if (sp_fleet_get(rows, 7) < to->n)
		return 0;
	if (to->n == SP_FORMAT_LINES_MAX)
		return sp_fleet_damaged(r->db, "a name", r->err);
	*line = (struct sp_symbol){
		.identity = keep_text(r, rows, 2),
		.file = keep_text(r, rows, 3),
		.line = (uint32_t)sp_fleet_get(rows, 4),
		.is_inlined = flags & SP_FLEET_NAME_INLINED,
		.is_clone = flags & SP_FLEET_NAME_CLONE,
		.lacks_inlined = flags & SP_FLEET_NAME_LACKS,
		.calls_wrapper = flags & SP_FLEET_NAME_CALLS,
		.is_fallback = sp_fleet_get(rows, 6) == 1,
	};
	/* The symbolizer names it. */
	line->function = line->identity;
	if (!line->function || !*line->function)
		return sp_fleet_damaged(r->db, "a name", r->err);
	to->n++;
	return 0;
}

/* Of several sources the one that knows the line, or at least the function. */
static bool is_better(const struct sp_symbol *one, const struct sp_symbol *than)
{
	if (one->is_fallback != than->is_fallback)
		return than->is_fallback;
	return one->line && !than->line;
}

/* `frames`, of which there are n, are those of one module, sorted; `embedded`
 * has one for each. */
static int keep_names(struct reader *r, const struct names *names,
		      const struct sp_frame *frames, size_t n,
		      struct sp_embedded_frame *embedded)
{
	const struct sp_frame key = {frames->module, names->offset};
	const struct sp_frame *found =
		names->n ? bsearch(&key, frames, n, sizeof(*frames),
				   sp_profile_compare_frames)
			 : NULL;
	struct sp_embedded_frame *to = found ? &embedded[found - frames] : NULL;

	if (!to || (to->symbols.count &&
		    !is_better(&names->lines[0], &to->symbols.symbol[0])))
		return 0;
	to->frame = *found;
	to->symbols.count = names->n;
	to->symbols.symbol = sp_blocks_copy(&r->p->storage, names->lines,
					    names->n * sizeof(*names->lines));
	return to->symbols.symbol ? 0 : fail_memory(r);
}

static int load_some_names(struct reader *r, uint64_t module,
			   const struct sp_frame *frames, size_t n,
			   struct sp_embedded_frame *embedded)
{
	uint64_t offsets[SP_FLEET_LIST_MAX];
	const struct sp_fleet_value values[] = {sp_fleet_number(module),
						sp_fleet_list(offsets, n)};
	struct names names = {.n = 0};
	struct sp_fleet_rows *rows;
	int c;

	for (size_t i = 0; i < n; i++)
		offsets[i] = frames[i].offset;
	c = sp_fleet_ask(r->db, sp_fleet_get_names, values, 2, &rows, r->err);
	while (c >= 0 && (c = sp_fleet_next(rows, r->err)) > 0) {
		const uint64_t offset = sp_fleet_get(rows, 0);
		const uint64_t source = sp_fleet_get(rows, 1);

		if (offset != names.offset || source != names.source) {
			c = keep_names(r, &names, frames, n, embedded);
			names.n = 0;
			names.offset = offset;
			names.source = source;
		}
		if (c >= 0)
			c = read_line(r, rows, &names);
	}
	sp_fleet_rows_free(rows);
	return c < 0 ? c : keep_names(r, &names, frames, n, embedded);
}

/* Ids of the database by those of the profile, to be freed; NULL: no memory. */
static uint64_t *invert_numbers(struct reader *r)
{
	uint64_t *ids = calloc(r->p->n_modules + 1, sizeof(*ids));

	for (size_t i = 0; i < r->n_modules && ids; i++)
		ids[r->numbers[i]] = r->modules[i];
	return ids;
}

static int load_names(struct reader *r)
{
	struct sp_profile *p = r->p;
	size_t n, end;
	struct sp_frame *frames = sp_profile_frames(p, &n);
	uint64_t *ids = invert_numbers(r);
	int c = 0;

	p->embedded = frames ? calloc(n + 1, sizeof(*p->embedded)) : NULL;
	if (!frames || !ids || !p->embedded)
		c = fail_memory(r);
	for (size_t i = 0; i < n && c >= 0; i = end) {
		end = i + 1;
		while (end < n && end - i < SP_FLEET_LIST_MAX &&
		       frames[end].module == frames[i].module)
			end++;
		if (frames[i].module && frames[i].module <= p->n_modules)
			c = load_some_names(r, ids[frames[i].module],
					    &frames[i], end - i,
					    &p->embedded[i]);
	}
	for (size_t i = 0; i < n && c >= 0; i++)
		if (p->embedded[i].symbols.count)
			p->embedded[p->n_embedded++] = p->embedded[i];
	free(frames);
	free(ids);
	return c;
}

int sp_fleet_code_load(struct sp_fleet_code *code, struct sp_fleet_db *db,
		       const struct sp_fleet_chosen *chosen, const char *sql,
		       struct sp_profile *profile, struct sp_error *err)
{
	struct reader r = {.db = db, .p = profile, .code = code, .err = err};
	int c = 0;

	sp_codemap_init(&r.map, profile);
	for (size_t i = 0; i < chosen->n && c >= 0; i += SP_FLEET_LIST_MAX)
		c = load_stacks(&r, sql, &chosen->processes[i],
				part_of_list(chosen->n, i));
	if (c >= 0)
		c = load_modules(&r);
	if (c >= 0)
		c = load_names(&r);
	if (c >= 0 && sp_codemap_spread(&r.map) < 0)
		c = fail_memory(&r);
	sp_codemap_done(&r.map);
	sp_index_done(&r.by_id);
	free(r.modules);
	free(r.numbers);
	return c;
}

void sp_fleet_code_done(struct sp_fleet_code *code)
{
	free(code->stacks);
	sp_index_done(&code->by_id);
	*code = (struct sp_fleet_code){.room = 0};
}
