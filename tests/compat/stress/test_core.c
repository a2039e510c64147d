/* SPDX-License-Identifier: MIT */
/*
 * Eight threads live 400 lives and write 800,000 samples through lanes, stack
 * table, modules, writer and slots with their size counts, while the file is
 * read.  The file then has what each of them did; again with a file that is
 * soon full.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "agent/file/outfile.h"
#include "agent/file/slots.h"
#include "agent/file/slots_copy.h"
#include "agent/file/slots_total.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/sys/clock.h"
#include "agent/sys/tid.h"
#include "agent/thread/size_counts.h"
#include "base/rng.h"
#include "model/profile.h"
#include "read/load.h"
#include "support/agent_fixture.h"
#include "support/sample_list.h"
#include "support/test.h"

#define THREADS   8u
#define LIVES     50u
#define SAMPLES   2000u /* of one life */
#define KINDS     3000u
#define MODULES   16u
#define AFTER_END 1000u
#define PERIOD    4096u
#define TOTAL     (THREADS * LIVES * SAMPLES)

static struct sp_module_entry modules[MODULES];
static _Atomic uint64_t last_sample;
static _Atomic uint64_t lost;
static _Atomic uint32_t last_thread;
static _Atomic unsigned int working;
static _Atomic unsigned int looks; /* at the file while it is written */

/* Written by the one thread that drew the number. */
static struct did {
	uint32_t thread; /* 0: the sample was not written */
	uint32_t stack;
	bool freed;
} did[TOTAL + 1];

static struct life {
	uint64_t bytes, objects, samples;
	struct sp_class_total classes[SP_FORMAT_CLASSES];
} lives[THREADS * LIVES + 1];

/* A call stack and a sample are functions of a number. */
static unsigned int make_frames(unsigned int kind,
				struct sp_record_frame frames[8])
{
	unsigned int n = 1 + kind % 8;

	for (unsigned int i = 0; i < n; i++)
		frames[i] = (struct sp_record_frame){1 + (kind + i) % MODULES,
						     (kind / 8 + i) * 16};
	return n;
}

static unsigned int kind_of(uint64_t id)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 21, id);
	return (unsigned int)(sp_rng_next(&rng) % KINDS);
}

static struct sp_record_sample sample_of(uint64_t id)
{
	struct sp_rng rng;
	uint64_t v, size;

	sp_rng_init(&rng, 22, id);
	v = sp_rng_next(&rng);
	size = 1 + (v >> 48);
	return (struct sp_record_sample){
		.id = id,
		.time_ns = 1000 * id,
		.address = sp_rng_next(&rng) >> 16,
		.size_bytes = size,
		.offset_bytes = (v & 0xffff) % size,
		.period_bytes = v & 1 << 20 ? PERIOD : PERIOD / 4,
		.entry = (uint8_t)(v >> 8 & 7),
	};
}

static bool append(struct sp_lane *lane, const struct sp_record *r)
{
	if (sp_writer_append(lane, r))
		return true;
	atomic_fetch_add(&lost, 1);
	return false;
}

static void write_thread(uint32_t index)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);

	r.u.thread = (struct sp_record_thread){index, sp_tid_own(), 1, "", 0};
	append(lane, &r);
	sp_lane_give(lane);
}

static void write_thread_end(uint32_t index, const struct life *life)
{
	struct sp_record r = {.type = SP_RECORD_THREAD_END};
	uint8_t hint = (uint8_t)index;
	struct sp_lane *lane = sp_lane_take(&hint);
	char name[16];

	r.u.thread_end = (struct sp_record_thread_end){
		index,
		1000 * TOTAL,
		life->bytes,
		life->objects,
		name,
		(size_t)snprintf(name, sizeof(name), "life %u", index)};
	append(lane, &r);
	sp_lane_give(lane);
}

static uint64_t write_sample(struct sp_lane *lane, uint32_t thread)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};
	uint64_t id = atomic_fetch_add(&last_sample, 1) + 1;
	const struct sp_stack_walk walk = {
		.n = make_frames(kind_of(id), lane->frames)};

	for (unsigned int i = 0; i < walk.n; i++)
		sp_writer_module(lane, &modules[lane->frames[i].module - 1]);
	did[id].stack = sp_stacktab_intern(lane, &walk).id;
	r.u.sample = sample_of(id);
	r.u.sample.thread = thread;
	r.u.sample.stack = did[id].stack;
	if (append(lane, &r)) {
		did[id].thread = thread;
		lives[thread].samples++;
	}
	return id;
}

/* Every other sample is freed at once, which a record says in whatever lane is
 * free: the thread holds one, like one that a signal handler interrupted. */
static void write_free(uint32_t thread, uint64_t id, uint8_t *hint)
{
	struct sp_record r = {.type = SP_RECORD_FREE};
	struct sp_lane *lane;

	if (!did[id].thread || id % 2)
		return;
	lane = sp_lane_take(hint);
	r.u.free = (struct sp_record_free){
		.id = id,
		.time_ns = 1000 * id + 1,
		.thread = thread,
		.has_age = true,
		.age_bytes = id,
	};
	did[id].freed = append(lane, &r);
	sp_lane_give(lane);
}

/* Objects of together `bytes` bytes, all but one of them of a single byte. */
static void allocate(uint16_t slot, struct life *life, uint64_t bytes,
		     uint64_t objects)
{
	struct sp_size_counts *counts = sp_slots_size_counts(slot);

	for (uint64_t i = 0; i < objects; i++) {
		uint64_t size = i ? 1 : bytes - (objects - 1);
		struct sp_class_total *total =
			&life->classes[sp_format_class(size)];

		sp_size_counts_count(counts, size);
		total->bytes += size;
		total->objects++;
	}
	sp_slots_add(slot, bytes, objects);
	life->bytes += bytes;
	life->objects += objects;
}

/* One thread of the program, from its first allocation to its end. */
static void live(void)
{
	uint32_t index = atomic_fetch_add(&last_thread, 1) + 1;
	uint16_t slot = agent_fixture_claim(index);
	struct life *life = &lives[index];
	uint8_t hint = 0, second_hint = 0;

	write_thread(index);
	for (unsigned int i = 0; i < SAMPLES; i++) {
		struct sp_lane *lane = sp_lane_take(&hint);

		uint64_t id = write_sample(lane, index);

		write_free(index, id, &second_hint);
		sp_lane_give(lane);
		allocate(slot, life, 100 + i * 3, 1 + i % 3);
		if (i % 16 == 0)
			sp_writer_publish(index);
	}
	write_thread_end(index, life);
	sp_slots_copy_size_counts(slot);
	slot = sp_slots_release(slot);
	/* What threads do after their end belongs to nobody: one slot for all.
	 */
	for (unsigned int i = 0; i < AFTER_END; i++)
		sp_slots_add(slot, 7, 1);
}

static void *work(void *arg)
{
	unsigned int looks_wanted = *(unsigned int *)arg;

	for (unsigned int i = 0; i < LIVES; i++) {
		while (i + 1 == LIVES && atomic_load(&looks) < looks_wanted)
			sched_yield();
		live();
	}
	atomic_fetch_sub(&working, 1);
	return NULL;
}

static void open_file(uint64_t max_file_bytes)
{
	const struct sp_writer_options options = {
		.pid = (uint64_t)getpid(),
		.start_unix_ns = 1700000000000000000u,
		.start_clock_ns = sp_clock_now_ns(),
		.period_bytes = PERIOD,
		.file_id = FIXTURE_FILE_ID,
		.max_file_bytes = max_file_bytes,
		.check_in_bytes = 1 << 20,
		.flags = SP_HEADER_ALWAYS_LARGE | SP_HEADER_FREES |
			 SP_HEADER_SEGMENTS,
	};

	assert_true(sp_outfile_prepare(agent_fixture_path("stress.sprof"),
				       "/bin/test", "host", 0));
	assert_int_equal(sp_writer_open(&options), 0);
	atomic_store(&last_sample, 0);
	atomic_store(&last_thread, 0);
	atomic_store(&lost, 0);
	memset(did, 0, sizeof(did));
	memset(lives, 0, sizeof(lives));
	for (uint32_t i = 0; i < MODULES; i++) {
		modules[i].id = i + 1;
		modules[i].start = 0x10000 * (i + 1);
		modules[i].end = modules[i].start + 0x10000;
		modules[i].path = "/lib/module.so";
	}
}

/* While it is written, the file is whole at any time, and grows. */
static void read_running(uint64_t *bytes, uint64_t *samples)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	assert_int_equal(
		sp_profile_load(sp_outfile_name(), NULL, NULL, &p, &err), 0);
	assert_int_equal(p->end, SP_PROFILE_END_RUNNING);
	assert_string_equal(p->damage, "");
	assert_in_range(p->exact_alloc_bytes, *bytes, UINT64_MAX);
	assert_in_range(p->n_samples, *samples, TOTAL);
	*bytes = p->exact_alloc_bytes;
	*samples = p->n_samples;
	sp_profile_free(p);
}

/* A program that looks at its profile, and a total that never falls. */
static void look_on(void)
{
	uint64_t bytes = 0, samples = 0, last_total = 0;
	struct sp_slots_totals total;

	while (atomic_load(&working)) {
		sp_slots_total(&total, 1 << 20);
		assert_in_range(total.bytes, last_total, UINT64_MAX);
		last_total = total.bytes;
		sp_slots_copy_all();
		sp_slots_copy_all_size_counts();
		sp_slots_set_name((unsigned long)pthread_self(), "nobody");
		read_running(&bytes, &samples);
		atomic_fetch_add(&looks, 1);
	}
}

static void run_threads(unsigned int looks_wanted)
{
	pthread_t threads[THREADS];

	atomic_store(&working, THREADS);
	atomic_store(&looks, 0);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, work, &looks_wanted),
			0);
	if (looks_wanted)
		look_on();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* The last addition to each slot is in the file by itself, and so is
	 * the last count by size. */
	sp_writer_end(atomic_load(&last_thread), false);
}

static int compare_ids(const void *a, const void *b)
{
	const struct sp_stack *const *x = a, *const *y = b;

	return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* The stacks in the order of their ids; to be freed. */
static const struct sp_stack **sort_stacks(const struct sp_profile *p)
{
	const struct sp_stack **by_id = calloc(p->n_stacks, sizeof(*by_id));

	assert_non_null(by_id);
	for (size_t i = 0; i < p->n_stacks; i++)
		by_id[i] = &p->stacks[i];
	qsort(by_id, p->n_stacks, sizeof(const struct sp_stack *), compare_ids);
	for (size_t i = 1; i < p->n_stacks; i++)
		assert_true(by_id[i - 1]->id < by_id[i]->id);
	return by_id;
}

static const struct sp_stack *find_stack(const struct sp_profile *p,
					 const struct sp_stack **by_id,
					 uint32_t id)
{
	const struct sp_stack key = {.id = id}, *wanted = &key;
	const struct sp_stack **found =
		bsearch(&wanted, by_id, p->n_stacks,
			sizeof(const struct sp_stack *), compare_ids);

	return found ? *found : NULL;
}

/* Every sample that was written, once, as it was written; returns how many. */
static uint64_t check_samples(const struct sample_list *list)
{
	size_t at = 0;

	for (uint64_t id = 1; id <= atomic_load(&last_sample); id++) {
		struct sp_record_sample want = sample_of(id), *got;

		if (!did[id].thread)
			continue;
		assert_true(at < list->n);
		got = &list->at[at++];
		want.thread = did[id].thread;
		want.stack = did[id].stack;
		assert_true(got->id == id);
		assert_true(got->time_ns == want.time_ns);
		assert_true(got->address == want.address);
		assert_true(got->size_bytes == want.size_bytes);
		assert_true(got->offset_bytes == want.offset_bytes);
		assert_true(got->period_bytes == want.period_bytes);
		assert_true(got->stack == want.stack);
		assert_true(got->thread == want.thread);
		assert_true(got->entry == want.entry);
	}
	assert_int_equal(at, list->n);
	return at;
}

/* The stack of each sample is the one it was taken with.  Equal stacks have one
 * id, but for those that two threads met at the same time, and those of other
 * segments. */
static void check_stacks(const struct sp_profile *p)
{
	const struct sp_stack **by_id = sort_stacks(p);
	uint64_t others = 0;
	static uint32_t id_of[KINDS];

	memset(id_of, 0, sizeof(id_of));
	for (uint64_t id = 1; id <= atomic_load(&last_sample); id++) {
		unsigned int kind = kind_of(id), n;
		struct sp_record_frame frames[8];
		const struct sp_stack *s;

		if (!did[id].stack)
			continue;
		others += id_of[kind] && id_of[kind] != did[id].stack;
		id_of[kind] = did[id].stack;
		s = find_stack(p, by_id, did[id].stack);
		assert_non_null(s);
		n = make_frames(kind, frames);
		assert_int_equal(s->n_frames, n);
		for (unsigned int i = 0; i < n; i++) {
			assert_int_equal(s->frames[i].module, frames[i].module);
			assert_true(s->frames[i].offset == frames[i].offset);
		}
	}
	assert_in_range(others, 0, atomic_load(&last_sample) / 4);
	free(by_id);
}

/* Totals of the process by size class: all but what slot 0 took, and size
 * counts for which the file had no room.  The slack covers what is missing. */
static void check_classes(const struct sp_profile *p)
{
	bool whole = p->losses[SP_LOSS_CLASS_TOTALS] == 0;
	uint64_t sum = 0;

	assert_true(p->has_classes);
	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		uint64_t bytes = 0, objects = 0;

		for (uint32_t i = 1; i <= THREADS * LIVES; i++) {
			bytes += lives[i].classes[c].bytes;
			objects += lives[i].classes[c].objects;
		}
		assert_in_range(p->classes[c].bytes, whole ? bytes : 0, bytes);
		assert_in_range(p->classes[c].objects, whole ? objects : 0,
				objects);
		sum += p->classes[c].bytes;
	}
	assert_in_range(p->exact_alloc_bytes - sum,
			7 * AFTER_END * THREADS * LIVES, p->class_slack_bytes);
}

static void check_frees(const struct sp_profile *p)
{
	assert_true(p->has_frees);
	assert_int_equal(p->unmatched_frees, 0);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *s = &p->samples[i];

		assert_int_equal(s->freed_ns != SP_NEVER, did[s->id].freed);
		assert_true(s->age_bytes ==
			    (did[s->id].freed ? s->id : SP_UNKNOWN));
	}
}

/* Totals of threads and process. */
static void check_totals(const struct sp_profile *p)
{
	uint64_t objects = AFTER_END * THREADS * LIVES, bytes = 7 * objects;
	FREED uint64_t *samples = calloc(p->n_thread_infos, sizeof(*samples));

	assert_non_null(samples);
	for (size_t i = 0; i < p->n_samples; i++)
		samples[p->samples[i].thread]++;
	for (uint32_t i = 1; i <= THREADS * LIVES; i++) {
		bytes += lives[i].bytes;
		objects += lives[i].objects;
	}
	assert_int_equal(p->exact_alloc_bytes, bytes);
	assert_int_equal(p->exact_alloc_objects, objects);
	assert_int_equal(p->threads, THREADS * LIVES);
	for (size_t i = 0; i < p->n_thread_infos; i++) {
		const struct sp_thread_info *t = &p->thread_infos[i];

		assert_int_equal(samples[i], lives[t->index].samples);
		if (!t->has_totals)
			continue;
		assert_int_equal(t->exact_alloc_bytes, lives[t->index].bytes);
		assert_int_equal(t->exact_alloc_objects,
				 lives[t->index].objects);
	}
}

static struct sp_profile *load_ended(void)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	assert_int_equal(
		sp_profile_load(sp_outfile_name(), NULL, NULL, &p, &err), 0);
	assert_int_equal(p->end, SP_PROFILE_END_CLEAN);
	assert_string_equal(p->damage, "");
	check_totals(p);
	check_classes(p);
	check_frees(p);
	check_stacks(p);
	return p;
}

/* Room for everything: nothing may be missing. */
TEST(everything)
{
	struct sample_list list;
	struct sp_profile *p;

	open_file(64u << 20);
	run_threads(3);
	assert_int_equal(atomic_load(&lost), 0);
	assert_int_equal(agent_fixture_losses(), 0);
	list = sample_list_read(sp_outfile_name());
	assert_int_equal(check_samples(&list), TOTAL);
	p = load_ended();
	assert_int_equal(p->losses[SP_LOSS_CLASS_TOTALS], 0);
	assert_int_equal(p->n_samples, TOTAL);
	assert_int_equal(p->n_modules, MODULES);
	assert_int_equal(p->n_thread_infos, THREADS * LIVES);
	for (size_t i = 0; i < p->n_thread_infos; i++) {
		char name[16];

		snprintf(name, sizeof(name), "life %u",
			 p->thread_infos[i].index);
		assert_string_equal(p->thread_infos[i].name, name);
		assert_true(p->thread_infos[i].has_totals);
	}
	free(list.at);
	sp_profile_free(p);
	agent_fixture_close();
}

/* A file that is soon full: what was written is whole, what was not is
 * counted, and the totals are exact as ever. */
TEST(full)
{
	struct sample_list list;
	struct sp_profile *p;
	uint64_t n;

	open_file(2u << 20);
	run_threads(0);
	list = sample_list_read(sp_outfile_name());
	n = check_samples(&list);
	assert_true(n > 10000 && n < TOTAL - 10000);
	assert_true(atomic_load(&lost) >= TOTAL - n);
	p = load_ended();
	assert_int_equal(p->n_samples, n);
	free(list.at);
	sp_profile_free(p);
	agent_fixture_close();
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
