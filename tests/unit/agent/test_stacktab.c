/* SPDX-License-Identifier: MIT */
/*
 * Interned stacks compared with a plain list, and what is in the file by then;
 * endlessly new stacks.
 */
#include <pthread.h>

#include "agent/file/ring.h"
#include "agent/file/stacktab.h"
#include "base/rng.h"
#include "model/profile.h"
#include "support/agent_fixture.h"
#include "support/load_profile.h"
#include "support/test.h"

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

/* In the current segment. */
static uint32_t intern(struct sp_lane *lane, const struct model_stack *s)
{
	static void *pcs[SP_LANE_DEPTH];
	struct sp_stack_walk walk = {
		.pcs = pcs,
		.n = s->n,
		.flags = s->flags,
		.hash = SP_WALK_HASH_OUTSIDE,
		.is_permanent = s->is_permanent,
	};
	struct sp_stack_place known, place;

	/* Addresses that mean the same frames each time. */
	for (uint32_t i = 0; i < s->n; i++) {
		lane->frames[i] = s->frames[i];
		pcs[i] = (void *)(uintptr_t)(s->frames[i].module << 32 |
					     s->frames[i].offset);
	}
	for (uint32_t i = s->n; i--;)
		walk.hash = sp_walk_hash_add(walk.hash, pcs[i]);
	known = sp_stacktab_find(&walk);
	place = sp_stacktab_intern(lane, &walk);
	/* By its addresses it is found from the second time on, but only if
	 * they will always mean the same. */
	if (known.id)
		assert_true(s->is_permanent && known.id == place.id &&
			    known.segment == place.segment);
	if (place.id)
		assert_int_equal(place.segment, sp_ring_segment());
	assert_int_equal(sp_stacktab_find(&walk).id,
			 s->is_permanent ? place.id : 0);
	return place.id;
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

TEST_BETWEEN(model, NULL, agent_fixture_teardown)
{
	static struct model_stack model[STACKS];
	const char *path = agent_fixture_open(MAX_FILE);
	struct sp_profile *p;
	struct sp_rng rng;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	size_t n = 0;

	sp_rng_init(&rng, 13, 1);
	while (n < STACKS) {
		struct model_stack s;
		size_t i = 0;

		random_stack(&rng, &s);
		s.id = intern(lane, &s);
		assert_int_not_equal(s.id, 0);
		while (i < n && !same(&model[i], &s))
			i++;
		if (i == n)
			model[n++] = s;
		assert_int_equal(s.id, model[i].id);
	}
	/* The file has each of them, and nothing else. */
	p = load_whole_profile(path);
	assert_int_equal(p->n_stacks, STACKS);
	for (size_t i = 0; i < n; i++)
		check_in_profile(p, &model[i]);
	sp_lane_give(lane);
}

TEST_BETWEEN(deep, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(MAX_FILE);
	struct sp_profile *p;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	const struct sp_stack_walk walk = {.n = SP_LANE_DEPTH,
					   .flags = SP_STACK_TRUNCATED};
	uint32_t id, other;

	for (uint32_t i = 0; i < SP_LANE_DEPTH; i++)
		lane->frames[i] = (struct sp_record_frame){i % 7, i * 977u};
	id = sp_stacktab_intern(lane, &walk).id;
	assert_int_not_equal(id, 0);
	/* The last frame alone makes another stack. */
	lane->frames[SP_LANE_DEPTH - 1].offset++;
	other = sp_stacktab_intern(lane, &walk).id;
	assert_int_not_equal(other, id);
	lane->frames[SP_LANE_DEPTH - 1].offset--;
	assert_int_equal(sp_stacktab_intern(lane, &walk).id, id);
	p = load_whole_profile(path);
	assert_int_equal(p->n_stacks, 2);
	for (uint32_t i = 0; i < SP_LANE_DEPTH; i++)
		assert_true(p->stacks[0].frames[i].offset == i * 977u);
	sp_lane_give(lane);
}

/* Flags, kinds of keys and the number of frames tell stacks apart, too. */
TEST_BETWEEN(near_copies, NULL, agent_fixture_teardown)
{
	struct model_stack s = {.n = 1, .frames = {{1, 7}, {0, 0}}};
	uint32_t ids[4];
	uint8_t hint = 0;
	struct sp_lane *lane;

	agent_fixture_open(MAX_FILE);
	lane = sp_lane_take(&hint);
	ids[0] = intern(lane, &s);
	s.flags = 1;
	ids[1] = intern(lane, &s);
	s.n = 2;
	ids[2] = intern(lane, &s);
	s.is_permanent = true; /* the same frames */
	ids[3] = intern(lane, &s);
	assert_true(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
	assert_int_equal(ids[2], ids[3]);
}

/* The child of a fork starts with a file that knows no stacks. */
TEST_BETWEEN(reset, NULL, agent_fixture_teardown)
{
	struct model_stack s = {.n = 1, .frames = {{1, 5}}};
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	struct sp_profile *p;
	const char *path;

	agent_fixture_open(MAX_FILE);
	intern(lane, &(struct model_stack){.n = 1, .frames = {{1, 4}}});
	intern(lane, &s);
	agent_fixture_close();
	path = agent_fixture_open(MAX_FILE);
	lane = sp_lane_take(&hint);
	s.id = intern(lane, &s);
	assert_int_equal(intern(lane, &s), s.id);
	p = load_whole_profile(path);
	assert_int_equal(p->n_stacks, 1);
	check_in_profile(p, &s);
}

static void complete(void)
{
	sp_ring_set_complete(sp_ring_segment(),
			     &(struct sp_window){.time_ns = 1});
}

static struct model_stack numbered(uint32_t i)
{
	return (struct model_stack){.n = 6,
				    .frames = {{1, i},
					       {2, 77},
					       {3, i / 2},
					       {1, 5},
					       {2, i % 3},
					       {1, 4711}}};
}

/* Endlessly new stacks: the file has room for each of them, since it forgets
 * old ones, and there is memory for no more of them than a segment has. */
TEST_BETWEEN(endless, NULL, agent_fixture_teardown)
{
	uint8_t hint = 0;
	struct sp_lane *lane;
	uint32_t turns;

	agent_fixture_open(1 << 20);
	lane = sp_lane_take(&hint);
	for (uint32_t i = 0; i < 300000; i++) {
		struct model_stack s = numbered(i);
		const uint32_t id = intern(lane, &s);

		assert_int_not_equal(id, 0);
		assert_int_equal(intern(lane, &s), id);
		complete();
	}
	turns = sp_ring_segment();
	assert_true(turns > 30);
	assert_int_equal(agent_fixture_losses(), 0);
}

/* In the next segment it is another record, found and rewritten under one id.
 */
TEST_BETWEEN(rewrite_live, NULL, agent_fixture_teardown)
{
	const char *path = agent_fixture_open(1 << 20);
	struct model_stack s = numbered(0), other = numbered(1);
	struct model_stack a_third = numbered(2);
	uint64_t rewritten, also, nothing = 0, wrong;
	uint8_t hint = 0;
	struct sp_lane *lane = sp_lane_take(&hint);
	struct sp_profile *p;
	uint32_t first, third;

	s.id = intern(lane, &s);
	other.id = intern(lane, &other);
	first = sp_ring_segment();
	third = intern(lane, &a_third);
	for (uint32_t i = 3; sp_ring_segment() == first; i++) {
		struct model_stack more = numbered(i);

		intern(lane, &more);
	}
	rewritten = also = s.id;
	assert_true(sp_stacktab_rewrite(lane, first, &rewritten));
	assert_true(rewritten && rewritten != s.id);
	assert_true(sp_stacktab_rewrite(lane, first, &also));
	assert_int_equal(also, rewritten);
	assert_int_equal(intern(lane, &s), rewritten);
	/* The other way round. */
	also = other.id;
	wrong = intern(lane, &other);
	assert_true(sp_stacktab_rewrite(lane, first, &also));
	assert_int_equal(also, wrong);
	/* What is none. */
	assert_true(sp_stacktab_rewrite(lane, first, &nothing));
	assert_int_equal(nothing, 0);
	wrong = s.id + 1;
	assert_true(sp_stacktab_rewrite(lane, first, &wrong));
	assert_int_equal(wrong, 0);
	wrong = UINT32_MAX;
	assert_true(sp_stacktab_rewrite(lane, first, &wrong));
	assert_int_equal(wrong, 0);
	p = load_whole_profile(path);
	check_in_profile(p, &s);
	s.id = (uint32_t)rewritten;
	check_in_profile(p, &s);
	/* Not into a segment that has ended. */
	complete();
	for (uint32_t i = 3; sp_ring_segment() == first + 1; i++) {
		struct model_stack more = numbered(i);

		intern(lane, &more);
	}
	rewritten = third;
	assert_false(sp_stacktab_rewrite(lane, first, &rewritten));
	assert_int_equal(rewritten, third);
}

/* What a pass writes again is known in bytes, and no new stack is in it. */
TEST_BETWEEN(rewritten_bytes, NULL, agent_fixture_teardown)
{
	static uint64_t ids[65536];
	uint8_t hint = 0;
	struct sp_lane *lane;
	uint32_t n = 0;

	agent_fixture_open(1 << 20);
	lane = sp_lane_take(&hint);
	for (; sp_ring_segment() == 1; n++) {
		struct model_stack s = numbered(n);

		assert_in_range(n, 0, 65535);
		ids[n] = intern(lane, &s);
	}
	sp_ring_passed(1, UINT32_MAX);
	assert_int_equal(sp_ring_rewritten_percent(), 0);
	/* The last one is in the new segment. */
	for (uint32_t i = 0; i < n - 1; i++)
		assert_true(sp_stacktab_rewrite(lane, 1, &ids[i]));
	sp_ring_passed(1, UINT32_MAX);
	/* At least 8 bytes each, and no more than the segment had. */
	assert_in_range(sp_ring_rewritten_percent(), 8 * 100 * n / (1 << 20),
			100 / 4);
	assert_true(sp_ring_rewritten_percent() > 0);
}

/* A full file: what is there keeps its id, new stacks get none. */
TEST_BETWEEN(full, NULL, agent_fixture_teardown)
{
	uint64_t refused = 0;
	uint32_t first = 0;
	uint8_t hint = 0;
	struct sp_lane *lane;

	agent_fixture_open(2 * 65536);
	lane = sp_lane_take(&hint);
	/* Nobody completes it, so there is no second turn. */
	for (uint32_t i = 0; i < 20000; i++) {
		struct model_stack s = numbered(i);
		const uint32_t id = intern(lane, &s);

		if (!i)
			first = id;
		refused += id == 0;
	}
	assert_true(refused > 1000 && refused < 20000);
	assert_int_not_equal(first, 0);
}

/* More than the table has at first: it grows, and none is written twice. */
TEST_BETWEEN(many, NULL, agent_fixture_teardown)
{
	enum { MANY = 60000 };
	static uint32_t ids[MANY];
	uint8_t hint = 0;
	struct sp_lane *lane;
	unsigned int again = 0;

	agent_fixture_open(256u << 20);
	lane = sp_lane_take(&hint);
	for (unsigned int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < MANY; i++) {
			struct model_stack s = numbered(i);
			const uint32_t id = intern(lane, &s);

			assert_int_not_equal(id, 0);
			again += ids[i] && ids[i] != id;
			ids[i] = id;
		}
	assert_int_equal(sp_ring_segment(), 1);
	assert_int_equal(again, 0);
}

#define THREADS 6
#define ROUNDS  3000
#define KINDS   400

struct worker {
	unsigned int index;
	uint32_t ids[KINDS]; /* that this thread got; 0: did not ask */
	unsigned int none;
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
		for (uint32_t k = 0; k < s.n; k++)
			lane->frames[k] = s.frames[k];
		id = sp_stacktab_intern(lane, &(struct sp_stack_walk){.n = s.n})
			     .id;
		sp_lane_give(lane);
		w->none += id == 0;
		w->ids[kind] = id;
	}
	return NULL;
}

/* Whatever id a thread got for a stack, the file knows it. */
TEST_BETWEEN(threads, NULL, agent_fixture_teardown)
{
	static struct worker workers[THREADS];
	const char *path = agent_fixture_open(MAX_FILE);
	pthread_t threads[THREADS];
	struct sp_profile *p;

	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		assert_int_equal(pthread_create(&threads[i], NULL, intern_many,
						&workers[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].none, 0);
	}
	p = load_whole_profile(path);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		struct model_stack s;

		stack_of_kind(kind, &s);
		for (unsigned int i = 0; i < THREADS; i++) {
			s.id = workers[i].ids[kind];
			if (s.id)
				check_in_profile(p, &s);
		}
	}
}

TEST_MAIN(agent_fixture_begin, agent_fixture_end)
