/* SPDX-License-Identifier: MIT */
/*
 * Packed copies of clean, killed and discarding processes compared with their
 * files, all samples or groups; packed again the same bytes; cut after and
 * within every chunk, damaged, without the header's bit.
 */
#include "read/packfile.h"
#include "read/load.h"
#include "stats/peak.h"
#include "recorded_shapes.h"
#include "support/close.h"
#include "support/format_model.h"
#include "support/load_profile.h"
#include "support/test.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES
#define TICK  SP_PACKFILE_TICK_NS

static struct memfile recorded, packed, again;

/* ---- packed ---- */

static struct sp_profile *load(const struct memfile *from, bool folded)
{
	const struct sp_plan plan = {.confidence = 0.9};
	struct sp_profile *p = NULL;
	struct sp_error err;
	int r = folded ? read_profile(from->path, &plan, &p, &err)
		       : sp_profile_load(from->path, NULL, NULL, &p, &err);

	if (r != 0)
		fail_msg("%s", err.message);
	return p;
}

struct sink {
	const struct memfile *to;
	uint64_t n_chunks;
};

static int put_chunk(void *arg, const uint8_t *chunk)
{
	struct sink *sink = arg;

	memfile_write(sink->to, sink->n_chunks++ * CHUNK, chunk, CHUNK);
	return 0;
}

/* The number of chunks; and of those before the first event. */
static uint64_t pack(const struct memfile *from, const struct memfile *to,
		     bool folded, uint64_t *ret_facts)
{
	struct sp_profile *p = load(from, folded);
	struct sp_packfile_facts facts = {0};
	struct sink sink = {to, 0};
	struct sp_error err;

	memfile_resize(to, 0);
	assert_string_equal(p->damage, "");
	assert_int_equal(
		sp_packfile_write_facts(p, put_chunk, &sink, &facts, &err), 0);
	free(facts.places);
	*ret_facts = sink.n_chunks;
	assert_int_equal(sp_packfile_write_events(p, sink.n_chunks,
						  facts.unfinished, put_chunk,
						  &sink, &err),
			 0);
	sp_profile_free(p);
	return sink.n_chunks;
}

/* ---- the same ---- */

/* Recorded and packed: positions may differ. */
static const struct sp_profile *a, *b;
static uint64_t tick_ns;

static uint32_t index_of(const struct sp_profile *p, uint32_t thread)
{
	return thread == UINT32_MAX ? 0 : p->thread_infos[thread].index;
}

static void same_time(uint64_t x, uint64_t y)
{
	if (x == SP_NEVER || y == SP_NEVER || !tick_ns) {
		assert_int_equal(x, y);
		return;
	}
	assert_true((x < y ? y - x : x - y) < tick_ns);
	for (size_t i = 0; i < a->n_stretches; i++)
		assert_int_equal(x < a->stretches[i].from_ns,
				 y < a->stretches[i].from_ns);
	for (size_t i = 0; i < a->n_snapshots; i++)
		assert_int_equal(x < a->snapshots[i].time_ns,
				 y < a->snapshots[i].time_ns);
	assert_int_equal(x < a->window_ns, y < a->window_ns);
}

static void same_sample(const struct sp_sample *x, const struct sp_sample *y)
{
	assert_int_equal(x->id, y->id);
	same_time(x->born_ns, y->born_ns);
	same_time(x->freed_ns, y->freed_ns);
	assert_int_equal(x->size_bytes, y->size_bytes);
	assert_int_equal(x->offset_bytes, y->offset_bytes);
	assert_int_equal(x->period_bytes, y->period_bytes);
	assert_int_equal(x->age_bytes, y->age_bytes);
	assert_int_equal(a->stacks[x->stack].id, b->stacks[y->stack].id);
	assert_int_equal(index_of(a, x->thread), index_of(b, y->thread));
	assert_int_equal(index_of(a, x->freed_by), index_of(b, y->freed_by));
	assert_int_equal(x->entry, y->entry);
	assert_int_equal(x->free_missed, y->free_missed);
}

static void same_stacks(void)
{
	assert_int_equal(a->n_stacks, b->n_stacks);
	for (size_t i = 0; i < a->n_stacks; i++) {
		const struct sp_stack *x = &a->stacks[i], *y = b->stacks;

		while (y < b->stacks + b->n_stacks && y->id != x->id)
			y++;
		assert_true(y < b->stacks + b->n_stacks);
		assert_int_equal(x->flags, y->flags);
		assert_int_equal(!x->frames, !y->frames);
		assert_int_equal(x->n_frames, y->n_frames);
		for (uint32_t k = 0; k < x->n_frames; k++) {
			assert_int_equal(x->frames[k].module,
					 y->frames[k].module);
			assert_int_equal(x->frames[k].offset,
					 y->frames[k].offset);
		}
	}
}

static void same_threads(void)
{
	assert_int_equal(a->threads, b->threads);
	assert_int_equal(a->n_thread_infos, b->n_thread_infos);
	for (size_t i = 0; i < a->n_thread_infos; i++) {
		const struct sp_thread_info *x = &a->thread_infos[i];
		const struct sp_thread_info *y = b->thread_infos;

		while (y < b->thread_infos + b->n_thread_infos &&
		       y->index != x->index)
			y++;
		assert_true(y < b->thread_infos + b->n_thread_infos);
		assert_int_equal(x->tid, y->tid);
		assert_string_equal(x->name, y->name);
		assert_int_equal(x->name_time_ns, y->name_time_ns);
		assert_int_equal(x->has_totals, y->has_totals);
		assert_int_equal(x->exited, y->exited);
		assert_int_equal(x->exact_alloc_bytes, y->exact_alloc_bytes);
		assert_int_equal(x->exact_alloc_objects,
				 y->exact_alloc_objects);
	}
}

static void same_stretches(void)
{
	assert_int_equal(a->n_stretches, b->n_stretches);
	for (size_t i = 0; i < a->n_stretches; i++) {
		const struct sp_stretch *x = &a->stretches[i];
		const struct sp_stretch *y = &b->stretches[i];

		assert_string_equal(x->phase, y->phase);
		assert_int_equal(x->from_ns, y->from_ns);
		assert_int_equal(x->to_ns, y->to_ns);
		assert_int_equal(x->period_bytes, y->period_bytes);
		assert_int_equal(x->alloc_bytes, y->alloc_bytes);
		assert_int_equal(x->alloc_objects, y->alloc_objects);
		assert_int_equal(x->unsampled_bytes, y->unsampled_bytes);
		assert_int_equal(x->unsampled_objects, y->unsampled_objects);
		assert_int_equal(x->slack_bytes, y->slack_bytes);
		assert_int_equal(x->part, y->part);
	}
	assert_int_equal(a->n_snapshots, b->n_snapshots);
	for (size_t i = 0; i < a->n_snapshots; i++) {
		const struct sp_snapshot *x = &a->snapshots[i];
		const struct sp_snapshot *y = &b->snapshots[i];

		assert_string_equal(x->name, y->name);
		assert_int_equal(x->time_ns, y->time_ns);
		assert_int_equal(x->alloc_bytes, y->alloc_bytes);
		assert_int_equal(x->alloc_objects, y->alloc_objects);
		assert_int_equal(x->part, y->part);
	}
	assert_int_equal(a->unsampled_bytes, b->unsampled_bytes);
	assert_int_equal(a->unsampled_objects, b->unsampled_objects);
	assert_int_equal(a->window_ns, b->window_ns);
	assert_int_equal(a->discarded_bytes, b->discarded_bytes);
	assert_int_equal(a->discarded_objects, b->discarded_objects);
}

static void same_infos(void)
{
	const char *error = sp_profile_info(b, "time_error_ns");
	const size_t more = error ? 1 : 0;

	assert_null(sp_profile_info(a, "time_error_ns"));
	assert_int_equal(!error, !tick_ns);
	if (error)
		assert_string_equal(error, "1000000");
	assert_int_equal(sp_packfile_time_error_ns(b), tick_ns);
	assert_int_equal(a->n_infos + more, b->n_infos);
	for (size_t i = 0, k = 0; i < b->n_infos; i++) {
		if (strcmp(b->infos[i].key, "time_error_ns") == 0)
			continue;
		assert_string_equal(a->infos[k].key, b->infos[i].key);
		assert_string_equal(a->infos[k++].value, b->infos[i].value);
	}
	assert_string_equal(a->program, b->program);
	assert_string_equal(a->command, b->command);
	assert_string_equal(a->host, b->host);
	assert_int_equal(a->n_modules, b->n_modules);
	for (size_t i = 0; i < a->n_modules; i++) {
		const struct sp_module *x = &a->modules[i], *y = &b->modules[i];

		assert_string_equal(x->path, y->path);
		assert_int_equal(x->id, y->id);
		assert_int_equal(x->start_pc, y->start_pc);
		assert_int_equal(x->end_pc, y->end_pc);
		assert_int_equal(x->bias, y->bias);
		assert_int_equal(x->is_main, y->is_main);
		assert_int_equal(x->build_id_len, y->build_id_len);
		assert_memory_equal(x->build_id, y->build_id, x->build_id_len);
	}
	assert_int_equal(a->n_rss, b->n_rss);
	assert_memory_equal(a->rss, b->rss, a->n_rss * sizeof(a->rss[0]));
}

static void same_totals(void)
{
	assert_int_equal(a->file_id, b->file_id);
	assert_int_equal(a->duration_ns, b->duration_ns);
	assert_int_equal(a->period_bytes, b->period_bytes);
	assert_int_equal(a->seed, b->seed);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->max_file_bytes, b->max_file_bytes);
	assert_int_equal(a->check_in_bytes, b->check_in_bytes);
	assert_int_equal(a->exact_alloc_bytes, b->exact_alloc_bytes);
	assert_int_equal(a->exact_alloc_objects, b->exact_alloc_objects);
	assert_true(a->has_classes && b->has_classes);
	assert_memory_equal(a->classes, b->classes, sizeof(a->classes));
	assert_int_equal(a->class_slack_bytes, b->class_slack_bytes);
	assert_memory_equal(&a->law, &b->law, sizeof(a->law));
	assert_int_equal(a->has_frees, b->has_frees);
	assert_int_equal(a->unmatched_frees, b->unmatched_frees);
	assert_memory_equal(a->losses, b->losses, sizeof(a->losses));
	assert_string_equal(b->damage, "");
	assert_int_equal(b->damaged_records, 0);
	assert_false(b->is_cut);
	assert_int_equal(a->unfinished_records, b->unfinished_records);
}

/* ---- folded ---- */

static int compare_groups(const struct sp_profile *p,
			  const struct sp_sample_group *x,
			  const struct sp_profile *q,
			  const struct sp_sample_group *y)
{
	const uint64_t k[][2] = {
		{p->stacks[x->one.stack].id, q->stacks[y->one.stack].id},
		{index_of(p, x->one.thread), index_of(q, y->one.thread)},
		{x->one.size_bytes, y->one.size_bytes},
		{x->one.period_bytes, y->one.period_bytes},
		{x->one.entry, y->one.entry}};

	for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++)
		if (k[i][0] != k[i][1])
			return k[i][0] < k[i][1] ? -1 : 1;
	return 0;
}

static int compare_of_a(const void *x, const void *y)
{
	return compare_groups(a, x, a, y);
}

static int compare_of_b(const void *x, const void *y)
{
	return compare_groups(b, x, b, y);
}

static void same_groups(void)
{
	assert_int_equal(a->n_grouped, b->n_grouped);
	assert_int_equal(a->n_groups, b->n_groups);
	if (!a->peak)
		return;
	qsort(a->groups, a->n_groups, sizeof(a->groups[0]), compare_of_a);
	qsort(b->groups, b->n_groups, sizeof(b->groups[0]), compare_of_b);
	for (size_t i = 0; i < a->n_groups; i++) {
		const struct sp_sample_group *x = &a->groups[i],
					     *y = &b->groups[i];
		const uint64_t off = x->lived_ns < y->lived_ns
					     ? y->lived_ns - x->lived_ns
					     : x->lived_ns - y->lived_ns;

		assert_int_equal(compare_groups(a, x, b, y), 0);
		assert_int_equal(x->samples, y->samples);
		assert_int_equal(x->tail_bytes, y->tail_bytes);
		assert_true(off <= 2 * tick_ns * x->samples);
	}
	same_time(a->peak->time_ns, b->peak->time_ns);
	assert_int_equal(a->peak->samples, b->peak->samples);
	assert_close(a->peak->raw_bytes, b->peak->raw_bytes, 1e-12);
	assert_close(a->peak->bytes.value, b->peak->bytes.value, 1e-9);
}

static void same_samples(void)
{
	assert_int_equal(a->n_samples, b->n_samples);
	for (size_t i = 0; i < a->n_samples; i++)
		same_sample(&a->samples[i], &b->samples[i]);
	same_groups();
}

/* Whether folded or not. */
static void same(const struct memfile *from, const struct memfile *to)
{
	for (int folded = 0; folded < 2; folded++) {
		struct sp_profile *x = load(from, folded);
		struct sp_profile *y = load(to, folded);

		a = x;
		b = y;
		same_totals();
		same_infos();
		same_stacks();
		same_threads();
		same_stretches();
		assert_int_equal(sp_profile_samples(a), sp_profile_samples(b));
		same_samples();
		sp_profile_free(x);
		sp_profile_free(y);
	}
}

/* ---- the tests ---- */

/* That the shapes are what they are called. */
static void check_shape(const struct shape *s)
{
	struct sp_profile *p = load(&recorded, true);

	assert_int_equal(!p->peak, s->has_no_frees);
	assert_int_equal(p->n_stretches > 3, s->has_marks);
	assert_int_equal(p->window_ns > 0, s->has_window);
	assert_int_equal(p->unmatched_frees, s->has_unmatched ? 7 : 0);
	assert_int_equal(p->unfinished_records, s->is_killed ? 4 : 0);
	assert_int_equal(p->has_frees, !s->has_no_frees);
	assert_int_equal(sp_packfile_time_error_ns(p), s->tick_ns);
	assert_true(s->has_window || sp_profile_samples(p) == s->objects);
	sp_profile_free(p);
}

TEST(same)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		uint64_t n_facts;

		print_message("%s\n", shapes[i].name);
		record(&shapes[i], 51 + i, &recorded);
		check_shape(&shapes[i]);
		tick_ns = shapes[i].tick_ns;
		for (int folded = 0; folded < 2; folded++) {
			pack(&recorded, &packed, folded, &n_facts);
			same(&recorded, &packed);
		}
	}
}

static void same_bytes(const struct memfile *x, const struct memfile *y)
{
	uint64_t n, m;
	uint8_t *of_x = memfile_read(x, &n), *of_y = memfile_read(y, &m);

	assert_int_equal(n, m);
	assert_memory_equal(of_x, of_y, n);
	free(of_x);
	free(of_y);
}

/* A copy of the copy is the same to the last byte. */
TEST(again)
{
	for (size_t i = 0; i < N_SHAPES; i++) {
		uint64_t n;

		record(&shapes[i], 52 + i, &recorded);
		pack(&recorded, &packed, true, &n);
		pack(&packed, &again, true, &n);
		same_bytes(&packed, &again);
	}
}

static void is_cut_to(uint64_t bytes)
{
	struct sp_profile *p;

	memfile_resize(&packed, bytes);
	p = load(&packed, false);
	assert_true(p->is_cut);
	assert_true(p->damage[0]);
	assert_true(p->damaged_records);
	assert_true(p->n_samples < many_events->objects);
	sp_profile_free(p);
}

TEST(cut)
{
	const uint64_t step = test_rounds(3, 1);
	uint64_t n, n_facts;

	record(many_events, 53, &recorded);
	n = pack(&recorded, &packed, true, &n_facts);
	assert_true(n_facts > 2 && n - n_facts > 4);
	while (n > step) {
		n -= step;
		/* In the columns of a chunk, in its header, and before it. */
		is_cut_to(n * CHUNK + 200);
		is_cut_to(n * CHUNK + 30);
		is_cut_to(n * CHUNK + 3);
		is_cut_to(n * CHUNK);
	}
}

/* Zeros behind the last column are no loss. */
TEST(short)
{
	uint64_t n, n_facts;
	struct sp_events_header h;
	FREED uint8_t *bytes;

	record(many_events, 53, &recorded);
	n = pack(&recorded, &packed, true, &n_facts);
	bytes = memfile_read(&packed, &n_facts);
	memcpy(&h, bytes + (n - 1) * CHUNK + 24, sizeof(h));
	assert_int_equal(h.is_last, 1);
	n = (n - 1) * CHUNK + 24 + sizeof(h);
	for (int i = 0; i < SP_EVENTS_COLUMNS; i++)
		n += h.column_bytes[i];
	memfile_resize(&packed, n);
	tick_ns = TICK;
	same(&recorded, &packed);
	is_cut_to(n - 1);
}

/* Damage costs what is behind it, and is told; nothing else is. */
TEST(damaged)
{
	uint64_t n, n_facts;
	size_t n_samples = 0;

	record(many_events, 53, &recorded);
	n = pack(&recorded, &packed, true, &n_facts);
	for (uint64_t i = n_facts; i < n; i += test_rounds(3, 1)) {
		const uint64_t at = i * CHUNK + 150;
		struct sp_profile *p;
		uint8_t byte;
		uint64_t bytes;
		FREED uint8_t *all = memfile_read(&packed, &bytes);

		byte = all[at] ^ 1;
		memfile_write(&packed, at, &byte, 1);
		p = load(&packed, false);
		assert_non_null(strstr(p->damage, "columns check"));
		assert_true(i == n_facts ? p->n_samples == 0
					 : p->n_samples > n_samples);
		assert_true(p->n_samples < many_events->objects);
		n_samples = p->n_samples;
		sp_profile_free(p);
		memfile_write(&packed, at, all + at, 1);
	}
	tick_ns = TICK;
	same(&recorded, &packed);
}

/* What is damaged in one kind leaves the others. */
TEST(damaged_stacks)
{
	uint64_t n_facts, bytes, at = 0;
	struct sp_chunk_header h;
	struct sp_profile *p;
	FREED uint8_t *all;

	record(many_events, 53, &recorded);
	pack(&recorded, &packed, true, &n_facts);
	all = memfile_read(&packed, &bytes);
	do {
		at += CHUNK;
		assert_true(at < n_facts * CHUNK);
		memcpy(&h, all + at, sizeof(h));
	} while (h.kind != SP_CHUNK_STACKS);
	all[at + 60] ^= 1;
	memfile_write(&packed, 0, all, bytes);
	p = load(&packed, false);
	assert_non_null(strstr(p->damage, "columns check"));
	assert_false(p->is_cut);
	assert_int_equal(p->n_samples, many_events->objects);
	for (size_t i = 0; i < p->n_stacks; i++)
		assert_null(p->stacks[i].frames);
	sp_profile_free(p);
}

/* Without the bit chunks of columns are as those of a later writer. */
TEST(without_bit)
{
	struct model_file copy = {0};
	struct sp_profile *p;
	uint64_t n, n_facts, bytes;

	record(many_events, 54, &recorded);
	n = pack(&recorded, &packed, true, &n_facts);
	copy.bytes.data = memfile_read(&packed, &bytes);
	copy.bytes.n = bytes;
	copy.file_id = model_file_header(&copy)->file_id;
	assert_int_equal(model_file_header(&copy)->flags,
			 SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES |
				 SP_HEADER_PACKED);
	model_file_header(&copy)->flags &= ~SP_HEADER_PACKED;
	model_file_status(&copy, 1)->chunks = n;
	model_file_seal(&copy);
	memfile_write(&packed, 0, copy.bytes.data, CHUNK);
	p = load(&packed, false);
	assert_string_equal(p->damage, "");
	assert_false(p->is_cut);
	assert_int_equal(p->n_samples, 0);
	assert_int_equal(p->n_stacks, 0);
	assert_int_equal(p->n_modules, 2);
	sp_profile_free(p);
	model_done(&copy.bytes);
}

static int open_files(void **state)
{
	(void)state;
	memfile_open(&recorded);
	memfile_open(&packed);
	memfile_open(&again);
	return 0;
}

static int close_files(void **state)
{
	(void)state;
	memfile_close(&recorded);
	memfile_close(&packed);
	memfile_close(&again);
	return 0;
}

TEST_MAIN(open_files, close_files)
