/* SPDX-License-Identifier: MIT */
/* Symbols into a file and out of it, and what a file may say of them. */
#include <inttypes.h>
#include <unistd.h>

#include "read/symbolfile.h"
#include "model/profile.h"
#include "read/load.h"
#include "support/format_model.h"
#include "support/load_profile.h"
#include "support/temp_path.h"
#include "support/test.h"

#define FRAMES 6000
#define LONG   40000 /* bytes of a name that is too long */

static char paths[2][128];
static struct model_file file;
static size_t n_chunks;

/* ---- a symbolizer of the test's own ---- */

static char long_name[LONG + 1];

static struct sp_symbols answer(struct sp_frame frame)
{
	static struct sp_symbol symbols[SP_FORMAT_LINES_MAX];
	static char names[SP_FORMAT_LINES_MAX][64];
	const size_t n = frame.offset % 97 == 0 ? SP_FORMAT_LINES_MAX
						: 1 + frame.offset % 3;

	for (size_t i = 0; i < n; i++) {
		/* Some are shared by many frames. */
		snprintf(names[i], sizeof(names[i]), "f%" PRIu64 "_%zu",
			 frame.offset / 8, i);
		symbols[i] = (struct sp_symbol){
			.function = frame.offset == 77 ? long_name : names[i],
			.file = frame.offset % 5 ? "src/a.c" : NULL,
			.line = (uint32_t)(frame.offset * 7919),
			.is_inlined = i + 1 < n,
			.is_fallback = frame.offset % 11 == 0,
			.is_clone = frame.offset % 7 == i,
			.lacks_inlined = !i && frame.offset % 3 == 0,
			.calls_wrapper = !i && frame.offset % 5 == 0,
		};
	}
	return (struct sp_symbols){symbols, n};
}

static struct sp_blocks pool;

/* The texts of the real one stay, and so do these. */
struct sp_symbols sp_symbolizer_lookup(struct sp_symbolizer *symbolizer,
				       struct sp_frame frame,
				       bool is_return_address)
{
	const struct sp_symbols s = answer(frame);
	struct sp_symbol *kept =
		sp_blocks_copy(&pool, s.symbol, s.count * sizeof(*kept));

	(void)symbolizer;
	assert_true(is_return_address);
	assert_non_null(kept);
	for (size_t i = 0; i < s.count; i++)
		kept[i].function = sp_blocks_text(&pool, kept[i].function,
						  strlen(kept[i].function));
	return (struct sp_symbols){kept, s.count};
}

/* ---- files ---- */

static int keep_chunk(void *arg, const uint8_t *chunk)
{
	(void)arg;
	model_raw(&file.bytes, chunk, SP_FORMAT_CHUNK_BYTES);
	n_chunks++;
	return 0;
}

/* A file whose stacks have FRAMES frames of two modules. */
static void make(unsigned int number)
{
	static struct sp_frame frames[FRAMES];
	static struct sp_stack stack = {.n_frames = FRAMES, .frames = frames};
	struct sp_profile p = {.path = "x", .stacks = &stack, .n_stacks = 1};
	FREED_BY(model_done) struct model_bytes records = {0};
	const struct sp_symbolfile to = {.first_chunk = 2, .fn = keep_chunk};
	struct model_chunk chunk;
	uint64_t n = 0;

	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i] = (struct sp_frame){1 + i % 2, i / 2 * 3};
	model_file_init(&file, 2, 1);
	file.file_id = 40 + number;
	model_file_header(&file)->file_id = p.file_id = file.file_id;
	model_chunk_begin(&chunk, file.file_id, 1);
	for (uint64_t id = 1; id <= 2; id++)
		model_encode(&records, &chunk,
			     &(struct sp_record){
				     .type = SP_RECORD_MODULE,
				     .u.module = {.id = id,
						  .start_pc = id << 20,
						  .end_pc = (id + 1) << 20,
						  .bias = id << 20,
						  .path = id == 1 ? "/a" : "/b",
						  .path_bytes = 2}});
	model_file_put(&file, 1, &records);
	n_chunks = 0;
	assert_int_equal(
		sp_symbolfile_write(&p, NULL, &to, NULL, NULL, &n, NULL), 0);
	assert_int_equal(n, FRAMES);
}

static void write_file(unsigned int number)
{
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, paths[number], file.bytes.n),
			 0);
	model_done(&file.bytes);
}

static struct sp_profile *load(size_t n)
{
	const char *names[] = {paths[0], paths[1]};
	struct sp_profile *p = NULL;
	struct sp_error err;

	if (sp_profile_load_many(names, n, NULL, NULL, &p, &err) != 0)
		fail_msg("%s", err.message);
	return keep_profile(p);
}

/* A name of a file that was lost leaves the function. */
static void same(const struct sp_symbols *got, const struct sp_symbols *want,
		 bool is_whole)
{
	assert_int_equal(got->count, want->count);
	for (size_t i = 0; i < want->count; i++) {
		const struct sp_symbol *g = &got->symbol[i];
		const struct sp_symbol *w = &want->symbol[i];

		if (w->function == long_name)
			assert_int_equal(strlen(g->function),
					 SP_FORMAT_NAME_MAX);
		else
			assert_string_equal(g->function, w->function);
		if (is_whole || !w->file)
			assert_int_equal(!g->file, !w->file);
		if (g->file)
			assert_string_equal(g->file, w->file);
		assert_int_equal(g->line, w->line);
		assert_int_equal(g->is_inlined, w->is_inlined);
		assert_int_equal(g->is_fallback, w->is_fallback);
		assert_int_equal(g->is_clone, w->is_clone);
		assert_int_equal(g->lacks_inlined, w->lacks_inlined);
		assert_int_equal(g->calls_wrapper, w->calls_wrapper);
	}
}

static void all_there(const struct sp_profile *p)
{
	for (unsigned int i = 0; i < FRAMES; i++) {
		const struct sp_frame frame = {1 + i % 2, i / 2 * 3};
		const struct sp_symbols want = answer(frame);
		const struct sp_embedded_frame *got =
			sp_embedded_find(p, frame);

		assert_non_null(got);
		same(&got->symbols, &want, true);
	}
	assert_null(sp_embedded_find(p, (struct sp_frame){1, 1}));
	assert_null(sp_embedded_find(p, (struct sp_frame){3, 0}));
}

TEST(round_trip)
{
	struct sp_profile *p;

	make(0);
	/* More than one chunk, or borders would not be seen. */
	assert_true(n_chunks > 1);
	write_file(0);
	p = load(1);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_embedded, FRAMES);
	all_there(p);
}

/* Both files have the modules; each frame comes once. */
TEST(merged)
{
	struct sp_profile *p;

	make(0);
	write_file(0);
	make(1);
	write_file(1);
	p = load(2);
	assert_int_equal(p->n_modules, 2);
	assert_int_equal(p->n_embedded, FRAMES);
	all_there(p);
}

/* Damage in one chunk costs what is behind it in that chunk, and what needed
 * a name from there. */
TEST(damage)
{
	size_t most = 0;

	for (unsigned int i = 0; i < 40; i++) {
		struct sp_profile *p;

		make(0);
		file.bytes.data[2 * SP_FORMAT_CHUNK_BYTES + 30 + i * 977] ^= 4;
		write_file(0);
		p = load(1);
		assert_true(p->damage[0]);
		assert_true(p->n_embedded < FRAMES);
		if (p->n_embedded > most)
			most = p->n_embedded;
		for (size_t k = 0; k < p->n_embedded; k++) {
			const struct sp_symbols want =
				answer(p->embedded[k].frame);

			same(&p->embedded[k].symbols, &want, false);
		}
	}
	assert_true(most > 0);
}

/* Records that no writer would write, each with a right check. */
TEST(hostile)
{
	const uint64_t payloads[][8] = {
		/* module, offset, lines, then flags, function, file, line */
		{1, 5, 0},                    /* no line */
		{1, 5, 65},                   /* too many */
		{1ull << 32, 5, 1, 0, 1},     /* no such module */
		{1, 5, 1, 0, 1ull << 32},     /* no such id */
		{1, 5, 1, 0, 1, 0},           /* too short */
		{1, 5, 1, 0, 9, 0, 3},        /* a name that is not there */
		{1, 5, 1, 3, 1, 9, 1u << 31}, /* a file that is not there */
	};
	const size_t n_fields[] = {3, 3, 5, 5, 6, 7, 7};
	const bool is_damage[] = {true, true, true, true, true, false, false};

	for (size_t i = 0; i < sizeof(n_fields) / sizeof(n_fields[0]); i++) {
		FREED_BY(model_done)
		struct model_bytes records = {0}, name = {0}, symbol = {0};
		struct model_chunk chunk;
		struct sp_profile *p;

		model_file_init(&file, 2, 1);
		model_chunk_begin(&chunk, file.file_id, 1);
		model_varint(&name, 1);
		model_raw(&name, "f", 1);
		model_record(&records, &chunk, SP_RECORD_NAME, &name);
		for (size_t k = 0; k < n_fields[i]; k++)
			model_varint(&symbol, payloads[i][k]);
		model_record(&records, &chunk, SP_RECORD_SYMBOL, &symbol);
		model_file_put(&file, 1, &records);
		write_file(0);
		p = load(1);
		assert_int_equal(p->damage[0] != '\0', is_damage[i]);
		/* Without its file a function is still known. */
		assert_int_equal(p->n_embedded, i == 6);
		if (i == 6)
			assert_null(p->embedded[0].symbols.symbol->file);
	}
}

static int make_paths(void **state)
{
	(void)state;
	memset(long_name, 'x', LONG);
	return temp_path_make(paths[0], sizeof(paths[0])) < 0 ||
			       temp_path_make(paths[1], sizeof(paths[1])) < 0
		       ? -1
		       : 0;
}

static int remove_paths(void **state)
{
	(void)state;
	unlink(paths[0]);
	unlink(paths[1]);
	sp_blocks_free(&pool);
	return 0;
}

TEST_MAIN(make_paths, remove_paths)
