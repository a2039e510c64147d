/* SPDX-License-Identifier: MIT */
/* Interned stacks beside a plain list, and what is in the file by then. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/diag.h"
#include "agent/stacktab.h"
#include "base/hash.h"
#include "base/rng.h"
#include "profile/profile.h"
#include "support/agent_fixture.h"

#define STACKS   600
#define MAX_FILE (8u << 20)

struct model_stack {
	uint32_t id, n, flags;
	struct sp_record_frame frames[6];
	bool is_permanent;
};

/* Few values, so that many stacks are prefixes or near copies of others. */
static void random_stack(struct sp_rng *rng, struct model_stack *s)
{
	memset(s, 0, sizeof(*s));
	s->n = 1 + sp_rng_next(rng) % 4;
	s->flags = sp_rng_next(rng) % 3;
	for (uint32_t i = 0; i < s->n; i++) {
		s->frames[i].module = sp_rng_next(rng) % 3;
		s->frames[i].offset = sp_rng_next(rng) % 3;
	}
	s->is_permanent = s->frames[0].module == 1;
}

static bool same(const struct model_stack *a, const struct model_stack *b)
{
	return a->n == b->n && a->flags == b->flags &&
	       memcmp(a->frames, b->frames, a->n * sizeof(a->frames[0])) == 0;
}

static uint32_t intern(struct sp_lane *lane, const struct model_stack *s)
{
	const struct sp_stack_walk walk = {
		.pcs = lane->pcs,
		.n = s->n,
		.flags = s->flags,
		.is_permanent = s->is_permanent,
	};
	uint32_t known, id;

	/* Addresses that mean the same frames each time. */
	for (uint32_t i = 0; i < s->n; i++) {
		lane->frames[i] = s->frames[i];
		lane->pcs[i] = (void *)(uintptr_t)(s->frames[i].module << 32 |
						   s->frames[i].offset);
	}
	known = sp_stacktab_find(&walk);
	id = sp_stacktab_intern(lane, &walk);
	/* By its addresses it is found from the second time on, but only if
	 * they will always mean the same. */
	if (known)
		assert_true(s->is_permanent && known == id);
	assert_int_equal(sp_stacktab_find(&walk), s->is_permanent ? id : 0);
	return id;
}

static const struct sp_stack *find(const struct sp_profile *p, uint32_t id)
{
	const struct sp_stack *found = NULL;

	for (size_t i = 0; i < p->n_stacks; i++) {
		if (p->stacks[i].id != id)
			continue;
		assert_null(found);
		found = &p->stacks[i];
	}
	return found;
}

static void check_in_profile(const struct sp_profile *p,
			     const struct model_stack *s)
{
	const struct sp_stack *got = find(p, s->id);

	assert_non_null(got);
	assert_int_equal(got->n_frames, s->n);
	assert_int_equal(got->flags, s->flags);
	for (uint32_t i = 0; i < s->n; i++) {
		assert_int_equal(got->frames[i].module, s->frames[i].module);
		assert_true(got->frames[i].offset == s->frames[i].offset);
	}
}

static struct sp_profile *load(const char *path)
{
	struct sp_profile *p = NULL;
	struct sp_error err;

	assert_int_equal(sp_profile_load(path, NULL, NULL, &p, &err), 0);
	assert_string_equal(p->damage, "");
	return p;
}

static void test_model(void **state)
{
	static struct model_stack model[STACKS];
	const char *path = agent_fixture_open(MAX_FILE);
	struct sp_profile *p;
	struct sp_rng rng;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	size_t n = 0;

	(void)state;
	sp_rng_init(&rng, 13, 1);
	while (n < STACKS) {
		struct model_stack s;
		size_t i = 0;

		random_stack(&rng, &s);
		s.id = intern(lane, &s);
		assert_int_not_equal(s.id, 0);
		while (i < n && !same(&model[i], &s))
			i++;
		if (i == n) {
			assert_int_equal(s.id, n + 1);
			model[n++] = s;
		}
		assert_int_equal(s.id, model[i].id);
	}
	/* The file has each of them, and nothing else. */
	p = load(path);
	assert_int_equal(p->n_stacks, STACKS);
	for (size_t i = 0; i < n; i++)
		check_in_profile(p, &model[i]);
	sp_profile_free(p);
	sp_lane_give(lane);
}

static void test_deep(void **state)
{
	const char *path = agent_fixture_open(MAX_FILE);
	struct sp_profile *p;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	const struct sp_stack_walk walk = {.n = SP_LANE_DEPTH,
					   .flags = SP_STACK_TRUNCATED};
	uint32_t id;

	(void)state;
	for (uint32_t i = 0; i < SP_LANE_DEPTH; i++)
		lane->frames[i] = (struct sp_record_frame){i % 7, i * 977u};
	id = sp_stacktab_intern(lane, &walk);
	assert_int_equal(id, 1);
	/* The last frame alone makes another stack. */
	lane->frames[SP_LANE_DEPTH - 1].offset++;
	assert_int_equal(sp_stacktab_intern(lane, &walk), 2);
	lane->frames[SP_LANE_DEPTH - 1].offset--;
	assert_int_equal(sp_stacktab_intern(lane, &walk), 1);
	p = load(path);
	assert_int_equal(p->n_stacks, 2);
	for (uint32_t i = 0; i < SP_LANE_DEPTH; i++)
		assert_true(p->stacks[0].frames[i].offset == i * 977u);
	sp_profile_free(p);
	sp_lane_give(lane);
}

/* What the hash has made of the first frame's module. */
static uint64_t hash_of_first(const struct model_stack *s)
{
	uint64_t h = sp_hash_word(0, 0) ^ s->frames[0].module;

	return h * SP_HASH_MULTIPLIER;
}

/* Different stacks with the same hash: the second frame undoes the first. */
static void test_same_hash(void **state)
{
	struct model_stack a = {.n = 2, .frames = {{3, 7}, {1, 0}}};
	struct model_stack b = {.n = 2, .frames = {{4, 7}, {1, 0}}};
	uint8_t hint = 0;
	struct sp_lane *lane;

	(void)state;
	b.frames[1].module ^= hash_of_first(&a) ^ hash_of_first(&b);
	agent_fixture_open(MAX_FILE);
	lane = sp_lane_take(&hint);
	assert_int_equal(intern(lane, &a), 1);
	assert_int_equal(intern(lane, &b), 2);
	assert_int_equal(intern(lane, &a), 1);
	assert_int_equal(intern(lane, &b), 2);
}

/* The child of a fork starts with a file that knows no stacks. */
static void test_reset(void **state)
{
	struct model_stack s = {.n = 1, .frames = {{1, 5}}};
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	struct sp_profile *p;
	const char *path;

	(void)state;
	agent_fixture_open(MAX_FILE);
	intern(lane, &(struct model_stack){.n = 1, .frames = {{1, 4}}});
	assert_int_equal(intern(lane, &s), 2);
	agent_fixture_close();
	path = agent_fixture_open(MAX_FILE);
	lane = sp_lane_take(&hint);
	assert_int_equal(intern(lane, &s), 1);
	assert_int_equal(intern(lane, &s), 1);
	p = load(path);
	assert_int_equal(p->n_stacks, 1);
	s.id = 1;
	check_in_profile(p, &s);
	sp_profile_free(p);
}

/* A full file: known stacks keep their ids, new ones get none. */
static void test_full(void **state)
{
	struct model_stack s = {.n = 1, .frames = {{1, 0}}};
	uint64_t losses[SP_FORMAT_LOSSES], refused = 0;
	uint8_t hint = 0;
	struct sp_lane *lane;

	(void)state;
	agent_fixture_open(2 * 65536);
	lane = sp_lane_take(&hint);
	for (uint32_t i = 0; i < 20000; i++) {
		s.frames[0].offset = i;
		refused += intern(lane, &s) == 0;
	}
	assert_true(refused > 1000 && refused < 19000);
	sp_diag_read(losses);
	assert_true(losses[SP_LOSS_STACK_TABLE] == refused);
	s.frames[0].offset = 0;
	assert_int_equal(intern(lane, &s), 1);
}

#define THREADS 6
#define ROUNDS  3000
#define KINDS   400

struct worker {
	unsigned int index;
	uint32_t ids[KINDS]; /* that this thread got; 0: did not ask */
	unsigned int changed, none;
};

static void stack_of_kind(unsigned int kind, struct model_stack *s)
{
	*s = (struct model_stack){
		.n = 2,
		.frames = {{kind % 5, kind}, {1, kind / 3}},
	};
}

static void *intern_many(void *arg)
{
	struct worker *w = arg;
	struct sp_rng rng;
	uint8_t hint = 0;

	sp_rng_init(&rng, 14, w->index);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned int kind = sp_rng_next(&rng) % KINDS;
		struct sp_lane *lane = sp_lane_take(&hint);
		struct model_stack s;
		uint32_t id;

		stack_of_kind(kind, &s);
		id = intern(lane, &s);
		sp_lane_give(lane);
		w->none += id == 0;
		w->changed += w->ids[kind] && w->ids[kind] != id;
		w->ids[kind] = id;
	}
	return NULL;
}

/* All threads get the same id for the same stack, and the file knows it. */
static void test_threads(void **state)
{
	static struct worker workers[THREADS];
	const char *path = agent_fixture_open(MAX_FILE);
	pthread_t threads[THREADS];
	struct sp_profile *p;

	(void)state;
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		assert_int_equal(pthread_create(&threads[i], NULL, intern_many,
						&workers[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].changed, 0);
		assert_int_equal(workers[i].none, 0);
	}
	p = load(path);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		struct model_stack s;

		stack_of_kind(kind, &s);
		for (unsigned int i = 0; i < THREADS; i++) {
			if (!workers[i].ids[kind])
				continue;
			if (!s.id)
				s.id = workers[i].ids[kind];
			assert_int_equal(workers[i].ids[kind], s.id);
		}
		check_in_profile(p, &s);
	}
	sp_profile_free(p);
}

#define TEST(function)                                                         \
	cmocka_unit_test_teardown(function, agent_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_model), TEST(test_deep), TEST(test_same_hash),
		TEST(test_reset), TEST(test_full), TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, agent_fixture_begin,
				      agent_fixture_end);
}
