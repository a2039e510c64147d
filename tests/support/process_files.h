/* SPDX-License-Identifier: MIT */
#pragma once

/* Files of several processes, made record by record, for tests that read them
 * together. */
#include <inttypes.h>
#include <unistd.h>

#include "base/rng.h"
#include "read/load.h"
#include "stats/peak.h"
#include "support/close.h"
#include "support/format_model.h"
#include "support/temp_path.h"
#include "support/test.h"

#define FILES   4
#define MODULES 6
#define STACKS  12
#define START   1700000000000000000ull
#define POINTS  21
#define MANY    80 /* files, too many to be open at one time */

static char paths[FILES][128];
static const char *names[FILES];
static struct model_file file;
static struct model_bytes records;
static struct model_chunk chunk;
static size_t n_chunks;
static struct sp_rng rng;
static uint64_t run_ns = 1;   /* that a process goes on */
static unsigned int reversed; /* 1 + the file with chunks in no order */

static inline uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

/* ---- making files ---- */

static inline void begin(unsigned int number, uint64_t period_bytes)
{
	struct sp_file_header *h;

	model_file_init(&file, 4, period_bytes);
	n_chunks = 1;
	file.file_id = 1000 + number;
	h = model_file_header(&file);
	h->file_id = file.file_id;
	h->pid = 50 + number;
	h->start_unix_ns = START;
	h->flags = SP_HEADER_FREES;
	records.n = 0;
	model_chunk_begin(&chunk, file.file_id, 1);
}

static inline void end_as(const char *path)
{
	const struct model_bytes none = {0};

	model_file_put(&file, n_chunks, &records);
	/* With the id that begin() gave it: else they are damaged. */
	for (size_t i = n_chunks + 1;
	     (i + 1) * SP_FORMAT_CHUNK_BYTES <= file.bytes.n; i++)
		model_file_put(&file, i, &none);
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, path, file.bytes.n), 0);
	model_done(&file.bytes);
	model_done(&records);
}

static inline void end(unsigned int number)
{
	end_as(paths[number]);
}

/* What follows is in another chunk. */
static inline void next_chunk(void)
{
	model_file_put(&file, n_chunks, &records);
	records.n = 0;
	model_chunk_begin(&chunk, file.file_id, ++n_chunks);
}

static inline void put(const struct sp_record *r)
{
	model_encode(&records, &chunk, r);
}

static inline void put_info(const char *key, const char *value)
{
	put(&(struct sp_record){
		.type = SP_RECORD_INFO,
		.u.info = {key, strlen(key), value, strlen(value)}});
}

static inline void put_module(uint64_t id, uint64_t start,
			      uint64_t link_address, const char *path)
{
	static const uint8_t build_id[] = {1, 2, 3};

	put(&(struct sp_record){.type = SP_RECORD_MODULE,
				.u.module = {.id = id,
					     .start_pc = start,
					     .end_pc = start + 0x1000,
					     .bias = start - link_address,
					     .flags = id == 1,
					     .build_id = build_id,
					     .build_id_bytes = 3,
					     .path = path,
					     .path_bytes = strlen(path)}});
}

static inline void put_stack(uint64_t id, const struct sp_record_frame *frames,
			     size_t n)
{
	put(&(struct sp_record){
		.type = SP_RECORD_STACK,
		.u.stack = {.id = id, .frames = frames, .n_frames = n}});
}

static inline void put_object(uint64_t id, uint64_t born_ns, uint64_t freed_ns,
			      uint64_t size_bytes, uint64_t period_bytes,
			      uint64_t stack, uint64_t thread)
{
	put(&(struct sp_record){.type = SP_RECORD_SAMPLE,
				.u.sample = {.id = id,
					     .time_ns = born_ns,
					     .size_bytes = size_bytes,
					     .offset_bytes = size_bytes - 1,
					     .period_bytes = period_bytes,
					     .stack = stack,
					     .thread = thread}});
	if (freed_ns == SP_NEVER)
		return;
	put(&(struct sp_record){
		.type = SP_RECORD_FREE,
		.u.free = {.id = id, .time_ns = freed_ns, .thread = thread}});
}

static inline void put_rss(uint64_t time_ns, uint64_t rss_bytes)
{
	put(&(struct sp_record){.type = SP_RECORD_RSS,
				.u.rss = {time_ns, rss_bytes}});
}

/* Modules at addresses of this process's own, stacks from a small stock; one
 * frame in ten is of no module, or of one without a record. */
static inline void put_code(void)
{
	uint64_t stock;

	for (uint64_t i = 1; i <= MODULES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/lib/m%" PRIu64 ".so", below(4));
		put_module(i, (i + below(3)) * 0x1000, below(2) * 0x1000, path);
	}
	for (uint64_t id = 1; id <= STACKS; id++) {
		struct sp_record_frame frames[3];

		stock = below(8);
		for (unsigned int k = 0; k < 3; k++)
			frames[k] = (struct sp_record_frame){
				(uint32_t)(stock * (k + 1) % (MODULES + 2)),
				0x10 * stock + k};
		put_stack(id, frames, 1 + stock % 3);
	}
}

static inline void put_random_file(unsigned int number)
{
	const uint64_t period = 64ull << number;

	begin(number, period);
	model_file_header(&file)->start_unix_ns = START + below(1000);
	if (run_ns > 1)
		model_file_status(&file, 1)->time_ns = below(run_ns);
	put_info("same", "yes");
	put_info("own", number & 1 ? "odd" : "even");
	put_code();
	for (uint64_t id = 1; id <= 40; id++) {
		uint64_t born = below(1000);

		if (id % 15 == 0)
			next_chunk();
		/* By more than a thread may be late. */
		if (number + 1 == reversed && id < 30)
			born += 1000000000;
		put_object(id, born, below(3) ? born + below(500) : SP_NEVER,
			   1 + below(5000), period, below(STACKS + 1),
			   below(4));
	}
	model_file_slot(&file, 1, 1)->seq = 1;
	model_file_slot(&file, 1, 1)->alloc_bytes = below(1 << 20);
	model_file_slot(&file, 1, 1)->alloc_objects = below(1 << 10);
	model_file_status(&file, 1)->losses[2] = below(10);
	end(number);
}

static inline struct sp_profile *load(size_t n)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	if (sp_profile_load_many(names, n, NULL, NULL, &p, &err) != 0)
		fail_msg("%s: %s", err.file, err.message);
	return p;
}

static inline void same_frame(const struct sp_profile *a, struct sp_frame x,
			      const struct sp_profile *b, struct sp_frame y)
{
	const struct sp_module *m = sp_profile_module(a, x.module);
	const struct sp_module *n = sp_profile_module(b, y.module);

	assert_int_equal(x.offset, y.offset);
	assert_int_equal(!x.module, !y.module);
	assert_int_equal(!m, !n);
	if (!m || !n)
		return;
	assert_string_equal(m->path, n->path);
	assert_int_equal(m->end_pc - m->start_pc, n->end_pc - n->start_pc);
	assert_int_equal(m->start_pc - m->bias, n->start_pc - n->bias);
	assert_int_equal(m->build_id_len, n->build_id_len);
	assert_memory_equal(m->build_id, n->build_id, n->build_id_len);
}

/* No two stacks or modules that are the same. */
static inline void each_once(const struct sp_profile *p)
{
	for (size_t i = 0; i < p->n_stacks; i++)
		for (size_t k = 0; k < i; k++)
			assert_false(
				sp_stack_is_same(&p->stacks[i], &p->stacks[k]));
	for (size_t i = 0; i < p->n_modules; i++)
		for (size_t k = 0; k < i; k++) {
			const struct sp_module *a = &p->modules[i];
			const struct sp_module *b = &p->modules[k];

			assert_false(strcmp(a->path, b->path) == 0 &&
				     a->start_pc - a->bias ==
					     b->start_pc - b->bias);
			assert_true(a->end_pc <= b->start_pc ||
				    b->end_pc <= a->start_pc);
		}
}

static inline double peak_of(const struct sp_profile *p)
{
	struct sp_selection all;
	struct sp_peak peak;

	sp_selection_init(&all);
	assert_int_equal(sp_peak(p, &all, 0.95, &peak, NULL), 0);
	return peak.bytes.value;
}

static inline int make_paths(void **state)
{
	(void)state;
	sp_rng_init(&rng, 7, 0);
	for (unsigned int i = 0; i < FILES; i++) {
		if (temp_path_make(paths[i], sizeof(paths[i])) < 0)
			return -1;
		names[i] = paths[i];
	}
	return 0;
}

static inline int remove_paths(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < FILES; i++)
		unlink(paths[i]);
	return 0;
}
