/* SPDX-License-Identifier: MIT */
/* Groups of samples and their classes compared with plain lists. */
#include "base/rng.h"
#include "read/sample_groups.h"
#include "support/test.h"

#define MODEL 4000

static struct model {
	struct sp_sample_groups_key key;
	uint32_t class;
	uint64_t samples, tail_bytes, lived_ns;
} model[MODEL];
static size_t n_model;
static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

static int same(const struct sp_sample_groups_key *a,
		const struct sp_sample_groups_key *b)
{
	return a->size_bytes == b->size_bytes &&
	       a->period_bytes == b->period_bytes && a->stack == b->stack &&
	       a->thread == b->thread && a->entry == b->entry;
}

static void model_add(const struct sp_sample_groups_key *key, uint32_t class,
		      uint64_t tail_bytes, uint64_t lived_ns)
{
	struct model *m = model;

	while (m < model + n_model &&
	       !(same(&m->key, key) && m->class == class))
		m++;
	if (m == model + n_model) {
		assert_true(n_model < MODEL);
		n_model++;
		*m = (struct model){.key = *key, .class = class};
	}
	m->samples++;
	m->tail_bytes += tail_bytes;
	m->lived_ns += lived_ns;
}

/* Each key differs from some other in one part only. */
static struct sp_sample_groups_key draw_key(void)
{
	return (struct sp_sample_groups_key){
		.size_bytes = 1ull << below(3) * 20,
		.period_bytes = 1 + below(2),
		.stack = (uint32_t)(below(40) ? below(5) : 100000 + below(3)),
		.thread = (uint32_t)(below(2) ? UINT32_MAX : below(2)),
		.entry = (uint32_t)below(2)};
}

TEST(same_as_lists)
{
	FREED_BY(sp_sample_groups_done) struct sp_sample_groups g = {.key = 3};

	sp_rng_init(&rng, 5, 0);
	for (unsigned int i = 0; i < 30000; i++) {
		const struct sp_sample_groups_key key = draw_key();
		const uint32_t class =
			(uint32_t)below(2) << 31 | (uint32_t)below(3);
		const uint64_t tail = below(100), lived = below(1000);
		const uint32_t group = sp_sample_groups_find(&g, &key);

		assert_true(group < g.n_groups);
		assert_true(same(&g.groups[group].key, &key));
		assert_int_equal(sp_sample_groups_find(&g, &key), group);
		assert_int_equal(
			sp_sample_groups_add(&g, group, class, tail, lived), 0);
		model_add(&key, class, tail, lived);
	}
	/* In the order in which they came, and each once. */
	assert_int_equal(g.n_classes, n_model);
	for (size_t i = 0; i < n_model; i++) {
		const struct sp_sample_groups_class *c = &g.classes[i];

		assert_true(same(&g.groups[c->group].key, &model[i].key));
		assert_int_equal(c->class, model[i].class);
		assert_int_equal(c->samples, model[i].samples);
		assert_int_equal(c->tail_bytes, model[i].tail_bytes);
		assert_int_equal(c->lived_ns, model[i].lived_ns);
	}
	for (size_t i = 0; i < g.n_groups; i++)
		for (size_t k = 0; k < i; k++)
			assert_false(same(&g.groups[i].key, &g.groups[k].key));
}

/* Sums that only a forged file has stop at the end. */
TEST(huge)
{
	const struct sp_sample_groups_key key = {.size_bytes = 1,
						 .period_bytes = 1};
	FREED_BY(sp_sample_groups_done) struct sp_sample_groups g = {.key = 3};
	uint32_t group;

	group = sp_sample_groups_find(&g, &key);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sp_sample_groups_add(&g, group, 0,
						      UINT64_MAX - 1,
						      UINT64_MAX - 1),
				 0);
	assert_true(g.classes[0].tail_bytes == UINT64_MAX);
	assert_true(g.classes[0].lived_ns == UINT64_MAX);
	assert_int_equal(g.classes[0].samples, 2);
}

TEST_MAIN(NULL, NULL)
