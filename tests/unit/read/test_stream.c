/* SPDX-License-Identifier: MIT */
/* Samples and their frees, which come in any order, compared with a plain
 * array. */
#include "base/rng.h"
#include "read/order.h"
#include "read/stream.h"
#include "support/test.h"

#define THREADS 10

static struct sp_thread_info threads[THREADS];
static struct sp_profile profile;
static struct sp_sinks sinks;
static const struct sp_plan plan = {.every_sample = true};
static struct sp_stream *stream; /* NULL: nothing came yet */

static void begin(void)
{
	if (stream)
		return;
	profile = (struct sp_profile){.has_frees = true,
				      .period_bytes = 4096,
				      .thread_infos = threads,
				      .n_thread_infos = THREADS};
	assert_int_equal(sp_sinks_init(&sinks, &profile, &plan), 0);
	stream = sp_stream_new(&profile, &sinks, 0, 0, false);
	assert_non_null(stream);
}

static void add(uint64_t id, uint64_t born_ns)
{
	struct sp_sample s = {
		.id = id,
		.born_ns = born_ns,
		.size_bytes = 1 + id % 1000,
		.period_bytes = 4096,
		.thread = 7,
		/* What is said here of the end means nothing. */
		.freed_ns = 5,
		.age_bytes = 5,
		.freed_by = 5,
		.free_missed = true,
	};

	begin();
	assert_int_equal(sp_stream_sample(stream, &s, 0), 0);
}

static void add_free(uint64_t id, uint64_t time_ns, uint64_t age_bytes)
{
	struct sp_stream_free event = {
		.id = id,
		.time_ns = time_ns,
		.age_bytes = age_bytes,
		.thread = 9,
	};

	begin();
	assert_int_equal(sp_stream_free(stream, &event), 0);
}

/* The samples, for the caller to free. */
static struct sp_sample *join(size_t want_n, uint64_t want_unmatched)
{
	begin();
	assert_int_equal(sp_stream_last(stream), 0);
	assert_int_equal(sp_stream_pass(stream, UINT64_MAX), 0);
	assert_int_equal(sp_stream_end(stream), 0);
	assert_false(sp_stream_is_late(stream));
	sp_stream_destroy(stream);
	sp_sinks_done(&sinks);
	stream = NULL;
	assert_int_equal(profile.n_samples, want_n);
	assert_int_equal(profile.unmatched_frees, want_unmatched);
	assert_int_equal(profile.n_groups, 0);
	free(profile.groups);
	return profile.samples;
}

static void is_alive(const struct sp_sample *s)
{
	assert_int_equal(s->freed_ns, SP_NEVER);
	assert_int_equal(s->age_bytes, SP_UNKNOWN);
	assert_int_equal(s->freed_by, UINT32_MAX);
	assert_false(s->free_missed);
}

TEST(none)
{
	free(join(0, 0));
	add_free(1, 1, 1);
	free(join(0, 1));
}

TEST(one)
{
	struct sp_sample *all;

	add_free(3, 50, 12);
	add(3, 40);
	all = join(1, 0);
	assert_int_equal(all[0].freed_ns, 50);
	assert_int_equal(all[0].age_bytes, 12);
	assert_int_equal(all[0].freed_by, 9);
	assert_int_equal(all[0].thread, 7);
	assert_int_equal(all[0].size_bytes, 4);
	assert_false(all[0].free_missed);
	free(all);

	add(3, 40);
	all = join(1, 0);
	is_alive(all);
	free(all);
}

/* Ids between, before and behind those that are there. */
TEST(holes)
{
	static const uint64_t ids[] = {5, 6, 9, 1ull << 60, UINT64_MAX};
	static const uint64_t none[] = {0,
					1,
					4,
					7,
					8,
					10,
					1ull << 59,
					(1ull << 60) + 1,
					UINT64_MAX - 1};
	FREED struct sp_sample *all;

	for (size_t i = 0; i < 5; i++)
		add(ids[4 - i], 10);
	for (size_t i = 0; i < 9; i++)
		add_free(none[i], 20, 0);
	for (size_t i = 0; i < 5; i++)
		add_free(ids[i], 30 + i, 0);
	all = join(5, 9);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(all[i].id, ids[i]);
		assert_int_equal(all[i].freed_ns, 30 + i);
	}
}

/* What only a forged file has: an id twice, a free before the birth, a time
 * that means never. */
TEST(odd)
{
	FREED struct sp_sample *all;

	add(2, 100);
	add(1, 100);
	add(2, 90);
	add_free(1, 99, 0);
	add_free(2, SP_NEVER - 1, 0); /* as the latest that there is */
	all = join(2, 0);
	assert_int_equal(all[0].freed_ns, 100);
	assert_int_equal(all[1].born_ns, 90);
	assert_int_equal(all[1].freed_ns, SP_EVENT_LAST_NS);
}

/* Of two frees of one sample the earlier is meant, wherever it stands. */
TEST(twice)
{
	FREED struct sp_sample *all;

	for (uint64_t id = 1; id <= 2; id++) {
		add(id, 10);
		add_free(id, id == 1 ? 20 : 30, id);
		add_free(id, id == 1 ? 30 : 20, id + 2);
	}
	all = join(2, 2);
	assert_int_equal(all[0].freed_ns, 20);
	assert_int_equal(all[0].age_bytes, 1);
	assert_int_equal(all[1].freed_ns, 20);
	assert_int_equal(all[1].age_bytes, 4);
}

#define IDS 3000u

/* Random files: nearly ordered or not at all, with few or many holes. */
static void check_random(struct sp_rng *rng, unsigned int holes_percent,
			 bool shuffled)
{
	static uint64_t born[IDS + 1], freed[IDS + 1];
	uint64_t n = 0, unmatched = 0, at = 0;
	FREED struct sp_sample *all;

	for (uint64_t i = 0; i < IDS; i++) {
		/* 1777 and 3000 have no common divisor. */
		uint64_t id = 1 + (shuffled ? i * 1777 % IDS : i);
		bool is_freed = sp_rng_next(rng) % 2;

		born[id] = 0;
		freed[id] =
			is_freed ? 1000 + sp_rng_next(rng) % 1000 : SP_NEVER;
		if (is_freed && i % 2)
			add_free(id, freed[id], id);
		if (sp_rng_next(rng) % 100 >= holes_percent) {
			born[id] = 1 + sp_rng_next(rng) % 999;
			add(id, born[id]);
			n++;
		} else {
			unmatched += is_freed;
		}
		if (is_freed && i % 2 == 0)
			add_free(id, freed[id], id);
	}
	all = join(n, unmatched);
	for (uint64_t id = 1; id <= IDS; id++) {
		if (!born[id])
			continue;
		assert_int_equal(all[at].id, id);
		assert_int_equal(all[at].born_ns, born[id]);
		assert_int_equal(all[at].freed_ns, freed[id]);
		if (freed[id] == SP_NEVER)
			is_alive(&all[at]);
		else
			assert_int_equal(all[at].age_bytes, id);
		at++;
	}
}

TEST(random)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 12, 1);
	for (unsigned int holes = 0; holes < 100; holes += 9) {
		check_random(&rng, holes, false);
		check_random(&rng, holes, true);
	}
}

/* Frees have addresses: of two objects at one, of one that was no sample, of
 * none, and one that is missing. */
TEST(addresses)
{
	static const struct {
		uint64_t id; /* 0: a free */
		uint64_t time_ns;
		uint64_t address;
	} records[] = {
		{4, 40, 0x10}, {0, 30, 0x10}, {1, 10, 0x10}, {0, 35, 0x20},
		{2, 20, 0x30}, {3, 31, 0x30}, {0, 5, 0x10},
	};
	FREED struct sp_sample *all;

	begin();
	profile.has_addresses = true;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		const struct sp_sample s = {.id = records[i].id,
					    .born_ns = records[i].time_ns,
					    .freed_ns = SP_NEVER,
					    .size_bytes = 100 + records[i].id,
					    .period_bytes = 1,
					    .age_bytes = SP_UNKNOWN,
					    .thread = 9,
					    .freed_by = UINT32_MAX};

		if (s.id)
			assert_int_equal(sp_stream_sample(stream, &s,
							  records[i].address),
					 0);
		else
			add_free(records[i].address, records[i].time_ns, 77);
	}
	all = join(4, 0);
	assert_int_equal(all[0].freed_ns, 30);
	assert_int_equal(all[0].freed_by, 9);
	assert_int_equal(all[0].age_bytes, 102);
	assert_int_equal(all[1].freed_ns, 31);
	assert_int_equal(all[1].freed_by, UINT32_MAX);
	assert_true(all[1].free_missed && all[1].age_bytes == SP_UNKNOWN);
	is_alive(&all[2]);
	is_alive(&all[3]);
}

TEST_MAIN(NULL, NULL)
