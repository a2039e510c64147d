/* SPDX-License-Identifier: MIT */
/* Selections at their edges, and sums compared with a loop over all samples. */
#include "base/rng.h"
#include "stats/sums.h"
#include "support/only_part.h"
#include "support/test.h"

#define SAMPLES 4000u
#define STACKS  20u
#define THREADS 5u
#define END_NS  10000u

static struct sp_sample samples[SAMPLES];
static struct sp_stack stacks[STACKS];
static struct sp_thread_info threads[THREADS];
static struct sp_profile profile = {
	.path = "in memory",
	.period_bytes = 4096,
	.duration_ns = END_NS,
	.samples = samples,
	.n_samples = SAMPLES,
	.stacks = stacks,
	.n_stacks = STACKS,
	.thread_infos = threads,
	.n_thread_infos = THREADS,
	.parts = &only_part,
	.n_parts = 1,
};

static struct sp_sample sample(uint64_t born_ns, uint64_t freed_ns)
{
	return (struct sp_sample){
		.id = 1,
		.born_ns = born_ns,
		.freed_ns = freed_ns,
		.size_bytes = 100,
		.period_bytes = 4096,
		.age_bytes = SP_UNKNOWN,
		.thread = 1,
		.freed_by = freed_ns == SP_NEVER ? UINT32_MAX : 1,
	};
}

static bool has(const struct sp_selection *selection, struct sp_sample s)
{
	return sp_selection_has(selection, &profile, &s);
}

TEST(all)
{
	struct sp_selection all;

	sp_selection_init(&all);
	assert_true(has(&all, sample(0, SP_NEVER)));
	assert_true(has(&all, sample(0, 0)));
	assert_true(has(&all, sample(SP_NEVER - 1, SP_NEVER - 1)));
}

TEST(birth)
{
	struct sp_selection window;

	sp_selection_init(&window);
	window.from_ns = 10;
	window.to_ns = 20;
	assert_false(has(&window, sample(9, 15)));
	assert_true(has(&window, sample(10, 100)));
	assert_true(has(&window, sample(19, SP_NEVER)));
	assert_false(has(&window, sample(20, SP_NEVER)));
	/* Windows that meet have each sample once. */
	window.from_ns = 20;
	window.to_ns = SP_NEVER;
	assert_true(has(&window, sample(20, SP_NEVER)));
	assert_true(has(&window, sample(SP_NEVER - 1, SP_NEVER)));
}

TEST(size)
{
	struct sp_selection sizes;
	struct sp_sample s = sample(1, 2);

	sp_selection_init(&sizes);
	sizes.min_size_bytes = 16;
	sizes.max_size_bytes = 32;
	for (s.size_bytes = 1; s.size_bytes < 50; s.size_bytes++)
		assert_int_equal(has(&sizes, s),
				 s.size_bytes >= 16 && s.size_bytes <= 32);
	s.size_bytes = UINT64_MAX;
	assert_false(has(&sizes, s));
	sizes.max_size_bytes = UINT64_MAX;
	assert_true(has(&sizes, s));
}

/* Threads are named by their index, samples have their position. */
TEST(thread)
{
	struct sp_selection selection;
	struct sp_sample s = sample(1, 2);

	for (uint32_t i = 0; i < THREADS; i++)
		threads[i].index = 100 + i;
	sp_selection_init(&selection);
	selection.thread = 101;
	assert_true(has(&selection, s));
	s.thread = 2;
	assert_false(has(&selection, s));
	s.thread = UINT32_MAX;
	assert_false(has(&selection, s));
	selection.thread = 0;
	assert_true(has(&selection, s));
}

TEST(live)
{
	static const enum sp_view views[] = {SP_VIEW_LIVE, SP_VIEW_PEAK};
	struct sp_selection live;

	for (size_t i = 0; i < 2; i++) {
		sp_selection_init(&live);
		live.view = views[i];
		live.at_ns = live.peak_ns = 50;
		assert_true(has(&live, sample(50, SP_NEVER)));
		assert_true(has(&live, sample(50, 51)));
		assert_false(has(&live, sample(51, SP_NEVER)));
		assert_false(has(&live, sample(10, 50)));
		assert_false(has(&live, sample(50, 50)));
		/* The end. */
		live.at_ns = live.peak_ns = SP_NEVER;
		assert_true(has(&live, sample(END_NS + 1, SP_NEVER)));
		assert_false(has(&live, sample(10, END_NS + 1)));
		assert_false(has(&live, sample(10, SP_NEVER - 1)));
	}
}

TEST(leaks)
{
	struct sp_selection leaks;

	sp_selection_init(&leaks);
	leaks.view = SP_VIEW_LEAKS;
	leaks.tail_ns = 1000;
	assert_true(has(&leaks, sample(END_NS - 1000, SP_NEVER)));
	assert_false(has(&leaks, sample(END_NS - 999, SP_NEVER)));
	assert_false(has(&leaks, sample(0, END_NS)));
	assert_false(has(&leaks, sample(UINT64_MAX - 10, SP_NEVER)));
	leaks.at_ns = 500;
	assert_false(has(&leaks, sample(0, SP_NEVER)));
	leaks.tail_ns = 500;
	assert_true(has(&leaks, sample(0, SP_NEVER)));
	assert_true(has(&leaks, sample(0, 501)));
	assert_false(has(&leaks, sample(0, 500)));
	leaks.tail_ns = UINT64_MAX;
	assert_false(has(&leaks, sample(0, SP_NEVER)));
}

TEST(temporary)
{
	struct sp_selection soon;
	struct sp_sample s = sample(100, 150);

	sp_selection_init(&soon);
	soon.view = SP_VIEW_TEMPORARY;
	soon.within_bytes = 4096;
	assert_false(has(&soon, s));
	s.age_bytes = 4096;
	assert_true(has(&soon, s));
	s.age_bytes = 4097;
	assert_false(has(&soon, s));
	assert_false(has(&soon, sample(100, SP_NEVER)));

	soon.within_bytes = SP_NEVER;
	soon.within_ns = 50;
	assert_true(has(&soon, s));
	soon.within_ns = 49;
	assert_false(has(&soon, s));
	soon.within_ns = SP_NEVER - 1;
	assert_true(has(&soon, s));
	s.freed_by = 2;
	assert_false(has(&soon, s));
	/* Two that are not known are not the same. */
	s.thread = s.freed_by = UINT32_MAX;
	assert_false(has(&soon, s));
	assert_false(has(&soon, sample(100, SP_NEVER)));
}

static void fill(uint64_t seed)
{
	struct sp_rng rng;

	sp_rng_init(&rng, seed, 1);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i].index = i + 1;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct sp_sample *s = &samples[i];
		uint64_t v = sp_rng_next(&rng);

		*s = sample(v % END_NS, SP_NEVER);
		s->id = i + 1;
		s->size_bytes = 1 + (v >> 20) % (v >> 62 ? 300 : 100000);
		s->offset_bytes = (v >> 40) % s->size_bytes;
		s->period_bytes = v >> 63 ? 4096 : 512;
		s->stack = (uint32_t)((v >> 32) % STACKS);
		s->thread = (uint32_t)((v >> 44) % (THREADS + 1));
		if (s->thread == THREADS)
			s->thread = UINT32_MAX;
		if ((v >> 50) % 3 == 0)
			continue;
		s->freed_ns = s->born_ns + (v >> 51) % 3000;
		s->freed_by = (uint32_t)((v >> 55) % 2 ? s->thread : 0);
		if (s->freed_by == s->thread && s->thread != UINT32_MAX)
			s->age_bytes = (v >> 10) % 9000;
	}
}

static void fill_selection(struct sp_selection *selection, uint64_t v)
{
	sp_selection_init(selection);
	selection->view = (enum sp_view)(v % 5);
	if (v >> 8 & 1)
		selection->at_ns = (v >> 10) % END_NS;
	if (v >> 9 & 1) {
		selection->from_ns = (v >> 11) % END_NS;
		selection->to_ns = selection->from_ns + (v >> 22) % 4000;
	}
	if (v >> 34 & 1)
		selection->max_size_bytes = 1 + (v >> 35) % 400;
	if (v >> 36 & 1)
		selection->thread = 1 + (uint32_t)((v >> 37) % THREADS);
	if (v >> 40 & 1)
		selection->within_bytes = (v >> 41) % 9000;
	else
		selection->within_ns = (v >> 41) % 3000;
	selection->tail_ns = (v >> 50) % 4000;
}

/* The selected samples of one stack or thread, added in the plain way. */
static void check_sums(const struct sp_class_sums *sums,
		       const struct sp_selection *selection, int64_t stack,
		       int64_t thread)
{
	uint64_t n = 0, bytes = 0, in_classes = 0;
	struct sp_acc want;

	sp_acc_init(&want, profile.period_bytes);
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sp_sample *s = &samples[i];

		if (!sp_selection_has(selection, &profile, s) ||
		    (stack >= 0 && s->stack != stack) ||
		    (thread >= 0 && s->thread != thread))
			continue;
		n++;
		bytes += s->size_bytes;
		sp_acc_add(&want, &profile.law, s->size_bytes, s->offset_bytes,
			   s->period_bytes);
	}
	assert_int_equal(sums->all.samples, n);
	assert_int_equal(sums->all.size_bytes, bytes);
	assert_memory_equal(&sums->all, &want, sizeof(want));
	for (uint32_t i = 0; i < sums->n_classes; i++)
		in_classes += sums->classes[i].acc.samples;
	assert_int_equal(in_classes, n);
}

TEST(sums)
{
	struct sp_error err;
	struct sp_rng rng;
	uint64_t most = 0;

	sp_rng_init(&rng, 77, 1);
	fill(5);
	for (int round = 0; round < 60; round++) {
		struct sp_selection selection;
		struct sp_sums *sums;

		profile.law.always_large = round % 2;
		profile.law.is_dotnet = round % 3 == 2;
		fill_selection(&selection, sp_rng_next(&rng));
		assert_int_equal(sp_sums_new(&profile, &selection, &sums, &err),
				 0);
		check_sums(&sums->all, &selection, -1, -1);
		for (uint32_t i = 0; i < STACKS; i++)
			check_sums(&sums->stacks[i], &selection, i, -1);
		for (uint32_t i = 0; i < THREADS; i++)
			check_sums(&sums->threads[i], &selection, -1, i);
		if (sums->all.all.samples > most)
			most = sums->all.all.samples;
		sp_sums_free(sums, &profile);
	}
	profile.law = (struct sp_law_used){false, false};
	assert_true(most > SAMPLES / 2);
}

/* At any moment, what is alive and what was freed until then is all that was
 * born until then. */
TEST(live_and_freed)
{
	struct sp_selection live, born;

	fill(6);
	for (uint64_t at = 0; at <= END_NS + 3000; at += 97) {
		uint64_t n_live = 0, n_born = 0, n_freed = 0;

		sp_selection_init(&live);
		live.view = SP_VIEW_LIVE;
		live.at_ns = at;
		sp_selection_init(&born);
		born.to_ns = at + 1;
		for (size_t i = 0; i < SAMPLES; i++) {
			n_live += has(&live, samples[i]);
			n_born += has(&born, samples[i]);
			n_freed += samples[i].freed_ns <= at;
		}
		assert_int_equal(n_live + n_freed, n_born);
	}
}

TEST(empty)
{
	static const struct sp_profile empty = {.path = "", .period_bytes = 1};
	struct sp_selection all;
	struct sp_sums *sums;
	struct sp_error err;

	sp_selection_init(&all);
	assert_int_equal(sp_sums_new(&empty, &all, &sums, &err), 0);
	assert_int_equal(sums->all.all.samples, 0);
	assert_int_equal(sums->all.all.period_bytes, 1);
	sp_sums_free(sums, &empty);
	sp_sums_free(NULL, &empty);
}

TEST_MAIN(NULL, NULL)
