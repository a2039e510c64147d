/* SPDX-License-Identifier: MIT */
/* The live set compared with a plain array, and counted again from inside. */
#include "agent/file/livetable.h"
#include "base/rng.h"
#include "support/liveset_ops.h"
#include "support/test.h"

#define ADDRESSES 1000000u
#define LIVE_MOST 200000u

/* Without a set: in a program whose frees are not recorded. */
TEST(not_begun)
{
	struct sp_live old;

	liveset_check_clear();
	for (uint64_t a = 0; a < 1u << 20; a += 8)
		assert_false(sp_filter_may_have(pointer(a << 20 | a)));
	assert_int_equal(insert(0x1000, 1, &old), SP_LIVESET_FULL);
	assert_absent(0x1000);
	sp_liveset_reset(1);
	assert_false(sp_filter_may_have(NULL));
}

TEST(no_memory_to_begin)
{
	struct sp_live old;

	for (uint32_t maps = 0; maps < 3; maps++) {
		liveset_check_clear();
		liveset_check_allow_maps(maps);
		assert_false(sp_liveset_init());
		assert_false(sp_filter_may_have(pointer(0x1000)));
		assert_int_equal(insert(0x1000, 1, &old), SP_LIVESET_FULL);
	}
	liveset_check_allow_maps(UINT32_MAX);
	assert_true(sp_liveset_init());
	add(0x1000, 1);
	assert_taken(0x1000, 1);
}

TEST_BETWEEN(one, begin, end)
{
	struct sp_live old;

	assert_false(sp_filter_may_have(pointer(0x7f0000001010)));
	add(0x7f0000001010, 5);
	assert_sound(1);
	assert_taken(0x7f0000001010, 5);
	assert_absent(0x7f0000001010);
	assert_false(sp_filter_may_have(pointer(0x7f0000001010)));
	/* An address that comes back without having been freed. */
	add(0x7f0000001010, 6);
	assert_int_equal(insert(0x7f0000001010, 7, &old), SP_LIVESET_REPLACED);
	assert_sample(&old, 6);
	assert_sound(1);
	assert_taken(0x7f0000001010, 7);
	assert_sound(0);
}

static bool is_missing(uint64_t address, uint64_t id, uint32_t segment)
{
	struct sp_liveset_place place;

	return sp_liveset_is_missing(pointer(address), id, segment, &place);
}

/* What a segment has is known until the object goes, or is rewritten. */
TEST_BETWEEN(rewritten, begin, end)
{
	const uint64_t address = 0x7f0000001010;
	struct sp_liveset_place place;

	assert_false(is_missing(address, 5, 1));
	add(address, 5);
	for (uint32_t segment = 0; segment < 100; segment++) {
		assert_false(is_missing(address, 6, segment));
		assert_false(is_missing(address + 16, 5, segment));
		assert_true(sp_liveset_is_missing(pointer(address), 5, segment,
						  &place));
		assert_true(is_missing(address, 5, segment));
		sp_liveset_rewritten(&place, segment);
		assert_false(is_missing(address, 5, segment));
		assert_sound(1);
	}
	/* The filter grows meanwhile: neither is lost. */
	for (uint64_t a = 1; a <= LIVE_MOST; a++)
		add(0x10000000 + 16 * a, 5 + a);
	assert_false(is_missing(address, 5, 99));
	/* Of a word that has changed nothing is said. */
	sp_liveset_rewritten(&place, 100);
	assert_true(sp_liveset_is_missing(pointer(address), 5, 100, &place));
	assert_sound(1 + LIVE_MOST);
	for (uint64_t a = 1; a <= LIVE_MOST; a++)
		assert_taken(0x10000000 + 16 * a, 5 + a);
	assert_taken(address, 5);
	assert_sound(0);
	sp_liveset_rewritten(&place, 100);
	assert_absent(address);
	add(address, 7);
	assert_true(is_missing(address, 7, 99));
	/* The word is of another sample by now. */
	assert_true(sp_liveset_is_missing(pointer(address), 7, 99, &place));
	assert_taken(address, 7);
	add(address, 8);
	sp_liveset_rewritten(&place, 99);
	assert_taken(address, 8);
}

/* What a program may free that no allocator returned. */
TEST_BETWEEN(no_addresses, begin, end)
{
	static const uint64_t bad[] = {0, 1, 1ull << 56, UINT64_MAX,
				       0xffff800000000000};
	struct sp_live old;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_absent(bad[i]);
		assert_int_equal(insert(bad[i], 1, &old), SP_LIVESET_FULL);
		assert_absent(bad[i]);
	}
	/* The last of five levels of page tables, and odd ones. */
	add((1ull << 56) - 1, 1);
	add(2, 2);
	add(3, 3);
	assert_sound(3);
	assert_absent(1);
	assert_taken((1ull << 56) - 1, 1);
	assert_taken(2, 2);
	assert_taken(3, 3);
	assert_sound(0);
}

/* ---- beside an array ---- */

struct model {
	uint64_t ids[ADDRESSES]; /* 0: not there */
	uint64_t live;
	uint64_t last_id;
};

static struct model model;

static void model_insert(uint64_t i)
{
	struct sp_live old;
	enum sp_liveset_result r = insert(address_of(i), ++model.last_id, &old);

	if (model.ids[i]) {
		assert_int_equal(r, SP_LIVESET_REPLACED);
		assert_sample(&old, model.ids[i]);
	} else {
		assert_int_equal(r, SP_LIVESET_ADDED);
		model.live++;
	}
	model.ids[i] = model.last_id;
}

static void model_take(uint64_t i)
{
	if (!model.ids[i]) {
		assert_absent(address_of(i));
		return;
	}
	assert_taken(address_of(i), model.ids[i]);
	model.ids[i] = 0;
	model.live--;
}

/* Insertions and takes at random among the first n, in favour of insertions
 * (of 256) or takes. */
static void model_work(struct sp_rng *rng, uint64_t n, uint64_t steps,
		       unsigned int insertions)
{
	for (uint64_t s = 0; s < steps; s++) {
		uint64_t v = sp_rng_next(rng), i = (v >> 8) % n;

		if ((v & 255) >= insertions)
			model_take(i);
		else if (!model.ids[i] || v >> 60 == 0)
			model_insert(i);
	}
}

static void model_clear(void)
{
	memset(&model, 0, sizeof(model));
}

static void model_empty(void)
{
	for (uint64_t i = 0; i < ADDRESSES; i++)
		if (model.ids[i])
			model_take(i);
	assert_int_equal(model.live, 0);
}

TEST_BETWEEN(as_an_array, begin, end)
{
	static const uint64_t sizes[] = {10, 300, 2000, 9000, 60000, 150000};
	const size_t n_sizes = test_rounds(5, 6);
	struct sp_rng rng;

	model_clear();
	sp_rng_init(&rng, 41, 1);
	for (size_t i = 0; i < n_sizes; i++) {
		model_work(&rng, sizes[i], 4 * sizes[i], 200);
		assert_sound(model.live);
		model_work(&rng, sizes[i], sizes[i], 40);
		assert_sound(model.live);
	}
	model_empty();
	assert_int_equal(assert_sound(0).nonzero, 0);
}

/* ---- growth ---- */

static void assert_all_there(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		assert_true(sp_filter_may_have(pointer(address_of(i))));
}

/* Through every size of filter and table that 300,000 entries need. */
TEST_BETWEEN(growth, begin, end)
{
	uint64_t n = 0, step;
	struct liveset_check c = assert_sound(0);

	while (n < 300000) {
		const unsigned int table = c.table;

		for (step = 1 + n / 16; step; step--, n++)
			add(address_of(n), n + 1);
		c = assert_sound(n);
		if (c.table != table)
			assert_all_there(n);
		/* It grows when it has to, and not before; the move takes a
		 * piece of each insert. */
		assert_in_range(c.tables, 1, 2);
		if (n < 1000)
			continue;
		assert_in_range(c.counters, 3 * n, 33 * n);
		if (n > 30000) {
			assert_in_range(c.counters, 3 * n, 9 * n);
			assert_in_range(c.table_bytes, 27 * n,
					c.tables * 36 * n);
		}
	}
	assert_int_equal(c.sticky, 0);
	for (uint64_t i = 0; i < n; i++)
		assert_taken(address_of(i), i + 1);
	c = assert_sound(0);
	assert_int_equal(c.nonzero, 0);
}

/* What one insert does is bounded, however much is alive: no pause.  A table is
 * mapped, or eight buckets of 8 are moved, to the newest table, which is
 * written from end to end. */
TEST_BETWEEN(bounded_work, begin, end)
{
	struct liveset_work most = {0}, *w = &liveset_work;
	struct liveset_check c;
	uint64_t two_tables = 0;
	const uint64_t n = test_rounds(250000, 1000000);

	for (uint64_t i = 0; i < n; i++) {
		memset(w, 0, sizeof(*w));
		add(address_of(i), i + 1);
		assert_true(w->maps == 0 ||
			    (w->claims <= 2 && w->settled + w->released == 0));
		two_tables += w->claims > 1;
		if (w->maps > most.maps)
			most.maps = w->maps;
		if (w->claims > most.claims)
			most.claims = w->claims;
		if (w->settled > most.settled)
			most.settled = w->settled;
		if (w->released > most.released)
			most.released = w->released;
	}
	/* A table, and a generation of the filter. */
	assert_int_equal(most.maps, 2);
	assert_in_range(most.claims, 2, 1 + 8 * SP_LIVETABLE_SLOTS);
	assert_int_equal(most.settled, 2);
	/* The last buckets of a table have less than one window more. */
	assert_in_range(most.released, 16384,
			2 * 16384 + SP_LIVETABLE_WINDOW *
					    sizeof(struct sp_livetable_bucket));
	/* And the moves are done before the next one is due. */
	assert_in_range(two_tables, n / 20, n / 4);
	c = assert_sound(n);
	assert_in_range(c.tables, 1, 2);
}

/* Buckets that a take, and a look for what is not there, come by: one, but for
 * few. */
TEST_BETWEEN(one_bucket, begin, end)
{
	static const uint64_t sizes[] = {10,    100,    1000,   10000,
					 26000, 100000, 1000000};
	const size_t n_sizes = test_rounds(6, 7);
	struct sp_live live;
	uint64_t n = 0;

	for (size_t i = 0; i < n_sizes; i++) {
		const uint64_t part = sizes[i] < 1000 ? sizes[i] : 1000;
		uint64_t found, absent, unsure = 0, size = sizes[i];

		/* Not in the middle of a move, when there are two tables. */
		do {
			for (; n < size; n++)
				add(address_of(n), n + 1);
			size += size / 50;
		} while (assert_sound(n).tables > 1);
		size = n;
		memset(&liveset_work, 0, sizeof(liveset_work));
		for (uint64_t k = 0; k < part; k++) {
			const void *p = pointer(address_of(size + 7 * k));

			unsure += sp_liveset_may_have(p);
			liveset_work.last_bucket = NULL;
			sp_liveset_take(p, &live);
		}
		absent = liveset_work.buckets;
		memset(&liveset_work, 0, sizeof(liveset_work));
		for (uint64_t k = 0; k < part; k++) {
			liveset_work.last_bucket = NULL;
			assert_taken(address_of(k * (size / part)),
				     k * (size / part) + 1);
		}
		found = liveset_work.buckets;
		print_message("%8lu alive: %.3f buckets for a take, %.3f for "
			      "one of nothing, %lu of %lu not sure\n",
			      size, (double)found / (double)part,
			      (double)absent / (double)part, unsure, part);
		assert_in_range(found, part, part * 6 / 5);
		assert_in_range(absent, part, part * 12 / 10);
		assert_in_range(unsure, 0, part * 12 / 100);
		for (uint64_t k = 0; k < part; k++)
			add(address_of(k * (size / part)),
			    k * (size / part) + 1);
	}
}

/* Addresses come and go, as many as ever: the set does not grow for that, and
 * what has passed a bucket does not stay. */
TEST_BETWEEN(coming_and_going, begin, end)
{
	const uint64_t live = 3000;
	struct liveset_check c;
	uint64_t n = 0;
	unsigned int table;

	for (; n < live; n++)
		add(address_of(n), n + 1);
	table = assert_sound(live).table;
	for (; n < 200 * live; n++) {
		assert_taken(address_of(n - live), n - live + 1);
		add(address_of(n), n + 1);
	}
	c = assert_sound(live);
	/* Some homes are fuller than others: it may grow by two steps. */
	assert_in_range(c.table, table, table + 2);
	assert_int_equal(c.tables, 1);
	for (uint64_t i = n - live; i < n; i++)
		assert_taken(address_of(i), i + 1);
	c = assert_sound(0);
	assert_int_equal(c.passed, 0);
	assert_int_equal(c.nonzero, 0);
}

/* The next address, behind *last, whose hash has `want` in these bits. */
static uint64_t next_alike(uint64_t *last, uint64_t bits, uint64_t want)
{
	do
		*last += 16;
	while ((sp_livetable_hash(*last) & bits) != want);
	return *last;
}

/* More addresses of one tag have passed a bucket than its count can say: none
 * is lost when some of them go. */
TEST_BETWEEN(passed_by_many, begin, end)
{
	const uint64_t home = 63ull << 58, tag = 15u << 8;
	uint64_t same[60], last = 0;
	struct liveset_check c;

	for (size_t i = 0; i < 60; i++) {
		same[i] = next_alike(&last, home | tag, tag);
		add(same[i], i + 1);
	}
	for (size_t i = 0; i < 60; i++) {
		c = assert_sound(60 - i);
		assert_int_equal(c.tables, 1);
		assert_taken(same[i], i + 1);
	}
	assert_sound(0);
}

/* More addresses of one home than all buckets of its window have places, in
 * tables of any size: a move that finds no room goes on in the next table. */
TEST_BETWEEN(crowded, begin, end)
{
	static uint64_t same[1100];
	const size_t n = sizeof(same) / sizeof(same[0]);
	uint64_t last = 0;
	struct liveset_check c;

	for (size_t i = 0; i < n; i++) {
		same[i] = next_alike(&last, 4095ull << 52, 0);
		add(same[i], i + 1);
	}
	c = assert_sound(n);
	assert_in_range(c.tables, 2, 8);
	for (size_t i = 0; i < n; i++)
		assert_taken(same[i], i + 1);
	assert_sound(0);
}

/* Without memory for a larger filter there are more hits; without memory for
 * the table, entries are refused, and nothing that is there suffers. */
TEST_BETWEEN(no_memory_to_grow, begin, end)
{
	struct liveset_check c;
	struct sp_live old;
	uint64_t n = 0;

	liveset_check_allow_maps(0);
	while (insert(address_of(n), n + 1, &old) == SP_LIVESET_ADDED)
		n++;
	c = assert_sound(n);
	assert_int_equal(c.tables, 1);
	assert_int_equal(c.table, 0);
	assert_in_range(n, 512 * 7 / 8, c.table_bytes / 24);
	assert_taken(address_of(0), 1);
	add(address_of(0), 1);
	liveset_check_allow_maps(UINT32_MAX);
	add(address_of(n), n + 1);
	n++;
	c = assert_sound(n);
	assert_int_equal(c.tables, 2);
	for (uint64_t i = 0; i < n; i++)
		assert_taken(address_of(i), i + 1);
	assert_sound(0);
}

/* A counter that was at its maximum stays there: hits, but no harm. */
TEST_BETWEEN(sticky_counter, begin, end)
{
	static uint64_t same[300];
	struct liveset_check c;
	size_t n = 0;

	for (uint64_t a = 0x10000; n < 300; a += 16)
		if (liveset_check_index(a, 13) == 77)
			same[n++] = a;
	for (size_t i = 0; i < n; i++)
		add(same[i], i + 1);
	c = assert_sound(n);
	assert_int_equal(c.counters, 1 << 13);
	assert_int_equal(c.sticky, 1);
	for (size_t i = 0; i < n; i++)
		assert_taken(same[i], i + 1);
	c = assert_sound(0);
	assert_int_equal(c.sticky, 1);
	assert_int_equal(c.nonzero, 1);
	for (size_t i = 0; i < n; i++) {
		assert_true(sp_filter_may_have(pointer(same[i])));
		assert_absent(same[i]);
	}
}

/* ---- false positives ---- */

enum family { RANDOM, SEQUENCE, PAGES, HUGE_PAGES };

/* The k-th address, of a megabyte of megabytes. */
static uint64_t family_address(enum family family, uint64_t k)
{
	struct sp_rng rng;
	uint64_t v;

	switch (family) {
	case SEQUENCE:
		return 0x555555559010 + 32 * k;
	case PAGES:
		return 0x7f0000000000 + (k << 12);
	case HUGE_PAGES:
		return 0x100000000000 + (k << 21);
	default:
		sp_rng_init(&rng, 42, k);
		v = sp_rng_next(&rng);
		return v >> 17 & ~15ull;
	}
}

/*
 * Of all addresses of a family one in 16 is in the set; how many of the others
 * hit?  Fewer than `most` of 1000 are expected; with n queries the bound is
 * five standard errors higher (3 in 10 million to fail by accident for random
 * indices).
 */
static void check_false_positives(enum family family, uint64_t live,
				  uint64_t most)
{
	uint64_t hits = 0, n = 0, limit;
	struct sp_live taken;

	for (uint64_t k = 0; k < live; k++)
		add(family_address(family, 16 * k + k % 15), k + 1);
	for (uint64_t k = 0; k < 16 * live; k++) {
		const void *p = pointer(family_address(family, k));

		if (k % 16 == k / 16 % 15)
			continue;
		n++;
		hits += sp_filter_may_have(p);
	}
	limit = n * most / 1000 +
		(uint64_t)(5 * 0.45 * __builtin_sqrt((double)n));
	if (live < 1000)
		limit += n / 50; /* few counters: regular by accident */
	assert_in_range(hits, n / 100, limit);
	for (uint64_t k = 0; k < live; k++)
		assert_true(sp_liveset_take(
			pointer(family_address(family, 16 * k + k % 15)),
			&taken));
}

TEST_BETWEEN(false_positives, begin, end)
{
	/* The most for each of the small tables, and for two generations. */
	static const uint64_t live[] = {416, 1664, 12000, 150000};
	static const uint64_t most[] = {50, 50, 118, 284};
	const size_t n = sizeof(live) / sizeof(live[0]);
	struct liveset_check c;

	for (int family = RANDOM; family <= HUGE_PAGES; family++) {
		begin(test_state);
		for (size_t i = 0; i < n; i++)
			check_false_positives((enum family)family, live[i],
					      most[i]);
		c = assert_sound(0);
		assert_int_equal(c.counters, 1 << 19);
		assert_in_range(c.table_bytes + c.counters, 0,
				c.tables * 36 * live[n - 1]);
	}
}

TEST_MAIN(NULL, NULL)
