/* SPDX-License-Identifier: MIT */
/* From records to one profile, and its sums compared with naive ones. */
#include <errno.h>
#include <unistd.h>

#include "base/rng.h"
#include "model/profile.h"
#include "read/load.h"
#include "support/format_model.h"
#include "support/load_profile.h"
#include "support/sums_of.h"
#include "support/scratch.h"
#include "support/test.h"

#define CHUNK  65536u
#define PERIOD 4096u

static struct sp_error err;

/* A file under construction: records go into chunks in order of `chunk`. */
static struct model_file file;
static struct model_bytes records[8];
static struct model_chunk chunks[8];
static size_t n_chunks;

static void begin_file(size_t n)
{
	n_chunks = n;
	model_file_init(&file, n, PERIOD);
	for (size_t i = 1; i < n; i++) {
		records[i].n = 0;
		model_chunk_begin(&chunks[i], file.file_id, i);
	}
}

static void put(size_t chunk, const struct sp_record *r)
{
	model_encode(&records[chunk], &chunks[chunk], r);
}

static struct sp_profile *load(void)
{
	for (size_t i = 1; i < n_chunks; i++) {
		assert_true(records[i].n < CHUNK - 24);
		model_file_put(&file, i, &records[i]);
		model_done(&records[i]);
	}
	model_file_seal(&file);
	assert_int_equal(model_file_write(&file, scratch, file.bytes.n), 0);
	model_done(&file.bytes);
	return load_profile(scratch);
}

static void put_info(size_t chunk, const char *key, const char *value,
		     size_t value_bytes)
{
	struct sp_record r = {.type = SP_RECORD_INFO};

	r.u.info =
		(struct sp_record_info){key, strlen(key), value, value_bytes};
	put(chunk, &r);
}

static void put_stack(size_t chunk, uint64_t id, uint64_t flags,
		      const struct sp_record_frame *frames, size_t n)
{
	struct sp_record r = {.type = SP_RECORD_STACK};

	r.u.stack = (struct sp_record_stack){id, flags, frames, n};
	put(chunk, &r);
}

static void put_thread(size_t chunk, uint64_t index, const char *name,
		       size_t name_bytes)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};

	r.u.thread = (struct sp_record_thread){index, 1000 + index, 5, name,
					       name_bytes};
	put(chunk, &r);
}

static void put_sample(size_t chunk, const struct sp_record_sample *sample)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = *sample;
	put(chunk, &r);
}

static void put_module(size_t chunk, uint64_t id, const char *name,
		       uint64_t flags)
{
	struct sp_record r = {.type = SP_RECORD_MODULE};

	r.u.module = (struct sp_record_module){
		.id = id,
		.start_pc = id << 20,
		.end_pc = (id << 20) + 4096,
		.bias = id,
		.flags = flags,
		.path = name,
		.path_bytes = strlen(name),
	};
	put(chunk, &r);
}

static const struct sp_stack *find_stack(const struct sp_profile *p,
					 uint32_t id)
{
	for (size_t i = 0; i < p->n_stacks; i++)
		if (p->stacks[i].id == id)
			return &p->stacks[i];
	return NULL;
}

static const struct sp_thread_info *find_thread(const struct sp_profile *p,
						uint32_t index)
{
	for (size_t i = 0; i < p->n_thread_infos; i++)
		if (p->thread_infos[i].index == index)
			return &p->thread_infos[i];
	return NULL;
}

TEST(empty)
{
	struct sp_profile *p;

	begin_file(1);
	p = load();
	assert_int_equal(p->format_version, 1);
	assert_int_equal(p->period_bytes, PERIOD);
	assert_int_equal(p->n_samples, 0);
	assert_int_equal(p->n_stacks + p->n_modules + p->n_infos, 0);
	assert_string_equal(p->program, "(unknown)");
	assert_string_equal(p->command, "(unknown)");
	assert_string_equal(p->host, "");
	assert_string_equal(p->damage, "");
	assert_int_equal(p->end, SP_PROFILE_END_CLEAN);
	assert_int_equal(p->max_file_bytes, CHUNK);
	assert_int_equal(p->check_in_bytes, 1 << 20);
	assert_null(sp_profile_module(p, 0));
	assert_null(sp_profile_module(p, 1));
	assert_null(sp_profile_info(p, "exe"));
	sp_profile_free(NULL);
}

TEST(failure)
{
	struct sp_profile *p = (struct sp_profile *)&err;

	begin_file(1);
	load();
	assert_int_equal(truncate(scratch, 100), 0);
	assert_int_equal(sp_profile_load(scratch, NULL, NULL, &p, &err),
			 -EINVAL);
	assert_ptr_equal(p, &err);
	assert_string_equal(err.field, "status");
	assert_int_equal(sp_profile_load(scratch, NULL, NULL, &p, NULL),
			 -EINVAL);
	assert_int_equal(
		sp_profile_load("/nowhere/at/all", NULL, NULL, &p, &err),
		-ENOENT);
}

/* Records may come before what they refer to, in any chunk; the first of two
 * records for the same id is meant. */
TEST(references)
{
	static const struct sp_record_frame frames[] = {{1, 5}, {9, 6}, {0, 7}};
	static const struct sp_record_sample sample = {
		1, 9000, 64, 100, 3, PERIOD, 77, 5, SP_ENTRY_CALLOC, false};
	const struct sp_stack *s;
	const struct sp_thread_info *t;
	struct sp_profile *p;

	begin_file(4);
	put_sample(1, &sample);
	put_stack(2, 77, SP_STACK_TRUNCATED, frames, 3);
	put_stack(3, 77, 0, frames, 1);
	put_thread(3, 5, "worker", 6);
	put_module(3, 1, "/usr/bin/a", SP_MODULE_MAIN);
	put_module(3, 1, "/usr/bin/b", 0);
	put_stack(3, UINT32_MAX, 0, NULL, 0);
	p = load();
	s = find_stack(p, 77);
	assert_non_null(s);
	assert_int_equal(s->n_frames, 3);
	assert_int_equal(s->flags, SP_STACK_TRUNCATED);
	/* A module that nobody described is kept for the report to say so. */
	assert_int_equal(s->frames[1].module, 9);
	assert_null(sp_profile_module(p, 9));
	assert_int_equal(p->n_stacks, 2);
	assert_int_equal(p->n_samples, 1);
	assert_ptr_equal(&p->stacks[p->samples[0].stack], s);
	assert_int_equal(p->samples[0].entry, SP_ENTRY_CALLOC);
	t = find_thread(p, 5);
	assert_non_null(t);
	assert_string_equal(t->name, "worker");
	assert_int_equal(t->tid, 1005);
	assert_ptr_equal(&p->thread_infos[p->samples[0].thread], t);
	assert_false(t->has_totals);
	assert_int_equal(p->n_modules, 1);
	assert_string_equal(p->modules[0].path, "/usr/bin/a");
	assert_true(p->modules[0].is_main);
	assert_int_equal(p->duration_ns, 9000);
	assert_int_equal(p->threads, 1);
}

/* A sample without a stack or a thread is kept. */
TEST(unknown_references)
{
	struct sp_record_sample sample = {1,      1, 64, 100, 3,
					  PERIOD, 0, 0,  0,   false};
	struct sp_profile *p;

	begin_file(2);
	put_sample(1, &sample);
	sample.id = 2;
	sample.stack = 123;
	sample.thread = 0;
	put_sample(1, &sample);
	p = load();
	assert_int_equal(p->n_samples, 2);
	assert_ptr_equal(&p->stacks[p->samples[0].stack], find_stack(p, 0));
	assert_int_equal(find_stack(p, 0)->n_frames, 0);
	assert_ptr_equal(&p->stacks[p->samples[1].stack], find_stack(p, 123));
	assert_int_equal(p->samples[1].thread, UINT32_MAX);
	assert_int_equal(p->n_thread_infos, 0);
}

TEST(modules)
{
	struct sp_profile *p;
	char name[32];

	begin_file(2);
	/* Out of order, with gaps. */
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t id = 1 + i * 37 % 101;

		snprintf(name, sizeof(name), "/lib/%d.so", (int)id);
		put_module(1, id, name, 0);
	}
	put_module(1, UINT32_MAX, "last", 0);
	p = load();
	assert_int_equal(p->n_modules, 101);
	for (uint32_t id = 0; id <= 110; id++) {
		const struct sp_module *m = sp_profile_module(p, id);
		bool there = false;

		for (uint64_t i = 0; i < 100; i++)
			there |= id == 1 + i * 37 % 101;
		assert_int_equal(m != NULL, there);
		if (!m)
			continue;
		snprintf(name, sizeof(name), "/lib/%d.so", (int)id);
		assert_string_equal(m->path, name);
		assert_true(m->start_pc == (uint64_t)id << 20);
		assert_true(m->end_pc == m->start_pc + 4096);
		assert_true(m->bias == id);
	}
	assert_string_equal(sp_profile_module(p, UINT32_MAX)->path, "last");
}

TEST(infos)
{
	struct sp_profile *p;

	begin_file(2);
	put_info(1, "exe", "/usr/bin/one", 12);
	put_info(1, "exe", "/usr/bin/two", 12);
	put_info(1, "host", "node\0hidden", 11);
	put_info(1, "setting.period", "4096", 4);
	put_info(1, "", "", 0);
	put_info(1, "command", "first", 5);
	put_info(1, "command", "second", 6);
	p = load();
	/* If a key comes more than once, the first is meant. */
	assert_string_equal(p->program, "/usr/bin/one");
	assert_string_equal(p->host, "node");
	assert_string_equal(sp_profile_info(p, "setting.period"), "4096");
	assert_string_equal(sp_profile_info(p, ""), "");
	assert_null(sp_profile_info(p, "sett"));
	assert_string_equal(p->command, "first");
}

TEST(threads)
{
	struct sp_record end = {.type = SP_RECORD_THREAD_END};
	const struct sp_thread_info *t;
	struct sp_profile *p;

	begin_file(2);
	model_file_status(&file, 1)->threads = 9;
	*model_file_slot(&file, 0, 1) =
		(struct sp_slot_copy){1, 5, 1, 0, 0, 0, 0, 0};
	*model_file_slot(&file, 1, 1) =
		(struct sp_slot_copy){1, 1000, 100, 400, 40, 3, 33, 0};
	*model_file_slot(&file, 2, 0) =
		(struct sp_slot_copy){2, 2000, 200, 2000, 200, 4, 44, 0};
	/* No thread has such an index. */
	*model_file_slot(&file, 3, 1) =
		(struct sp_slot_copy){1, 7, 7, 0, 0, UINT32_MAX + 1ull, 55, 0};
	put_thread(1, 1, "exactly fifteen and more", 24);
	put_thread(1, 2, "cut\0here", 8);
	end.u.thread_end =
		(struct sp_record_thread_end){1, 77000, 300, 30, "new", 3};
	put(1, &end);
	/* Ended, while its slot was not given back yet. */
	end.u.thread_end =
		(struct sp_record_thread_end){4, 70000, 1999, 199, "", 0};
	put(1, &end);
	p = load();
	assert_true(p->exact_alloc_bytes == 5 + 1000 + 2000 + 7);
	assert_true(p->exact_alloc_objects == 1 + 100 + 200 + 7);
	assert_int_equal(p->threads, 9);
	assert_int_equal(p->duration_ns, 77000);
	assert_int_equal(p->n_thread_infos, 4);
	t = find_thread(p, 1);
	assert_string_equal(t->name, "new");
	assert_true(t->exited && t->has_totals);
	assert_int_equal(t->exact_alloc_bytes, 300);
	assert_int_equal(t->exact_alloc_objects, 30);
	t = find_thread(p, 2);
	assert_string_equal(t->name, "cut");
	assert_false(t->exited || t->has_totals);
	t = find_thread(p, 3);
	assert_true(t->has_totals && !t->exited);
	assert_int_equal(t->exact_alloc_bytes, 600);
	assert_int_equal(t->exact_alloc_objects, 60);
	assert_int_equal(t->tid, 33);
	t = find_thread(p, 4);
	assert_int_equal(t->exact_alloc_bytes, 1999);
	assert_true(t->exited);
}

TEST(thread_name_length)
{
	struct sp_profile *p;

	begin_file(2);
	put_thread(1, 1, "exactly fifteen and more", 24);
	put_thread(1, 2, "sixteen letters!", 16);
	p = load();
	assert_string_equal(p->thread_infos[0].name, "exactly fifteen");
	assert_string_equal(p->thread_infos[1].name, "sixteen letters");
}

TEST(end_and_losses)
{
	struct sp_status *s;
	struct sp_profile *p;

	begin_file(1);
	s = model_file_status(&file, 1);
	s->end_kind = SP_END_NONE;
	s->time_ns = 123456;
	for (unsigned int i = 0; i < SP_FORMAT_LOSSES; i++)
		s->losses[i] = 100 + i;
	p = load();
	assert_int_equal(p->end, SP_PROFILE_END_KILLED);
	assert_int_equal(p->duration_ns, 123456);
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		assert_int_equal(p->losses[i], 100 + i);
}

TEST(damage)
{
	struct sp_record_sample sample = {1,      1, 64, 100, 3,
					  PERIOD, 1, 1,  0,   false};
	struct sp_profile *p;

	begin_file(3);
	put_sample(1, &sample);
	sample.id = 2;
	put_sample(1, &sample);
	records[1].data[records[1].n - 1] ^= 4;
	sample.id = 3;
	put_sample(2, &sample);
	p = load();
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->damaged_records, 1);
	assert_true(p->ignored_bytes > 0);
	assert_non_null(strstr(p->damage, "record check"));
}

struct progress {
	uint64_t last, total;
	unsigned int calls;
};

static void note_progress(void *arg, uint64_t done, uint64_t total)
{
	struct progress *p = arg;

	assert_true(done > p->last && done <= total);
	assert_true(!p->total || p->total == total);
	p->last = done;
	p->total = total;
	p->calls++;
}

TEST(progress)
{
	struct sp_record_sample sample = {1,      1, 64, 100, 3,
					  PERIOD, 1, 1,  0,   false};
	struct progress progress = {0, 0, 0};
	struct sp_profile *p;

	begin_file(8);
	for (size_t i = 1; i < 8; i++)
		put_sample(i, &sample);
	load();
	assert_int_equal(
		sp_profile_load(scratch, note_progress, &progress, &p, &err),
		0);
	assert_int_equal(progress.calls, 7);
	assert_int_equal(progress.total, 8 * CHUNK);
	sp_profile_free(p);
}

#define STACKS  300
#define THREADS 40
#define SAMPLES 12000

static void assert_same_acc(const struct sp_class_sums *got,
			    const struct sp_acc *want)
{
	assert_memory_equal(&got->all, want, sizeof(*want));
}

/* Thousands of samples in random order, summed up in plain arrays. */
TEST(model)
{
	static struct sp_acc stacks[STACKS], threads[THREADS];
	const struct sp_law_used law = {false, false};
	struct sp_acc all;
	struct sp_profile *p;
	struct sp_sums *sums;
	struct sp_rng rng;

	begin_file(8);
	sp_rng_init(&rng, 16, 1);
	sp_acc_init(&all, PERIOD);
	for (size_t i = 0; i < STACKS; i++)
		sp_acc_init(&stacks[i], PERIOD);
	for (size_t i = 0; i < THREADS; i++)
		sp_acc_init(&threads[i], PERIOD);
	/* The chunks one after another, as the reader meets them. */
	for (uint64_t id = 1; id <= SAMPLES; id++) {
		uint64_t v = sp_rng_next(&rng);
		struct sp_record_sample s = {.id = id, .time_ns = id};

		s.stack = v % STACKS;
		s.thread = (v >> 16) % THREADS;
		s.size_bytes = 1 + (v >> 32) % 20000;
		s.offset_bytes = (v >> 40) % s.size_bytes;
		s.period_bytes = v >> 63 ? PERIOD : 2 * PERIOD;
		put_sample(1 + (id - 1) * 7 / SAMPLES, &s);
		sp_acc_add(&all, &law, s.size_bytes, s.offset_bytes,
			   s.period_bytes);
		sp_acc_add(&stacks[s.stack], &law, s.size_bytes, s.offset_bytes,
			   s.period_bytes);
		if (s.thread)
			sp_acc_add(&threads[s.thread], &law, s.size_bytes,
				   s.offset_bytes, s.period_bytes);
	}
	p = load();
	sums = sums_of(p);
	assert_same_acc(&sums->all, &all);
	assert_int_equal(p->n_stacks, STACKS);
	assert_int_equal(p->n_thread_infos, THREADS - 1);
	for (uint32_t i = 0; i < STACKS; i++)
		assert_same_acc(&sums->stacks[find_stack(p, i) - p->stacks],
				&stacks[i]);
	for (uint32_t i = 1; i < THREADS; i++)
		assert_same_acc(
			&sums->threads[find_thread(p, i) - p->thread_infos],
			&threads[i]);
	sp_sums_free(sums, p);
}

/* Segments repeat stacks under other ids, before and behind what names them:
 * samples name the one with the smallest id.  Flags tell stacks apart, and of
 * those without frames nothing is known. */
TEST(alike_stacks)
{
	const struct sp_record_frame frames[] = {{1, 16}, {1, 32}};
	const uint32_t names[] = {900, 5, 70000, 6, 33, 44};
	const uint32_t joined[] = {5, 5, 5, 6, 33, 44};
	struct sp_record_sample sample = {.size_bytes = 8,
					  .period_bytes = PERIOD};
	struct sp_profile *p;

	begin_file(3);
	for (unsigned int i = 0; i < 6; i++) {
		sample.id = i + 1;
		sample.stack = names[i];
		put_sample(1, &sample);
	}
	put_stack(1, 900, 0, frames, 2);
	put_stack(1, 6, 1, frames, 2);
	put_stack(2, 70000, 0, frames, 2);
	put_stack(2, 5, 0, frames, 2);
	p = load();
	assert_int_equal(p->n_samples, 6);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(p->stacks[p->samples[i].stack].id, joined[i]);
}

/* The limit of memory that was in force last, whatever the order of the facts;
 * what is no number is none. */
TEST(memory_limit)
{
	static struct sp_info infos[] = {
		{"limit.memory.2000", "300"}, {"limit.memory", "100"},
		{"limit.memory.1000", "200"}, {"limit.memory.file", "9"},
		{"limit.memory.x", "9"},      {"limit.memory2", "9"},
		{"limit.memory.3000", "-9"},  {"limit.memory.4000", "0"},
	};
	struct sp_rss rss[] = {{1, 269}, {2, 270}};
	struct sp_profile p = {.end = SP_PROFILE_END_KILLED,
			       .n_parts = 1,
			       .infos = infos,
			       .rss = rss,
			       .n_rss = 2};

	assert_true(sp_profile_memory_limit(&p) == SP_NEVER);
	assert_false(sp_profile_is_killed_for_memory(&p));
	p.n_infos = 7;
	assert_true(sp_profile_memory_limit(&p) == 300);
	assert_true(sp_profile_is_killed_for_memory(&p));
	p.n_rss = 1;
	assert_false(sp_profile_is_killed_for_memory(&p));
	p.end_kind = SP_END_NO_MEMORY;
	assert_true(sp_profile_is_killed_for_memory(&p));
	p.end_kind = SP_END_SIGNAL + 9;
	p.n_rss = 2;
	assert_false(sp_profile_is_killed_for_memory(&p));
	p.end = SP_PROFILE_END_CLEAN;
	p.end_kind = SP_END_NONE;
	assert_false(sp_profile_is_killed_for_memory(&p));
	p.n_infos = 8;
	assert_true(sp_profile_memory_limit(&p) == SP_NEVER);
}

TEST_MAIN(scratch_make, scratch_remove)
