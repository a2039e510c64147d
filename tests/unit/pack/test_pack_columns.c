/* SPDX-License-Identifier: MIT */
/* Chunks of events hold what a naive writer of docs/format.md would put there,
 * byte for byte. */
#include "random_events.h"
#include "support/format_model.h"
#include "support/test.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

static uint64_t allocated[EVENT_THREADS];

static uint64_t thread_of(const struct event *e)
{
	return e->is_free ? e->free.thread : e->sample.thread;
}

/* ---- the naive writer, which keeps all times ---- */

static struct {
	struct model_bytes column[SP_EVENTS_COLUMNS];
	uint64_t as_expected[SP_EVENTS_COLUMNS];
	uint64_t n_sites;
	uint64_t site[EVENT_STACKS][EVENT_ENTRIES]; /* 1 + number */
	uint64_t samples[EVENT_STACKS * EVENT_ENTRIES];
	uint64_t next_free[EVENT_STACKS * EVENT_ENTRIES];
	uint64_t thread, id, period, time_ns;
} naive;

static bool is_exception(enum sp_events_column c, bool as_expected)
{
	if (as_expected) {
		naive.as_expected[c]++;
		return false;
	}
	model_varint(&naive.column[c], naive.as_expected[c]);
	naive.as_expected[c] = 0;
	return true;
}

static void exception(enum sp_events_column c, uint64_t is, uint64_t expected)
{
	if (is_exception(c, is == expected))
		model_varint(&naive.column[c], is);
}

static void put_difference(enum sp_events_column c, uint64_t a, uint64_t b)
{
	model_difference(&naive.column[c], a, b);
}

static void naive_sample(struct event *e)
{
	const struct sp_record_sample *r = &e->sample;
	uint64_t *site = &naive.site[e->stack][e->entry];

	if (!*site) {
		*site = ++naive.n_sites;
		model_varint(&naive.column[SP_COLUMN_SITE], r->stack);
		model_varint(&naive.column[SP_COLUMN_SITE], r->entry);
	}
	e->site = *site - 1;
	e->number = naive.samples[e->site]++;
	model_varint(&naive.column[SP_COLUMN_WHAT], 2 * e->site);
	model_varint(&naive.column[SP_COLUMN_SIZE], r->size_bytes);
	if (is_exception(SP_COLUMN_ID, r->id == naive.id + 1))
		put_difference(SP_COLUMN_ID, r->id, naive.id + 1);
	naive.id = r->id;
	exception(SP_COLUMN_PERIOD, r->period_bytes, naive.period);
	naive.period = r->period_bytes;
	exception(SP_COLUMN_OFFSET, r->offset_bytes, 0);
	allocated[e->thread] += r->size_bytes;
}

static void naive_free(const struct event *e)
{
	const struct sp_record_free *r = &e->free;
	const uint64_t site = e->of->site, number = e->of->number;
	const uint64_t grown = allocated[e->of->thread] - e->of->allocated;
	const bool is_own = e->thread == e->of->thread;
	bool as_expected = !r->flags && r->has_age == is_own;

	model_varint(&naive.column[SP_COLUMN_WHAT], 2 * site + 1);
	if (is_exception(SP_COLUMN_ORDER, number == naive.next_free[site]))
		put_difference(SP_COLUMN_ORDER, number, naive.next_free[site]);
	naive.next_free[site] = number + 1;
	if (is_own && r->age_bytes != grown)
		as_expected = false;
	if (!is_exception(SP_COLUMN_AGE, as_expected))
		return;
	model_varint(&naive.column[SP_COLUMN_AGE],
		     (r->has_age ? 1 : 0) + (r->flags ? 2 : 0));
	if (r->has_age)
		put_difference(SP_COLUMN_AGE, r->age_bytes, grown);
}

static uint64_t step_hash(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash(uint64_t h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;

		memcpy(&word, p + i, n - i < 8 ? n - i : 8);
		h = step_hash(h, word);
	}
	return h;
}

/* The chunk as it should be, to the last zero. */
static void same_chunk(size_t i, const struct sp_events_header *said)
{
	static uint8_t want[CHUNK];
	struct sp_chunk_header head = {SP_FORMAT_CHUNK_MAGIC, 4,
				       EVENT_FIRST_CHUNK + i, 0};
	struct sp_events_header h = {.first = said->first,
				     .n_events = said->n_events,
				     .is_last = i + 1 == n_chunks};
	const size_t at = sizeof(head) + sizeof(h);
	size_t used = 0;

	if (h.is_last) {
		h.unmatched_frees = EVENT_UNMATCHED;
		h.unfinished = EVENT_UNFINISHED;
	}
	memset(want, 0, CHUNK);
	model_seal(EVENT_FILE_ID, 4, &head, sizeof(head));
	memcpy(want, &head, sizeof(head));
	for (int c = 0; c < SP_EVENTS_COLUMNS; c++) {
		const struct model_bytes *b = &naive.column[c];

		h.column_bytes[c] = (uint32_t)b->n;
		assert_true(at + used + b->n <= CHUNK);
		if (b->n)
			memcpy(want + at + used, b->data, b->n);
		used += b->n;
	}
	h.check = step_hash(step_hash(0, EVENT_FILE_ID), 7);
	h.check = hash(h.check, (const uint8_t *)&h, sizeof(h) - 8);
	h.check = hash(h.check, want + at, used);
	memcpy(want + sizeof(head), &h, sizeof(h));
	assert_memory_equal(chunks + i * CHUNK, want, CHUNK);
}

static void same_as_naive(void)
{
	size_t at = 0;

	memset(&naive, 0, sizeof(naive));
	memset(allocated, 0, sizeof(allocated));
	for (size_t i = 0; i < n_chunks; i++) {
		const struct sp_events_header h = chunk_header(i);

		assert_int_equal(h.first, at);
		assert_true(h.n_events <= n_events - at);
		memset(naive.as_expected, 0, sizeof(naive.as_expected));
		for (int c = 0; c < SP_EVENTS_COLUMNS; c++)
			naive.column[c].n = 0;
		for (size_t k = 0; k < h.n_events; k++) {
			struct event *e = &events[at++];

			model_varint(&naive.column[SP_COLUMN_TIME], 1);
			model_varint(&naive.column[SP_COLUMN_TIME],
				     event_time(e) - naive.time_ns);
			naive.time_ns = event_time(e);
			exception(SP_COLUMN_THREAD, thread_of(e), naive.thread);
			naive.thread = thread_of(e);
			if (e->is_free)
				naive_free(e);
			else
				naive_sample(e);
		}
		same_chunk(i, &h);
	}
	assert_int_equal(at, n_events);
	for (int c = 0; c < SP_EVENTS_COLUMNS; c++)
		model_done(&naive.column[c]);
}

/* ---- the tests ---- */

TEST(columns)
{
	events_seed(21);
	for (size_t i = 0; i < 30; i++) {
		make_events(1 + events_below(9000), 1ull << events_below(12),
			    i % 3, i % 2 ? UINT64_MAX / 2 : events_below(3),
			    event_steps[i % EVENT_STEPS]);
		pack_events(0, NULL, 0);
		same_as_naive();
	}
}

TEST(many)
{
	events_seed(22);
	make_events(40000, 5000, EVENT_ANY, 0, event_step_dense);
	pack_events(0, NULL, 0);
	assert_true(n_chunks > 10);
	same_as_naive();
}

TEST(empty)
{
	n_events = 0;
	pack_events(0, NULL, 0);
	assert_int_equal(n_chunks, 1);
	same_as_naive();
}

static int free_all(void **state)
{
	(void)state;
	events_free();
	return 0;
}

TEST_MAIN(NULL, free_all)
