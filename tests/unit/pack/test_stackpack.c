/* SPDX-License-Identifier: MIT */
/*
 * Random stacks to chunks and back, each frame that is shared written once;
 * symbols of their places compared with those of a file that is not packed.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/rng.h"
#include "read/symbolfile.h"
#include "pack/events.h"
#include "pack/stackpack.h"
#include "support/test.h"

#define CHUNK      SP_FORMAT_CHUNK_BYTES
#define FILE_ID    77
#define STACKS_MAX 3000
#define FRAMES_MAX 12000 /* distinct ones */
#define LONG       40000 /* bytes of a name that is too long */

static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

/* ---- stacks ---- */

static struct sp_stack stacks[STACKS_MAX];
static struct sp_profile profile = {
	.path = "x", .file_id = FILE_ID, .stacks = stacks};

static struct sp_frame random_frame(uint64_t n)
{
	static const uint32_t modules[] = {0, 1, 2, 900, UINT32_MAX};
	const uint32_t module = modules[below(5)];
	const uint64_t at = below(n);

	/* Of no module: where the stack of a 64-bit program may be. */
	return (struct sp_frame){module,
				 module ? at * 3 : UINT64_MAX - (at << 44)};
}

/* `deep` frames, of which the outermost are those of another stack. */
static void add_stack(uint32_t deep, uint64_t n_frames)
{
	const size_t i = profile.n_stacks++;
	struct sp_stack *s = &stacks[i];
	uint32_t shared = 0;

	assert_true(i < STACKS_MAX);
	/* Not in their order, with gaps, up to the largest. */
	s->id = (uint32_t)((i ^ 5) * 3 + 1);
	if (i % 100 == 99)
		s->id = UINT32_MAX - (uint32_t)i;
	s->flags = (uint32_t)sp_rng_next(&rng) >> below(32);
	s->n_frames = deep;
	s->frames = malloc((deep + 1) * sizeof(*s->frames));
	assert_non_null(s->frames);
	if (i && below(8)) {
		const struct sp_stack *from = &stacks[below(i)];
		const uint32_t most =
			from->n_frames < deep ? from->n_frames : deep;

		shared = below(4) ? most : (uint32_t)below(most + 1);
		if (shared)
			memcpy(s->frames + deep - shared,
			       from->frames + from->n_frames - shared,
			       shared * sizeof(*s->frames));
	}
	for (uint32_t k = 0; k < deep - shared; k++)
		s->frames[k] = random_frame(n_frames);
}

static void free_stacks(void)
{
	for (size_t i = 0; i < profile.n_stacks; i++)
		free(stacks[i].frames);
	profile.n_stacks = 0;
}

/* ---- chunks ---- */

static uint8_t *chunks;
static size_t n_chunks, room;
static size_t fail_at; /* this one is not taken; 0: all are */

static int keep_chunk(void *arg, const uint8_t *chunk)
{
	assert_ptr_equal(arg, &n_chunks);
	if (n_chunks == room) {
		room = room ? 2 * room : 16;
		chunks = realloc(chunks, room * CHUNK);
		assert_non_null(chunks);
	}
	memcpy(chunks + n_chunks++ * CHUNK, chunk, CHUNK);
	return fail_at && n_chunks == fail_at ? -EDQUOT : 0;
}

static struct sp_frame *places;
static size_t n_places;

static void pack_stacks(void)
{
	n_chunks = 0;
	free(places);
	assert_int_equal(sp_stackpack_write(&profile, 3, keep_chunk, &n_chunks,
					    &places, &n_places),
			 0);
}

static struct sp_chunk_header head_of(size_t chunk)
{
	struct sp_chunk_header h;

	memcpy(&h, chunks + chunk * CHUNK, sizeof(h));
	return h;
}

static struct sp_unpacker *begin_chunk(struct sp_unpacker *u, size_t i)
{
	const struct sp_chunk_header h = head_of(i);

	if (!u)
		u = sp_unpacker_new(FILE_ID);
	assert_non_null(u);
	assert_int_equal(h.index, 3 + i);
	assert_null(sp_unpack_chunk(u, h.kind, chunks + i * CHUNK, CHUNK));
	return u;
}

/* ---- stacks again ---- */

static void same_stack(const struct sp_decoded *d, const struct sp_stack *s)
{
	static struct sp_record_frame frames[SP_FORMAT_FRAMES_MAX];

	assert_int_equal(d->type, SP_RECORD_STACK);
	assert_int_equal(d->u.stack.id, s->id);
	assert_int_equal(d->u.stack.flags, s->flags);
	assert_int_equal(d->u.stack.n_frames, s->n_frames);
	sp_decode_frames(d, frames);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		assert_int_equal(frames[i].module, s->frames[i].module);
		assert_int_equal(frames[i].offset, s->frames[i].offset);
	}
}

static void same_stacks(void)
{
	struct sp_unpacker *u = NULL;
	struct sp_decoded d;
	size_t at = 0;
	int r;

	for (size_t i = 0; i < n_chunks; i++) {
		u = begin_chunk(u, i);
		while ((r = sp_unpack_next(u, &d)) == 1) {
			/* What was only mentioned is left out. */
			while (at < profile.n_stacks && !stacks[at].frames)
				at++;
			assert_true(at < profile.n_stacks);
			same_stack(&d, &stacks[at++]);
		}
		assert_int_equal(r, 0);
	}
	while (at < profile.n_stacks && !stacks[at].frames)
		at++;
	assert_int_equal(at, profile.n_stacks);
	sp_unpacker_free(u);
}

/* Each frame once, in the order in which they come, the outermost first. */
static void same_places(void)
{
	static struct sp_frame want[FRAMES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < profile.n_stacks; i++)
		for (uint32_t k = stacks[i].n_frames; k-- > 0;) {
			const struct sp_frame *f = &stacks[i].frames[k];
			size_t at = 0;

			while (at < n && (want[at].module != f->module ||
					  want[at].offset != f->offset))
				at++;
			assert_true(at < FRAMES_MAX);
			if (at == n)
				want[n++] = *f;
		}
	assert_int_equal(n_places, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(places[i].module, want[i].module);
		assert_int_equal(places[i].offset, want[i].offset);
	}
}

static uint32_t in_common(const struct sp_stack *a, const struct sp_stack *b)
{
	uint32_t n = 0;

	while (n < a->n_frames && n < b->n_frames) {
		const struct sp_frame *f = &a->frames[a->n_frames - 1 - n];
		const struct sp_frame *g = &b->frames[b->n_frames - 1 - n];

		if (f->module != g->module || f->offset != g->offset)
			break;
		n++;
	}
	return n;
}

/* Of each stack only that was written which no stack before it has. */
static void shares_all(void)
{
	size_t want = 0, got = 0;

	for (size_t i = 0; i < profile.n_stacks; i++) {
		uint32_t most = 0;

		for (size_t k = 0; k < i; k++) {
			const uint32_t n = in_common(&stacks[i], &stacks[k]);

			most = n > most ? n : most;
		}
		want += stacks[i].n_frames - most;
	}
	for (size_t i = 0; i < n_chunks; i++) {
		const uint8_t *at = chunks + i * CHUNK + 24;
		struct sp_stacks_header h;

		memcpy(&h, at, sizeof(h));
		at += sizeof(h) + h.column_bytes[SP_COLUMN_STACK];
		for (uint32_t k = 0; k < h.column_bytes[SP_COLUMN_FRAME]; k++)
			got += at[k] < 128; /* a number ends */
	}
	assert_int_equal(got, want);
}

TEST(stacks)
{
	sp_rng_init(&rng, 41, 0);
	for (unsigned int i = 0; i < 20; i++) {
		const size_t n = 1 + below(300);

		for (size_t k = 0; k < n; k++)
			add_stack(below(9)   ? (uint32_t)below(30)
				  : below(9) ? 0
					     : SP_FORMAT_FRAMES_MAX -
						       (uint32_t)below(2),
				  1 + below(20 * i + 2));
		/* One that a sample named, and that has no record. */
		free(stacks[n / 2].frames);
		stacks[n / 2].frames = NULL;
		stacks[n / 2].n_frames = 0;
		pack_stacks();
		same_stacks();
		same_places();
		shares_all();
		free_stacks();
	}
}

/* Little to write, but more than may come out of one chunk. */
TEST(shared)
{
	sp_rng_init(&rng, 42, 0);
	for (unsigned int i = 0; i < 1200; i++) {
		const struct sp_frame *from = stacks[below(i + 1) / 2].frames;

		add_stack(SP_FORMAT_FRAMES_MAX, 3);
		if (!i)
			continue;
		memcpy(stacks[i].frames, from,
		       SP_FORMAT_FRAMES_MAX * sizeof(*from));
		stacks[i].frames[0] = random_frame(3);
	}
	pack_stacks();
	assert_int_equal(n_chunks, 5);
	same_stacks();
	free_stacks();
}

/* Nothing shared: as many bytes as fit. */
TEST(distinct)
{
	sp_rng_init(&rng, 43, 0);
	for (unsigned int i = 0; i < 60; i++) {
		add_stack(SP_FORMAT_FRAMES_MAX, 1 << 20);
		for (uint32_t k = 0; k < SP_FORMAT_FRAMES_MAX; k++)
			stacks[i].frames[k] = random_frame(1 << 20);
	}
	pack_stacks();
	assert_true(n_chunks >= 5);
	same_stacks();
	free_stacks();
}

TEST(none)
{
	pack_stacks();
	assert_int_equal(n_chunks, 0);
	assert_int_equal(n_places, 0);
	assert_non_null(places);
}

TEST(not_taken)
{
	size_t all;

	sp_rng_init(&rng, 44, 0);
	for (unsigned int i = 0; i < 600; i++)
		add_stack(SP_FORMAT_FRAMES_MAX, 3);
	pack_stacks();
	all = n_chunks;
	assert_true(all > 2);
	for (fail_at = 1; fail_at <= all; fail_at++) {
		struct sp_frame *none;
		size_t n;

		n_chunks = 0;
		assert_int_equal(sp_stackpack_write(&profile, 3, keep_chunk,
						    &n_chunks, &none, &n),
				 -EDQUOT);
		assert_int_equal(n_chunks, fail_at);
	}
	fail_at = 0;
	free_stacks();
}

/* ---- symbols ---- */

static char long_name[LONG + 1], other_long_name[LONG + 1];
static struct sp_blocks pool;

/* Some texts are of many frames, some are both a function and a file; a last
 * line may claim to be inlined, and there may be too many. */
struct sp_symbols sp_symbolizer_lookup(struct sp_symbolizer *symbolizer,
				       struct sp_frame frame,
				       bool is_return_address)
{
	static const char *const files[] = {NULL, "src/a.c", "src/b.c",
					    "a_rather_long::f3_0"};
	const uint64_t at = frame.offset + frame.module;
	const size_t n =
		at % 97 == 0 ? SP_FORMAT_LINES_MAX + at % 7 : 1 + at % 3;
	struct sp_symbol *lines = sp_blocks_get(&pool, n * sizeof(*lines));

	(void)symbolizer;
	assert_true(is_return_address);
	assert_non_null(lines);
	for (size_t i = 0; i < n; i++) {
		char name[64];

		snprintf(name, sizeof(name), "a_rather_long::f%" PRIu64 "_%zu",
			 at / 8, i);
		lines[i] = (struct sp_symbol){
			.function = sp_blocks_text(&pool, name, strlen(name)),
			.file = files[at * 7 / 3 % 4],
			.line = (uint32_t)(at * 7919),
			.is_inlined = i + 1 < n || at % 13 == 0,
			.is_fallback = at % 11 == 0,
		};
		if (at % 50 == 7)
			lines[i].function =
				at % 100 == 7 ? long_name : other_long_name;
	}
	return (struct sp_symbols){lines, n};
}

/* What a file says: texts by their ids, and the symbols as they came. */
struct said {
	struct sp_record_name names[4 * FRAMES_MAX];
	size_t n_names;
	struct {
		struct sp_record_frame frame;
		size_t n_lines;
		struct sp_record_line lines[SP_FORMAT_LINES_MAX];
	} symbols[FRAMES_MAX];
	size_t n_symbols;
};

static void take(struct said *s, const struct sp_decoded *d)
{
	if (d->type == SP_RECORD_NAME) {
		assert_int_equal(d->u.name.id, ++s->n_names);
		assert_true(s->n_names < 4 * FRAMES_MAX);
		s->names[s->n_names] = d->u.name;
		return;
	}
	assert_int_equal(d->type, SP_RECORD_SYMBOL);
	assert_true(s->n_symbols < FRAMES_MAX);
	s->symbols[s->n_symbols].frame = d->u.symbol.frame;
	s->symbols[s->n_symbols].n_lines = d->u.symbol.n_lines;
	sp_decode_lines(d, s->symbols[s->n_symbols++].lines);
}

static void write_symbols(bool is_packed)
{
	const struct sp_symbolfile to = {.places = is_packed ? places : NULL,
					 .n_places = is_packed ? n_places : 0,
					 .first_chunk = 3 + n_chunks,
					 .fn = keep_chunk,
					 .arg = &n_chunks};
	uint64_t n = 0;

	assert_int_equal(
		sp_symbolfile_write(&profile, NULL, &to, NULL, NULL, &n, NULL),
		0);
	assert_int_equal(n, n_places);
}

/* The chunks stay: texts go there. */
static void read_symbols(struct said *s, size_t from)
{
	struct sp_unpacker *u = NULL;
	struct sp_decoded d;

	s->n_names = s->n_symbols = 0;
	for (size_t i = 0; i < n_chunks; i++) {
		const uint8_t *chunk = chunks + i * CHUNK;
		struct sp_chunk_state state;
		size_t at = SP_FORMAT_CHUNK_RECORDS_OFFSET;

		if (head_of(i).kind != SP_CHUNK_SYMBOLS) {
			u = begin_chunk(u, i);
			while (sp_unpack_next(u, &d) == 1)
				if (i >= from)
					take(s, &d);
			continue;
		}
		sp_chunk_state_init(&state, FILE_ID, 3 + i);
		while (sp_decode_next(&state, chunk, CHUNK, &at, &d) ==
		       SP_DECODE_RECORD)
			take(s, &d);
	}
	sp_unpacker_free(u);
}

static void same_text(const struct said *a, uint32_t x, const struct said *b,
		      uint32_t y, const char *want)
{
	size_t n = want ? strlen(want) : 0;

	assert_true(!x == !want && !y == !want);
	assert_true(x <= a->n_names && y <= b->n_names);
	if (!want)
		return;
	n = n < SP_FORMAT_NAME_MAX ? n : SP_FORMAT_NAME_MAX;
	assert_int_equal(a->names[x].text_bytes, n);
	assert_int_equal(b->names[y].text_bytes, n);
	assert_memory_equal(a->names[x].text, want, n);
	assert_memory_equal(b->names[y].text, want, n);
}

static void same_symbols(const struct said *packed, const struct said *plain)
{
	assert_int_equal(packed->n_symbols, n_places);
	assert_int_equal(plain->n_symbols, n_places);
	assert_int_equal(packed->n_names, plain->n_names);
	for (size_t i = 0; i < n_places; i++) {
		const struct sp_record_frame f = packed->symbols[i].frame;
		const struct sp_symbols want =
			sp_symbolizer_lookup(NULL, places[i], true);
		size_t k = 0;

		assert_int_equal(f.module, places[i].module);
		assert_int_equal(f.offset, places[i].offset);
		while (k < n_places &&
		       (plain->symbols[k].frame.module != f.module ||
			plain->symbols[k].frame.offset != f.offset))
			k++;
		assert_true(k < n_places);
		assert_int_equal(packed->symbols[i].n_lines,
				 want.count < SP_FORMAT_LINES_MAX
					 ? want.count
					 : SP_FORMAT_LINES_MAX);
		assert_int_equal(packed->symbols[i].n_lines,
				 plain->symbols[k].n_lines);
		for (size_t l = 0; l < packed->symbols[i].n_lines; l++) {
			const struct sp_record_line *x =
				&packed->symbols[i].lines[l];
			const struct sp_record_line *y =
				&plain->symbols[k].lines[l];
			const struct sp_symbol *s = &want.symbol[l];

			assert_int_equal(x->flags, y->flags);
			assert_int_equal(x->flags & SP_SYMBOL_INLINED,
					 s->is_inlined);
			assert_int_equal(x->line, y->line);
			assert_int_equal(x->line, s->line);
			same_text(packed, x->function, plain, y->function,
				  s->function);
			same_text(packed, x->file, plain, y->file, s->file);
		}
	}
}

TEST(symbols)
{
	static struct said packed, plain;
	uint8_t *kept;
	size_t n_stack_chunks, n_long = 0;

	memset(long_name, 'x', LONG);
	memset(other_long_name, 'y', LONG);
	sp_rng_init(&rng, 45, 0);
	for (unsigned int i = 0; i < 40; i++)
		add_stack(SP_FORMAT_FRAMES_MAX / 2, 2000);
	pack_stacks();
	n_stack_chunks = n_chunks;
	write_symbols(true);
	/* Borders of chunks between the texts and their lines, too. */
	assert_true(n_chunks - n_stack_chunks >= 5);
	read_symbols(&packed, n_stack_chunks);
	kept = chunks;
	chunks = NULL;
	room = n_chunks = 0;
	write_symbols(false);
	read_symbols(&plain, 0);
	same_symbols(&packed, &plain);
	for (size_t i = 1; i <= packed.n_names; i++)
		n_long += packed.names[i].text_bytes == SP_FORMAT_NAME_MAX;
	assert_int_equal(n_long, 2);
	free(kept);
	free_stacks();
}

static int free_all(void **state)
{
	(void)state;
	free(places);
	free(chunks);
	sp_blocks_free(&pool);
	return 0;
}

TEST_MAIN(NULL, free_all)
