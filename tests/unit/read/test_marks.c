/* SPDX-License-Identifier: MIT */
/* Marks as phases and snapshots, against a plain model. */
#include "base/rng.h"
#include "model/profile.h"
#include "read/marks.h"
#include "support/test.h"

#define MARKS  40u
#define PERIOD 4096u

static const char *const names[] = {"", "load", "serve", "load"};

/* What the file says, as the program lived it. */
struct life {
	struct sp_record_mark marks[MARKS];
	size_t n;
	uint64_t alloc_bytes, alloc_objects; /* at the end */
};

static struct sp_profile *empty_profile(const struct life *life)
{
	struct sp_profile *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->path = "test";
	p->period_bytes = PERIOD;
	p->exact_alloc_bytes = life->alloc_bytes;
	p->exact_alloc_objects = life->alloc_objects;
	return p;
}

static const struct sp_window no_window;

static struct sp_profile *settle(const struct life *life, struct sp_rng *rng)
{
	struct sp_profile *p = empty_profile(life);
	struct sp_marks marks = {0};
	size_t order[MARKS];

	for (size_t i = 0; i < life->n; i++)
		order[i] = i;
	/* Chunks hand them out in any order. */
	for (size_t i = life->n; rng && i > 1; i--) {
		size_t k = sp_rng_next(rng) % i, swap = order[k];

		order[k] = order[i - 1];
		order[i - 1] = swap;
	}
	for (size_t i = 0; i < life->n; i++)
		assert_int_equal(sp_marks_add(&marks, &life->marks[order[i]]),
				 0);
	assert_int_equal(sp_marks_settle(&marks, &no_window, p), 0);
	sp_marks_done(&marks);
	return p;
}

static void random_life(struct life *life, struct sp_rng *rng)
{
	struct sp_record_mark now = {.period_bytes = PERIOD};

	memset(life, 0, sizeof(*life));
	life->n = sp_rng_next(rng) % MARKS;
	for (size_t i = 0; i < life->n; i++) {
		uint64_t bytes = sp_rng_next(rng) % 1000;

		now.number = i + 1;
		now.time_ns += sp_rng_next(rng) % 100;
		now.alloc_bytes += bytes;
		now.alloc_objects += bytes / 10;
		if (!now.period_bytes) {
			now.unsampled_bytes += bytes;
			now.unsampled_objects += bytes / 10;
		}
		now.kind = 1 + sp_rng_next(rng) % 3;
		now.name = "";
		if (now.kind == SP_MARK_SAMPLING)
			now.period_bytes =
				now.period_bytes == PERIOD
					? 0
					: PERIOD << sp_rng_next(rng) % 2;
		else
			now.name = names[sp_rng_next(rng) % 4];
		now.name_bytes = strlen(now.name);
		life->marks[i] = now;
	}
	life->alloc_bytes = now.alloc_bytes + 500;
	life->alloc_objects = now.alloc_objects + 50;
}

/* The phase and the period at a moment between two marks: the last word. */
static void check_at(const struct sp_profile *p, const struct life *life,
		     size_t last)
{
	const char *phase = "";
	uint64_t period = PERIOD;
	const struct sp_stretch *s;

	for (size_t i = 0; i <= last; i++) {
		period = life->marks[i].period_bytes;
		if (life->marks[i].kind == SP_MARK_PHASE)
			phase = life->marks[i].name;
	}
	s = sp_stretch_at(p, 0, life->marks[last].time_ns);
	assert_non_null(s);
	/* Of several at one time the last counts. */
	if (last + 1 < life->n &&
	    life->marks[last + 1].time_ns == life->marks[last].time_ns)
		return;
	assert_string_equal(s->phase, phase);
	assert_int_equal(s->period_bytes, period);
}

static void check_sums(const struct sp_profile *p, const struct life *life)
{
	const struct sp_record_mark *last =
		life->n ? &life->marks[life->n - 1] : NULL;
	uint64_t bytes = 0, objects = 0, unsampled = 0, want = 0;

	for (size_t i = 0; i < p->n_stretches; i++) {
		const struct sp_stretch *s = &p->stretches[i];

		bytes += s->alloc_bytes;
		objects += s->alloc_objects;
		unsampled += s->unsampled_bytes;
		assert_true(i + 1 == p->n_stretches ? s->to_ns == SP_NEVER
						    : s->to_ns == s[1].from_ns);
		assert_int_equal(s->unsampled_bytes,
				 s->period_bytes ? 0 : s->alloc_bytes);
	}
	if (last)
		want = last->unsampled_bytes + (last->period_bytes ? 0 : 500);
	assert_int_equal(bytes, life->alloc_bytes);
	assert_int_equal(objects, life->alloc_objects);
	assert_int_equal(unsampled, want);
	assert_int_equal(p->unsampled_bytes, want);
}

TEST(model)
{
	struct sp_rng rng;
	struct life life;

	sp_rng_init(&rng, 17, 1);
	for (int round = 0; round < 3000; round++) {
		struct sp_profile *p;
		size_t snapshots = 0;

		random_life(&life, &rng);
		p = settle(&life, &rng);
		for (size_t i = 0; i < life.n; i++) {
			snapshots += life.marks[i].kind == SP_MARK_SNAPSHOT;
			check_at(p, &life, i);
		}
		assert_int_equal(p->n_snapshots, snapshots);
		if (life.n)
			check_sums(p, &life);
		else
			assert_int_equal(p->n_stretches, 0);
		sp_profile_free(p);
	}
}

/* Killed after a mark, before its threads had published as much. */
TEST(ahead)
{
	struct life life = {.n = 1, .alloc_bytes = 10, .alloc_objects = 1};
	struct sp_profile *p;

	life.marks[0] = (struct sp_record_mark){
		1, SP_MARK_PHASE, 5, 100, 7, 0, 0, 3, PERIOD, "load", 4};
	p = settle(&life, NULL);
	assert_int_equal(p->exact_alloc_bytes, 100);
	assert_int_equal(p->exact_alloc_objects, 7);
	assert_int_equal(p->n_stretches, 2);
	assert_int_equal(p->stretches[0].alloc_bytes, 100);
	assert_int_equal(p->stretches[1].alloc_bytes, 0);
	assert_int_equal(p->stretches[0].slack_bytes, 3);
	sp_profile_free(p);
}

/* What only a forged file can have: a later mark with less, a number twice. */
TEST(forged)
{
	struct life life = {.n = 4, .alloc_bytes = 1000, .alloc_objects = 10};
	struct sp_profile *p;

	life.marks[0] = (struct sp_record_mark){
		1, SP_MARK_PHASE, 50, 100, 7, 0, 0, 0, PERIOD, "a", 1};
	life.marks[1] = (struct sp_record_mark){
		2, SP_MARK_PHASE, 40, 200, 8, 0, 0, 0, PERIOD, "b", 1};
	life.marks[2] = (struct sp_record_mark){
		3, SP_MARK_PHASE, 60, 99, 8, 0, 0, 0, PERIOD, "c", 1};
	life.marks[3] = (struct sp_record_mark){4, 1000, 70,     300, 9, 0,
						0, 0,    PERIOD, "d", 1};
	p = settle(&life, NULL);
	assert_int_equal(p->n_stretches, 2);
	assert_string_equal(p->stretches[1].phase, "a");
	assert_int_equal(p->stretches[1].alloc_bytes, 900);
	sp_profile_free(p);
}

/* Sampling was off before there was a mark: the file says so as a fact. */
TEST(dormant)
{
	struct life life = {.alloc_bytes = 1000, .alloc_objects = 10};
	struct sp_profile *p = empty_profile(&life);
	struct sp_marks marks = {0};
	struct sp_info info = {"sampling", "0"};

	p->infos = malloc(sizeof(info));
	assert_non_null(p->infos);
	p->infos[p->n_infos++] = info;
	assert_int_equal(sp_marks_settle(&marks, &no_window, p), 0);
	assert_int_equal(p->n_stretches, 1);
	assert_int_equal(p->unsampled_bytes, 1000);
	assert_int_equal(p->unsampled_objects, 10);
	assert_int_equal(p->period_bytes, PERIOD);
	sp_profile_free(p);
}

/* The largest period that was in force bounds what was not sampled. */
TEST(period)
{
	struct life life = {.n = 2, .alloc_bytes = 1000, .alloc_objects = 10};
	struct sp_profile *p;

	life.marks[0] = (struct sp_record_mark){
		1, SP_MARK_SAMPLING, 5, 100, 7, 0, 0, 0, 8 * PERIOD, "", 0};
	life.marks[1] = (struct sp_record_mark){
		2, SP_MARK_SAMPLING, 6, 100, 7, 0, 0, 0, 1, "", 0};
	p = settle(&life, NULL);
	assert_int_equal(p->period_bytes, 8 * PERIOD);
	assert_int_equal(p->n_stretches, 3);
	sp_profile_free(p);
}

/* What was asked for before; once of a mark that is not there, and once after
 * the mark. */
TEST(asked)
{
	static const struct sp_record_asked asked[] = {
		{3, 45}, {7, 1}, {2, 90}, {1, 8}};
	static const char *const snapshots[] = {"here", "there"};
	struct life life = {.n = 4, .alloc_bytes = 1000, .alloc_objects = 10};
	struct sp_profile *p = empty_profile(&life);
	struct sp_marks marks = {0};
	struct sp_record_mark mark = {.kind = SP_MARK_PHASE,
				      .period_bytes = PERIOD};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(sp_marks_add_asked(&marks, &asked[i]), 0);
		mark.number = i + 1;
		mark.time_ns = 10 * mark.number + 20;
		mark.name = i < 2 ? "load" : snapshots[i - 2];
		mark.name_bytes = strlen(mark.name);
		mark.kind = i < 2 ? SP_MARK_PHASE : SP_MARK_SNAPSHOT;
		assert_int_equal(sp_marks_add(&marks, &mark), 0);
	}
	assert_int_equal(sp_marks_settle(&marks, &no_window, p), 0);
	sp_marks_done(&marks);
	assert_int_equal(p->n_stretches, 3);
	assert_int_equal(p->stretches[0].asked_ns, 0);
	assert_int_equal(p->stretches[1].asked_ns, 8);
	assert_int_equal(p->stretches[1].from_ns, 30);
	assert_int_equal(p->stretches[2].asked_ns, 40);
	assert_int_equal(p->n_snapshots, 2);
	assert_int_equal(p->snapshots[0].asked_ns, 45);
	assert_int_equal(p->snapshots[1].asked_ns, 60);
	sp_profile_free(p);
}

TEST_MAIN(NULL, NULL)
