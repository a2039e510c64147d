/* SPDX-License-Identifier: MIT */
/*
 * Random samples and frees to chunks of columns and back: every field as it
 * was, rounded times in order and on their side of every moment, also at
 * moments a nanosecond apart; wrong orders refused.
 */
#include <errno.h>

#include "base/array.h"
#include "random_events.h"
#include "support/test.h"

#define CHUNK   SP_FORMAT_CHUNK_BYTES
#define MOMENTS 60

/* ---- and back ---- */

/* Within a tick, and on the same side of every moment. */
static void same_time(uint64_t got, uint64_t want, uint64_t tick_ns,
		      const uint64_t *moments, size_t n_moments)
{
	const uint64_t off = got < want ? want - got : got - want;

	assert_true(tick_ns ? off < tick_ns : !off);
	for (size_t i = 0; i < n_moments; i++)
		if ((got < moments[i]) != (want < moments[i]))
			fail_msg("%llu, but %llu, of %llu",
				 (unsigned long long)got,
				 (unsigned long long)want,
				 (unsigned long long)moments[i]);
}

static void same_free(const struct sp_record_free *got,
		      const struct sp_record_free *want)
{
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->thread, want->thread);
	assert_int_equal(got->flags, want->flags);
	assert_int_equal(got->has_age, want->has_age);
	assert_int_equal(got->age_bytes, want->age_bytes);
}

/* All but the time. */
static void same_event(const struct sp_decoded *d, const struct event *e)
{
	const struct sp_record_sample *got = &d->u.sample, *want = &e->sample;

	assert_int_equal(d->type,
			 e->is_free ? SP_RECORD_FREE : SP_RECORD_SAMPLE);
	if (e->is_free) {
		same_free(&d->u.free, &e->free);
		return;
	}
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->address, 0);
	assert_int_equal(got->size_bytes, want->size_bytes);
	assert_int_equal(got->offset_bytes, want->offset_bytes);
	assert_int_equal(got->period_bytes, want->period_bytes);
	assert_int_equal(got->stack, want->stack);
	assert_int_equal(got->thread, want->thread);
	assert_int_equal(got->entry, want->entry);
	assert_false(got->is_again);
}

static void same_back(uint64_t tick_ns, const uint64_t *moments,
		      size_t n_moments)
{
	struct sp_unpacker *u = sp_unpacker_new(EVENT_FILE_ID);
	uint64_t frees = 1, unfinished = 1, last_ns = 0;
	size_t at = 0;

	assert_non_null(u);
	for (size_t i = 0; i < n_chunks; i++) {
		struct sp_decoded d;
		int r;

		assert_false(sp_unpack_is_complete(u, &frees, &unfinished));
		assert_int_equal(frees + unfinished, 0);
		assert_null(sp_unpack_chunk(u, SP_CHUNK_EVENTS,
					    chunks + i * CHUNK, CHUNK));
		while ((r = sp_unpack_next(u, &d)) == 1) {
			const struct event *e = &events[at++];
			uint64_t got_ns;

			assert_true(at <= n_events);
			same_event(&d, e);
			got_ns = e->is_free ? d.u.free.time_ns
					    : d.u.sample.time_ns;
			assert_true(got_ns >= last_ns);
			last_ns = got_ns;
			same_time(got_ns, event_time(e), tick_ns, moments,
				  n_moments);
			/* The last chunk alone does not do: all of it has to
			 * be right. */
			assert_false(
				sp_unpack_is_complete(u, &frees, &unfinished));
		}
		assert_int_equal(r, 0);
	}
	assert_int_equal(at, n_events);
	assert_true(sp_unpack_is_complete(u, &frees, &unfinished));
	assert_int_equal(frees, EVENT_UNMATCHED);
	assert_int_equal(unfinished, EVENT_UNFINISHED);
	sp_unpacker_free(u);
}

/* ---- moments ---- */

/* Those of events and their neighbours, borders, pairs and triples, some of
 * them twice; and the beginning. */
static size_t make_moments(uint64_t *moments)
{
	size_t n = 0;

	moments[n++] = 0;
	moments[n++] = events_below(2);
	while (n + 4 < MOMENTS) {
		const uint64_t t = event_time(&events[events_below(n_events)]);

		moments[n++] = t;
		if (events_below(2))
			moments[n++] = t + events_below(3);
		if (events_below(2))
			moments[n++] = t + 2;
		if (events_below(2))
			moments[n++] =
				t / EVENT_TICK * EVENT_TICK + events_below(2);
	}
	qsort(moments, n, sizeof(moments[0]), sp_array_compare_u64);
	return n;
}

/* ---- the tests ---- */

TEST(exact)
{
	events_seed(11);
	for (size_t i = 0; i < test_rounds(10, 30); i++) {
		make_events(1 + events_below(9000), 1ull << events_below(12),
			    i % 3, i % 2 ? UINT64_MAX / 2 : events_below(3),
			    event_steps[i % EVENT_STEPS]);
		pack_events(0, NULL, 0);
		same_back(0, NULL, 0);
	}
}

TEST(many)
{
	events_seed(12);
	make_events(100000, 5000, EVENT_ANY, 0, event_step_dense);
	pack_events(0, NULL, 0);
	assert_true(n_events > 190000 && n_chunks > 20);
	same_back(0, NULL, 0);
	pack_events(EVENT_TICK, NULL, 0);
	same_back(EVENT_TICK, NULL, 0);
}

static size_t time_bytes(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_chunks; i++)
		n += chunk_header(i).column_bytes[SP_COLUMN_TIME];
	return n;
}

TEST(ticks)
{
	uint64_t moments[MOMENTS];

	events_seed(13);
	for (size_t i = 0; i < test_rounds(12, 40); i++) {
		const size_t n_samples = i % 8 ? 1 + events_below(1500) : 12000;
		size_t exact, n;

		make_events(n_samples, 1 + events_below(200), EVENT_ANY,
			    i % 4 ? events_below(EVENT_TICK) : UINT64_MAX / 2,
			    event_steps[i % EVENT_STEPS]);
		pack_events(0, NULL, 0);
		exact = time_bytes();
		n = make_moments(moments);
		pack_events(EVENT_TICK, moments, n);
		same_back(EVENT_TICK, moments, n);
		/* Fifty events to the tick: or nothing would be gained. */
		if (event_steps[i % EVENT_STEPS] == event_step_dense &&
		    n_events > 5000)
			assert_true(time_bytes() < exact / 10);
	}
}

/* Each moment beside each event, nanoseconds apart. */
TEST(near_moments)
{
	events_seed(14);
	for (unsigned int i = 0; i < 4000; i++) {
		uint64_t moments[4];
		const uint64_t start =
			i % 2 ? events_below(9)
			      : EVENT_TICK * (1 + events_below(2)) -
					events_below(9);

		make_events(1 + events_below(6), 3, EVENT_FIFO, start,
			    i % 3 ? event_step_equal : event_step_border);
		for (int k = 0; k < 4; k++)
			moments[k] = events_below(2)
					     ? start + events_below(9)
					     : event_time(&events[events_below(
						       n_events)]);
		qsort(moments, 4, sizeof(moments[0]), sp_array_compare_u64);
		pack_events(EVENT_TICK, moments, 4);
		same_back(EVENT_TICK, moments, 4);
	}
}

/* Each of them needs the most bytes that one can: a chunk must not be too
 * small for the last of its events. */
TEST(largest)
{
	const size_t n = 3000;

	events_seed(17);
	make_events(n, 9, EVENT_ANY, 0, event_step_gaps);
	for (size_t i = 0; i < n_events; i++) {
		struct event *e = &events[i];

		if (e->is_free) {
			e->free.has_age = true;
			e->free.age_bytes = 1ull << 63;
			e->free.flags = SP_FREE_MISSED;
			e->free.thread = UINT32_MAX - i % 2;
			e->free.time_ns = i << 50;
			e->free.id = e->of->sample.id;
			continue;
		}
		e->sample.id = (i % 2 ? 1ull << 63 : 0) + i;
		e->sample.time_ns = i << 50;
		e->sample.size_bytes = UINT64_MAX;
		e->sample.offset_bytes = UINT64_MAX - 1;
		e->sample.period_bytes = SP_FORMAT_PERIOD_MAX - i % 2;
		e->sample.stack = UINT32_MAX - i;
		e->sample.thread = UINT32_MAX - i % 2;
	}
	pack_events(EVENT_TICK, NULL, 0);
	assert_true(n_chunks > 3);
	same_back(EVENT_TICK, NULL, 0);
	pack_events(0, NULL, 0);
	same_back(0, NULL, 0);
}

TEST(empty)
{
	n_events = 0;
	pack_events(0, NULL, 0);
	assert_int_equal(n_chunks, 1);
	same_back(0, NULL, 0);
}

/* Whatever is behind is missing, too: what is there does not say so. */
TEST(incomplete)
{
	struct sp_unpacker *u = sp_unpacker_new(EVENT_FILE_ID);
	uint64_t frees, unfinished;
	struct sp_decoded d;
	size_t n = 0;

	events_seed(15);
	make_events(8000, 100, EVENT_ANY, 0, event_step_dense);
	pack_events(0, NULL, 0);
	assert_true(n_chunks > 2);
	for (size_t i = 0; i + 1 < n_chunks; i++) {
		assert_null(sp_unpack_chunk(u, SP_CHUNK_EVENTS,
					    chunks + i * CHUNK, CHUNK));
		while (sp_unpack_next(u, &d) == 1)
			n++;
	}
	assert_int_equal(n, n_events - chunk_header(n_chunks - 1).n_events);
	assert_false(sp_unpack_is_complete(u, &frees, &unfinished));
	assert_int_equal(frees, 0);
	assert_int_equal(unfinished, 0);
	sp_unpacker_free(u);
}

TEST(refused)
{
	const struct sp_record_sample sample = {.id = 5,
						.time_ns = 100,
						.size_bytes = 8,
						.period_bytes = 1,
						.thread = 1};
	const struct sp_record_free end = {.id = 5, .time_ns = 100};
	struct sp_record_sample s = sample;
	struct sp_record_free f = end;
	struct sp_packer *p = events_packer(0, NULL, 0);

	assert_int_equal(sp_pack_free(p, &f), -EILSEQ);
	assert_int_equal(sp_pack_sample(p, &s), 0);
	s.id = 6;
	s.time_ns = 99;
	assert_int_equal(sp_pack_sample(p, &s), -EILSEQ);
	f.time_ns = 99;
	assert_int_equal(sp_pack_free(p, &f), -EILSEQ);
	f.time_ns = 100;
	f.thread = UINT32_MAX + 1ull;
	assert_int_equal(sp_pack_free(p, &f), -EILSEQ);
	f.id = 6;
	f.thread = 0;
	assert_int_equal(sp_pack_free(p, &f), -EILSEQ);
	assert_int_equal(sp_pack_free(p, &end), 0);
	assert_int_equal(sp_pack_free(p, &end), -EILSEQ);
	/* Its number may come again, but not while it is alive. */
	assert_int_equal(sp_pack_sample(p, &sample), 0);
	assert_int_equal(sp_pack_sample(p, &sample), -EILSEQ);
	sp_packer_free(p);
}

/* Whichever chunk is not taken. */
TEST(not_taken)
{
	size_t all;

	events_seed(16);
	make_events(4000, 100, EVENT_ANY, 0, event_step_dense);
	pack_events(0, NULL, 0);
	all = n_chunks;
	assert_true(all > 1);
	for (chunk_to_fail = 1; chunk_to_fail <= all; chunk_to_fail++) {
		struct sp_packer *p = events_packer(0, NULL, 0);
		size_t i = 0;
		int r = 0;

		for (; i < n_events && !r; i++)
			r = event_pack(p, &events[i]);
		assert_int_equal(r, chunk_to_fail < all ? -EDQUOT : 0);
		if (!r)
			assert_int_equal(sp_pack_end(p, 0, 0), -EDQUOT);
		assert_int_equal(n_chunks, chunk_to_fail);
		sp_packer_free(p);
	}
	chunk_to_fail = 0;
}

static int free_all(void **state)
{
	(void)state;
	events_free();
	return 0;
}

TEST_MAIN(NULL, free_all)
