/* SPDX-License-Identifier: MIT */
/* Ranges of addresses compared with a list of their bytes, one by one: random
 * cuts and additions, with more or less room, and the pieces that are told of.
 */
#include "base/rng.h"
#include "base/spans.h"
#include "support/test.h"

#define BYTES  200
#define ROOM   40
#define ROUNDS 20000

/* Of each address: the number of the call that it is of; 0: none. */
static uint64_t naive[BYTES];
static struct sp_span places[ROOM];
static uint64_t told[BYTES];

static void count_piece(void *arg, const struct sp_span *piece)
{
	const uint64_t *before = arg;

	assert_true(piece->start < piece->end && piece->end <= BYTES);
	assert_true(piece->number < *before);
	assert_int_equal(piece->stack, (uint32_t)piece->number);
	for (uint64_t i = piece->start; i < piece->end; i++) {
		assert_true(naive[i] == piece->number);
		assert_true(!told[i]);
		told[i] = 1;
	}
}

static size_t count_runs(void)
{
	size_t n = 0;

	for (size_t i = 0; i < BYTES; i++)
		n += naive[i] && (!i || naive[i] != naive[i - 1]);
	return n;
}

/* Neighbours of one number cannot be: what was cut out has gone. */
static void check_all(const struct sp_spans *spans)
{
	uint64_t at = 0;

	assert_int_equal(spans->n, count_runs());
	for (size_t k = 0; k < spans->n; k++) {
		const struct sp_span *s = &spans->at[k];

		assert_true(at <= s->start && s->start < s->end);
		for (; at < s->start; at++)
			assert_true(naive[at] == 0);
		for (; at < s->end; at++)
			assert_true(naive[at] == s->number);
	}
	for (; at < BYTES; at++)
		assert_true(naive[at] == 0);
}

static void check_find(const struct sp_spans *spans, uint64_t address)
{
	size_t i = 0;

	while (i < spans->n && spans->at[i].end <= address)
		i++;
	assert_int_equal(sp_spans_find(spans, address), i);
}

/* What stays of each is in one piece less or more than before. */
static void cut_both(struct sp_spans *spans, uint64_t start, uint64_t end,
		     uint64_t number)
{
	const size_t room_before = spans->room - spans->n;
	uint64_t below = start ? naive[start - 1] : 0;
	uint64_t above = end < BYTES ? naive[end] : 0;
	bool splits = below && below == above && below < number;
	bool fits;

	/* One piece all through, which nothing later interrupts. */
	for (uint64_t i = start; i < end; i++)
		splits &= naive[i] == below;
	memset(told, 0, sizeof(told));
	fits = sp_spans_cut(spans, start, end, number, count_piece, &number);
	assert_int_equal(fits, !splits || room_before);
	for (uint64_t i = start; i < end; i++) {
		assert_int_equal(told[i], naive[i] && naive[i] < number);
		if (naive[i] < number)
			naive[i] = 0;
	}
	for (uint64_t i = end; !fits && i < BYTES && naive[i] == below; i++)
		naive[i] = 0;
}

static void put_both(struct sp_spans *spans, uint64_t start, uint64_t end,
		     uint64_t number)
{
	const struct sp_span s = {.start = start,
				  .end = end,
				  .number = number,
				  .stack = (uint32_t)number};
	bool is_free = spans->n < spans->room;

	for (uint64_t i = start; i < end; i++)
		is_free &= !naive[i];
	assert_int_equal(sp_spans_put(spans, &s), is_free);
	for (uint64_t i = start; is_free && i < end; i++)
		naive[i] = number;
}

static void check_rounds(size_t room, uint64_t longest)
{
	struct sp_spans spans = {places, 0, room};
	struct sp_rng rng;

	memset(naive, 0, sizeof(naive));
	sp_rng_init(&rng, room, longest);
	for (uint64_t number = 1; number <= ROUNDS; number++) {
		const uint64_t start = sp_rng_next(&rng) % BYTES;
		const uint64_t most = BYTES - start;
		const uint64_t n = 1 + sp_rng_next(&rng) % longest;
		const uint64_t end = start + (n < most ? n : most);
		/* At times a call that is told of late. */
		const uint64_t late = sp_rng_next(&rng) % 8 ? 0 : 20;

		if (sp_rng_next(&rng) % 2)
			put_both(&spans, start, end, number);
		else
			cut_both(&spans, start, end,
				 number > late ? number - late : 1);
		check_all(&spans);
		check_find(&spans, sp_rng_next(&rng) % (BYTES + 10));
	}
}

TEST(random_calls)
{
	check_rounds(ROOM, 10);
	check_rounds(ROOM, 60);
	check_rounds(5, 30);
	check_rounds(1, 200);
	check_rounds(0, 20);
}

TEST(ends_of_addresses)
{
	struct sp_spans spans = {places, 0, ROOM};
	const struct sp_span all = {.start = 0, .end = UINT64_MAX, .number = 1};

	assert_true(sp_spans_put(&spans, &all));
	assert_true(sp_spans_cut(&spans, 5, UINT64_MAX - 5, 2, NULL, NULL));
	assert_int_equal(spans.n, 2);
	assert_true(spans.at[0].end == 5);
	assert_true(spans.at[1].start == UINT64_MAX - 5);
	assert_true(sp_spans_cut(&spans, 0, UINT64_MAX, 2, NULL, NULL));
	assert_int_equal(spans.n, 0);
}

TEST_MAIN(NULL, NULL)
