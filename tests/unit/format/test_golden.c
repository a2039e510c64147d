/* SPDX-License-Identifier: MIT */
/*
 * The profiles in tests/format/golden/v1, kept for ever, are read as they were
 * meant when they were made, and the encoder still writes them byte for byte.
 * What is expected here never changes: see the README.md there.
 */
#include <inttypes.h>
#include <math.h>

#include "model/profile.h"
#include "support/close.h"
#include "support/golden_maker.h"
#include "support/one_file.h"
#include "support/sums_of.h"
#include "support/test.h"

#define GOLDEN SP_TESTS_DIR "/format/golden/v1/"
#define LENGTH (1u << 20) /* max_file_bytes in both headers */

static void check_header(const struct sp_profile *p)
{
	assert_int_equal(p->format_version, 1);
	assert_int_equal(p->pid, 4194304001u);
	assert_int_equal(p->start_unix_ns, 1700000000123456789u);
	assert_int_equal(p->period_bytes, 4096);
	assert_int_equal(p->seed, 0xfedcba9876543210u);
	assert_int_equal(p->max_file_bytes, 1 << 20);
	assert_int_equal(p->check_in_bytes, 1 << 20);
	assert_string_equal(p->program, "/usr/bin/app");
}

TEST(clean_process)
{
	struct sp_profile *p = one_file_load(GOLDEN "clean.sprof", LENGTH);

	check_header(p);
	assert_int_equal(p->end, SP_PROFILE_END_CLEAN);
	assert_int_equal(p->duration_ns, 5000000000u);
	assert_string_equal(p->command, "app --mode 'two words'");
	assert_string_equal(p->host, "host.example");
	assert_int_equal(p->threads, 5);
	assert_int_equal(p->exact_alloc_bytes,
			 111 + 800000 + 75536 + (1ull << 40));
	assert_int_equal(p->exact_alloc_objects, 2 + 50 + 31 + 9);
	for (unsigned int i = 0; i < 12; i++)
		assert_int_equal(p->losses[i], 101 + i);
	assert_string_equal(p->damage, "");
	assert_int_equal(p->damaged_records, 0);
	assert_int_equal(p->ignored_bytes, 0);
}

TEST(clean_facts)
{
	static const char *const facts[][2] = {
		{"agent", "libsampleprof 0.1.0"},
		{"exe", "/usr/bin/app"},
		{"host", "host.example"},
		{"setting.period", "4096"},
		{"setting.out", "%e.%p.sprof"},
		{"setting.seed", "18364758544493064720"},
		{"allocator", "/lib/libc.so.6"},
		{"unwinder", "libunwind"},
		{"diagnosis", ""},
		{"not.yet.known", "a fact of a later writer"},
	};
	struct sp_profile *p = one_file_load(GOLDEN "clean.sprof", LENGTH);

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		assert_non_null(sp_profile_info(p, facts[i][0]));
		assert_string_equal(sp_profile_info(p, facts[i][0]),
				    facts[i][1]);
	}
	assert_null(sp_profile_info(p, "absent"));
}

TEST(clean_modules)
{
	static const uint8_t build_id[32] = {0x5a, 1,  2,  3,  4,  5,   6,
					     7,    8,  9,  10, 11, 12,  13,
					     14,   15, 16, 17, 18, 0xff};
	static const struct {
		uint64_t start_pc, end_pc, bias;
		uint32_t build_id_len;
		const char *path;
	} modules[] = {
		{0x555500001000, 0x555500009000, 0x555500000000, 20,
		 "/usr/bin/app"},
		{0x7f0000000000, 0x7f0000200000, 0x7f0000000000, 32,
		 "/lib/libc.so.6"},
		{0x7fff00000000, 0x7fff00001000, 0x7fff00000000, 0, "[vdso]"},
		{0x7e0000000000, 0x7e0000001000, 0x7dffffff0000, 1,
		 "/opt/\xc3\xa9t\xc3\xa9 \xff/libx.so"},
	};
	struct sp_profile *p = one_file_load(GOLDEN "clean.sprof", LENGTH);

	assert_int_equal(p->n_modules, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct sp_module *m = sp_profile_module(p, i + 1);

		assert_non_null(m);
		assert_int_equal(m->id, i + 1);
		assert_int_equal(m->start_pc, modules[i].start_pc);
		assert_int_equal(m->end_pc, modules[i].end_pc);
		assert_int_equal(m->bias, modules[i].bias);
		assert_int_equal(m->build_id_len, modules[i].build_id_len);
		assert_memory_equal(m->build_id, build_id, m->build_id_len);
		assert_string_equal(m->path, modules[i].path);
		assert_int_equal(m->is_main, i == 0);
	}
	assert_null(sp_profile_module(p, 0));
	assert_null(sp_profile_module(p, 5));
}

/* What samples of one stack or thread add up to, computed in the plain way. */
struct sums {
	uint64_t samples, size_bytes, tail_bytes;
	double est_bytes;
};

static void add_sample(struct sums *sums, uint64_t size, uint64_t offset,
		       uint64_t period)
{
	sums->samples++;
	sums->size_bytes += size;
	sums->tail_bytes += size - offset;
	sums->est_bytes +=
		(double)size / -expm1(-(double)size / (double)period);
}

static void check_sums(const struct sp_class_sums *sums,
		       const struct sums *want)
{
	const struct sp_acc *acc = &sums->all;

	assert_int_equal(acc->samples, want->samples);
	assert_int_equal(acc->size_bytes, want->size_bytes);
	assert_int_equal(acc->tail_bytes, want->tail_bytes);
	assert_close(acc->est_bytes, want->est_bytes, 1e-12);
}

/* The samples of clean.sprof: sums by stack (0 to 5, 6 is 2^32 - 1), by thread
 * and of all. */
static void clean_sums(struct sums stacks[7], struct sums threads[6],
		       struct sums *all)
{
	static const struct {
		uint64_t size, offset, period;
		unsigned int stack, thread;
	} more[] = {
		{300, 17, 4096, 5, 1},
		{1, 0, 1024, 0, 0},
		{1ull << 40, 1ull << 39, 1024, 6, 5},
		{5000, 4999, 1024, 5, 3},
		{8192, 0, 1024, 5, 3},
	};

	memset(stacks, 0, 7 * sizeof(stacks[0]));
	memset(threads, 0, 6 * sizeof(threads[0]));
	memset(all, 0, sizeof(*all));
	for (unsigned int i = 0; i < 14; i++) {
		uint64_t size = 8ull << i, period = i < 10 ? 4096 : 1024;

		add_sample(&stacks[1 + i % 3], size, i, period);
		add_sample(&threads[1 + i % 2], size, i, period);
		add_sample(all, size, i, period);
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		add_sample(&stacks[more[i].stack], more[i].size, more[i].offset,
			   more[i].period);
		add_sample(&threads[more[i].thread], more[i].size,
			   more[i].offset, more[i].period);
		add_sample(all, more[i].size, more[i].offset, more[i].period);
	}
}

static const struct sp_stack *stack_of(const struct sp_profile *p, uint32_t id)
{
	for (size_t i = 0; i < p->n_stacks; i++)
		if (p->stacks[i].id == id)
			return &p->stacks[i];
	fail_msg("no stack %" PRIu32, id);
	return NULL;
}

static void check_frames(const struct sp_stack *s, uint32_t flags,
			 const struct sp_frame *frames, uint32_t n)
{
	assert_int_equal(s->flags, flags);
	assert_int_equal(s->n_frames, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(s->frames[i].module, frames[i].module);
		assert_int_equal(s->frames[i].offset, frames[i].offset);
	}
}

TEST(clean_stacks)
{
	static const struct sp_frame simple[] = {
		{1, 0x234}, {2, 0x8000}, {1, 0x8000}};
	static const struct sp_frame caller[] = {{0, 0x7e0000001234}};
	static const struct sp_frame late[] = {{4, 0x10}, {99, 0x20}};
	struct sp_profile *p = one_file_load(GOLDEN "clean.sprof", LENGTH);
	struct sums stacks[7], threads[6], all;
	struct sp_frame deep[128];
	struct sp_sums *sums;

	for (uint32_t i = 0; i < 128; i++)
		deep[i] = (struct sp_frame){1 + i % 2, 16 * i};
	assert_int_equal(p->n_stacks, 6);
	check_frames(stack_of(p, 0), 0, NULL, 0);
	check_frames(stack_of(p, 1), 0, simple, 3);
	check_frames(stack_of(p, 2), SP_STACK_TRUNCATED, deep, 128);
	check_frames(stack_of(p, 3), SP_STACK_CALLER_ONLY, caller, 1);
	check_frames(stack_of(p, 5), 0, late, 2);
	check_frames(stack_of(p, UINT32_MAX), 0, NULL, 0);

	clean_sums(stacks, threads, &all);
	sums = sums_of(p);
	check_sums(&sums->all, &all);
	assert_int_equal(p->n_samples, 19);
	assert_int_equal(sums->all.all.period_bytes, 4096);
	assert_int_equal(sums->all.all.period_min_bytes, 1024);
	for (uint32_t i = 0; i < 7; i++)
		if (i != 4)
			check_sums(
				&sums->stacks[stack_of(p,
						       i < 6 ? i : UINT32_MAX) -
					      p->stacks],
				&stacks[i]);
	sp_sums_free(sums, p);
}

TEST(clean_threads)
{
	static const struct {
		uint64_t tid, bytes, objects;
		const char *name;
		bool exited, has_totals;
	} threads[] = {
		{4711, 800000, 50, "", false, true},
		{4712, 5536, 10, "renamed", true, true},
		{4713, 70000, 21, "fifteen letters", false, true},
		{0, 0, 0, "", false, false}, /* index 5 */
	};
	struct sp_profile *p = one_file_load(GOLDEN "clean.sprof", LENGTH);
	struct sums by_stack[7], by_thread[6], all;
	struct sp_sums *sums;

	clean_sums(by_stack, by_thread, &all);
	sums = sums_of(p);
	assert_int_equal(p->n_thread_infos, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct sp_thread_info *t = NULL;
		uint32_t index = i < 3 ? (uint32_t)i + 1 : 5;

		for (size_t k = 0; k < 4; k++)
			if (p->thread_infos[k].index == index)
				t = &p->thread_infos[k];
		assert_non_null(t);
		assert_int_equal(t->tid, threads[i].tid);
		assert_string_equal(t->name, threads[i].name);
		assert_int_equal(t->exited, threads[i].exited);
		assert_int_equal(t->has_totals, threads[i].has_totals);
		assert_int_equal(t->exact_alloc_bytes, threads[i].bytes);
		assert_int_equal(t->exact_alloc_objects, threads[i].objects);
		check_sums(&sums->threads[t - p->thread_infos],
			   &by_thread[index]);
	}
	sp_sums_free(sums, p);
}

static void check_killed(const struct sp_profile *p)
{
	struct sums want = {0};
	struct sp_sums *sums;

	check_header(p);
	assert_int_equal(p->end, SP_PROFILE_END_KILLED);
	assert_int_equal(p->duration_ns, 7000000);
	assert_string_equal(p->command, "/usr/bin/app");
	assert_string_equal(p->host, "");
	assert_int_equal(p->threads, 1);
	/* It has published 10000: its samples add up to more. */
	assert_int_equal(p->exact_alloc_bytes, 11000);
	assert_int_equal(p->exact_alloc_objects, 4);
	assert_int_equal(p->missing_bytes_max, 20000 - 11000);
	assert_int_equal(p->n_modules, 1);
	assert_int_equal(p->n_stacks, 1);
	assert_int_equal(p->stacks[0].n_frames, 1);
	assert_int_equal(p->n_thread_infos, 1);
	assert_string_equal(p->thread_infos[0].name, "main");
	assert_int_equal(p->thread_infos[0].exact_alloc_bytes, 11000);
	add_sample(&want, 5000, 1, 4096);
	add_sample(&want, 6000, 2, 4096);
	sums = sums_of(p);
	check_sums(&sums->all, &want);
	check_sums(&sums->stacks[0], &want);
	check_sums(&sums->threads[0], &want);
	sp_sums_free(sums, p);
}

/* What was in the middle of being written is noted, and nothing else is lost;
 * the zeros at the end might have been chunks. */
TEST(killed)
{
	struct sp_profile *p = one_file_load(GOLDEN "killed.sprof", LENGTH);

	check_killed(p);
	assert_int_equal(p->unfinished_records, 3);
	assert_int_equal(p->damaged_records, 0);
	assert_string_equal(p->damage, "");
	p = one_file_load(GOLDEN "killed.sprof", 3 * 65536);
	check_killed(p);
	assert_int_equal(p->unfinished_records, 3);
	assert_int_equal(p->damaged_records, 1);
}

/* After an orderly end, a file needs no more than its chunks. */
TEST(trimmed)
{
	struct sp_profile *p = one_file_load(GOLDEN "clean.sprof", 3 * 65536);

	assert_string_equal(p->damage, "");
	assert_int_equal(p->n_samples, 19);
	p = one_file_load(GOLDEN "clean.sprof", 3 * 65536 - 1);
	assert_int_equal(p->damaged_records, 1);
	assert_int_equal(p->n_samples, 19);
}

TEST(encoder)
{
	static const char *const names[] = {"clean.sprof", "killed.sprof"};

	/* What is kept is small: the rest is a hole. */
	assert_in_range(memfile_copy(&one_file, GOLDEN "clean.sprof"),
			2 * 65536 + 1, 150 * 1024);
	assert_in_range(memfile_copy(&one_file, GOLDEN "killed.sprof"),
			2 * 65536 + 1, 150 * 1024);
	golden_check_maker(SP_MAKER, GOLDEN, names, 2);
}

TEST_MAIN(one_file_open, one_file_close)
