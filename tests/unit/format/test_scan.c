/* SPDX-License-Identifier: MIT */
/*
 * The agent's reader of its own samples, against the records that were written.
 */
#include "base/rng.h"
#include "format/encode.h"
#include "format/scan.h"
#include "support/test.h"

#define CHUNK  SP_FORMAT_CHUNK_BYTES
#define BEGIN  SP_FORMAT_CHUNK_RECORDS_OFFSET
#define ROUNDS 200

static uint8_t chunk[CHUNK];
static struct sp_record_sample written[CHUNK / 8];
static size_t n_written;
static size_t end; /* of what is committed */

static struct sp_record random_record(struct sp_rng *rng)
{
	struct sp_record r = {.type = SP_RECORD_RSS};
	const uint64_t v = sp_rng_next(rng);
	const uint64_t size = 1 + (v >> 50 << (v & 7));

	r.u.rss = (struct sp_record_rss){v, v >> 7};
	if (v % 8 > 4)
		return r;
	if (v % 8 > 2) {
		r.type = SP_RECORD_FREE;
		r.u.free = (struct sp_record_free){
			.id = v >> 20,
			.time_ns = v >> 3,
			.thread = v >> 61,
			.has_age = v & 16,
			.age_bytes = v & 16 ? v >> 30 : 0,
		};
		return r;
	}
	r.type = SP_RECORD_SAMPLE;
	r.u.sample = (struct sp_record_sample){
		.id = v >> 21,
		.time_ns = v >> 4,
		.address = sp_rng_next(rng) >> 17,
		.size_bytes = size,
		.offset_bytes = (v >> 32) % size,
		.period_bytes = 1 + (v >> 60),
		.stack = v >> 40,
		.thread = v >> 62,
		.entry = (uint8_t)(v % SP_ENTRY_COUNT),
		.is_again = v & 32,
	};
	return r;
}

/* As much as fits, the last record not committed. */
static void fill(struct sp_rng *rng)
{
	struct sp_chunk_state state;
	size_t at = BEGIN;

	memset(chunk, 0, sizeof(chunk));
	n_written = 0;
	sp_chunk_state_init(&state, 1, 2);
	state.has_stack_steps = true;
	for (;;) {
		const struct sp_record r = random_record(rng);
		const struct sp_encoded e =
			sp_encode(&state, chunk + at, CHUNK - at, &r);

		end = at;
		if (!e.bytes || at > CHUNK / 2 + sp_rng_next(rng) % CHUNK)
			return;
		chunk[at] = e.type;
		at += e.bytes;
		if (r.type == SP_RECORD_SAMPLE)
			written[n_written++] = r.u.sample;
	}
}

static void assert_same(const struct sp_record_sample *a,
			const struct sp_record_sample *b)
{
	assert_true(a->id == b->id);
	assert_true(a->time_ns == b->time_ns);
	assert_true(a->address == b->address);
	assert_true(a->size_bytes == b->size_bytes);
	assert_true(a->offset_bytes == b->offset_bytes);
	assert_true(a->period_bytes == b->period_bytes);
	assert_true(a->stack == b->stack);
	assert_true(a->thread == b->thread);
	assert_int_equal(a->entry, b->entry);
	assert_int_equal(a->is_again, b->is_again);
}

/* However many records at a time. */
TEST(same_samples)
{
	struct sp_rng rng;
	uint64_t samples = 0;

	sp_rng_init(&rng, 17, 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct sp_chunk_state scanning = {.hash = 0};
		struct sp_record_sample got;
		unsigned int left = 0;
		size_t at = BEGIN;

		fill(&rng);
		for (size_t i = 0; i < n_written; i++) {
			while (!left || !sp_scan_sample(&scanning, chunk, CHUNK,
							&at, &left, &got)) {
				assert_int_equal(left, 0);
				left = 1 + round % 5;
			}
			assert_same(&got, &written[i]);
		}
		left = CHUNK;
		assert_false(sp_scan_sample(&scanning, chunk, CHUNK, &at, &left,
					    &got));
		assert_true(left > 0);
		assert_int_equal(at, end);
		samples += n_written;
	}
	assert_true(samples > 100 * ROUNDS);
}

/* Whatever the bytes are, it comes to an end inside of them. */
TEST(garbage)
{
	FREED uint8_t *bytes = malloc(CHUNK);
	struct sp_rng rng;

	assert_non_null(bytes);
	sp_rng_init(&rng, 18, 0);
	for (unsigned int round = 0; round < 50 * ROUNDS; round++) {
		struct sp_chunk_state scanning = {.hash = 0};
		const size_t begin = CHUNK - 1 - sp_rng_next(&rng) % 300;
		struct sp_record_sample got;
		unsigned int left = 1000;
		size_t at = begin;

		for (size_t i = begin; i < CHUNK; i++)
			bytes[i] = (uint8_t)(sp_rng_next(&rng) >>
					     (sp_rng_next(&rng) % 8 + 56));
		bytes[begin] = SP_RECORD_SAMPLE;
		while (sp_scan_sample(&scanning, bytes, CHUNK, &at, &left,
				      &got))
			assert_true(at <= CHUNK);
		assert_true(at <= CHUNK && left > 0);
	}
}

/* A stack is found where it begins, by its id, and nowhere else. */
TEST(stack)
{
	static const struct sp_record_frame frames[] = {{1, 16},
							{0, 1ull << 47}};
	static struct sp_record_frame got[SP_FORMAT_FRAMES_MAX];
	struct sp_chunk_state writing = {.hash = 0};
	struct sp_record r = {.type = SP_RECORD_STACK};
	static uint8_t bytes[200];
	struct sp_encoded e;
	uint32_t flags = 0;
	unsigned int n = 0;

	r.u.stack = (struct sp_record_stack){0x10018, 2, frames, 2};
	e = sp_encode(&writing, bytes + 40, sizeof(bytes) - 40, &r);
	assert_true(e.bytes > 0);
	/* Not committed. */
	assert_false(sp_scan_stack(bytes, sizeof(bytes), 40, 0x10018, &flags,
				   got, &n));
	bytes[40] = e.type;
	for (size_t at = 0; at < sizeof(bytes) + 10; at++)
		assert_int_equal(sp_scan_stack(bytes, sizeof(bytes), at,
					       0x10018, &flags, got, &n),
				 at == 40);
	assert_int_equal(flags, 2);
	assert_int_equal(n, 2);
	assert_memory_equal(got, frames, sizeof(frames));
	assert_false(sp_scan_stack(bytes, sizeof(bytes), 40, 0x10019, &flags,
				   got, &n));
	for (size_t cut = 0; cut < e.bytes; cut++)
		assert_false(sp_scan_stack(bytes, 40 + cut, 40, 0x10018, &flags,
					   got, &n));
}

TEST_MAIN(NULL, NULL)
