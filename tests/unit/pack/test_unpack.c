/* SPDX-License-Identifier: MIT */
/*
 * Chunks of events made by hand: what the right one says; every range and every
 * column of a wrong one whose check is right; every byte of a right one
 * changed; random columns.
 */
#include <errno.h>

#include "base/rng.h"
#include "hand_columns.h"
#include "support/test.h"

/* ---- what the chunk that is right says ---- */

TEST(events)
{
	static const struct sp_record_sample samples[] = {
		{.id = 1,
		 .time_ns = 5,
		 .size_bytes = 100,
		 .stack = 1,
		 .thread = 1},
		{.id = 9,
		 .time_ns = 10,
		 .size_bytes = 50,
		 .stack = 2,
		 .thread = 1,
		 .offset_bytes = 7,
		 .entry = 9},
		{.id = 10,
		 .time_ns = 17,
		 .size_bytes = 30,
		 .stack = 1,
		 .thread = 2},
	};
	static const int is_free[] = {0, 0, 1, 0, 1};
	struct sp_unpacker *u = new_unpacker(SP_CHUNK_EVENTS);
	const struct chunk chunk = build_chunk(&events_form, &right);
	const struct sp_record_sample *want = samples;
	struct sp_decoded d;

	assert_null(sp_unpack_chunk(u, SP_CHUNK_EVENTS, chunk.bytes, chunk.n));
	for (int i = 0; i < 5; i++) {
		const struct sp_record_free *f = &d.u.free;
		const struct sp_record_sample *s = &d.u.sample;

		assert_int_equal(sp_unpack_next(u, &d), 1);
		assert_int_equal(d.type, is_free[i] ? SP_RECORD_FREE
						    : SP_RECORD_SAMPLE);
		if (is_free[i]) {
			/* A third of ten is four: times are rounded up. */
			assert_int_equal(f->time_ns, i == 2 ? 14 : 20);
			assert_int_equal(f->id, i == 2 ? 1 : 9);
			assert_int_equal(f->thread, i == 2 ? 1 : 2);
			assert_int_equal(f->has_age, i == 2);
			assert_int_equal(f->age_bytes, i == 2 ? 50 : 0);
			assert_int_equal(f->flags, 0);
			continue;
		}
		assert_int_equal(s->id, want->id);
		assert_int_equal(s->time_ns, want->time_ns);
		assert_int_equal(s->size_bytes, want->size_bytes);
		assert_int_equal(s->offset_bytes, want->offset_bytes);
		assert_int_equal(s->period_bytes, 64);
		assert_int_equal(s->stack, want->stack);
		assert_int_equal(s->entry, want->entry);
		assert_int_equal(s->thread, want->thread);
		want++;
	}
	assert_int_equal(sp_unpack_next(u, &d), 0);
	sp_unpacker_free(u);
	free(chunk.bytes);
}

/* ---- what is wrong with others ---- */

static const struct change hostile[] = {
	/* sites that are not there, or are not over */
	{"event", COLUMN(WHAT, 5, {0, 4, 1, 0, 3})},
	{"event", COLUMN(WHAT, 5, {0, UINT64_MAX - 1, 1, 0, 3})},
	{"free", COLUMN(WHAT, 5, {0, 2, 5, 0, 3})},
	{"free", COLUMN(WHAT, 5, {1, 2, 1, 0, 3})},
	{"event", COLUMN(WHAT, 4, {0, 2, 1, 0})},
	{"events column", COLUMN(WHAT, 6, {0, 2, 1, 0, 3, 0})},
	{NULL, COLUMN(SITE, 4, {U32, 31, 0, 0})},
	{"event site", COLUMN(SITE, 4, {U32 + 1, 0, 2, 9})},
	{"event site", COLUMN(SITE, 4, {1, 0, 2, 32})},
	{"event site", COLUMN(SITE, 3, {1, 0, 2})},
	{"events column", COLUMN(SITE, 5, {1, 0, 2, 9, 1})},
	{NULL, COLUMN(SIZE, 3, {1, 8, UINT64_MAX})},
	{"sample size", COLUMN(SIZE, 3, {100, 50, 0})},
	{"sample", COLUMN(SIZE, 2, {100, 50})},
	{"events column", COLUMN(SIZE, 4, {100, 50, 30, 1})},
	/* as many events as there are, and none but at a time */
	{NULL, COLUMN(TIME, 2, {5, 0})},
	{NULL, COLUMN(TIME, 4, {0, U32, 5, 10})},
	{"event time", COLUMN(TIME, 2, {6, 10})},
	{"event time", COLUMN(TIME, 4, {2, 10, 4, 10})},
	{"event time", COLUMN(TIME, 2, {UINT64_MAX, 10})},
	{"event time", COLUMN(TIME, 4, {2, 10, 2, 10})},
	{"event time", COLUMN(TIME, 3, {2, 10, 3})},
	{"event time", COLUMN(TIME, 0, {0})},
	{"events column", COLUMN(TIME, 6, {2, 10, 3, 10, 0, 5})},
	{NULL, COLUMN(THREAD, 2, {0, U32})},
	{NULL, COLUMN(THREAD, 0, {0})},
	{"event thread", COLUMN(THREAD, 2, {0, U32 + 1})},
	{"event thread", COLUMN(THREAD, 1, {0})},
	/* exceptions behind the last event, with what they are or not,
	 * be they ever so far */
	{"events column", COLUMN(THREAD, 4, {0, 1, 4, 2})},
	{"events column", COLUMN(THREAD, 3, {0, 1, 4})},
	{"events column", COLUMN(THREAD, 3, {0, 1, 5})},
	{"events column", COLUMN(THREAD, 3, {0, 1, U32})},
	{"events column", COLUMN(THREAD, 3, {0, 1, 1ull << 40})},
	{"events column", COLUMN(THREAD, 3, {0, 1, UINT64_MAX})},
	{"events column", COLUMN(ID, 2, {3, 0})},
	{"events column", COLUMN(ID, 1, {UINT64_MAX})},
	{"sample", COLUMN(ID, 1, {1})},
	{NULL, COLUMN(PERIOD, 2, {0, 1ull << 40})},
	{"sample period", COLUMN(PERIOD, 2, {0, (1ull << 40) + 1})},
	{"sample period", COLUMN(PERIOD, 4, {0, 64, 1, 0})},
	{"sample period", COLUMN(PERIOD, 0, {0})},
	{"sample", COLUMN(PERIOD, 1, {0})},
	{NULL, COLUMN(OFFSET, 2, {1, 49})},
	{"sample offset", COLUMN(OFFSET, 2, {1, 50})},
	{"sample offset", COLUMN(OFFSET, 2, {1, UINT64_MAX})},
	{"sample", COLUMN(OFFSET, 1, {2})},
	/* samples that are not there yet, never, or not any more */
	{"free", COLUMN(ORDER, 2, {0, UP(1)})},
	{"free", COLUMN(ORDER, 2, {1, UP(1)})},
	{"free", COLUMN(ORDER, 2, {0, DOWN(1)})},
	{"free", COLUMN(ORDER, 2, {0, UP(U32 + 1)})},
	{"free", COLUMN(ORDER, 1, {0})},
	{"events column", COLUMN(ORDER, 1, {2})},
	{NULL, COLUMN(AGE, 5, {0, 3, UP(5), 0, 0})},
	{"free", COLUMN(AGE, 2, {0, 4})},
	{"free", COLUMN(AGE, 3, {0, 5, UP(1)})},
	{"free", COLUMN(AGE, 2, {0, UINT64_MAX - 1})},
	{"free", COLUMN(AGE, 2, {0, 1})},
	{"free", COLUMN(AGE, 1, {1})},
	{"events column", COLUMN(AGE, 4, {0, 0, 1, 0})},
	/* the header */
	{"events number", .column = -1, .first = 1},
	{"events end", .column = -1, .and = 2},
	{NULL, .column = -1, .and = 1, .set = 56},
	{NULL, .column = -1, .and = 1, .set = 64},
	{"events end", .column = -1, .set = 56},
	{"events end", .column = -1, .set = 64},
	{"event", .column = -1, .more = 1},
	{"event", .column = -1, .more = -6}, /* 2^32 - 1 */
	{"events column", COLUMN(TIME, 2, {4, 10}), .more = -1},
	{"columns length", .column = SP_COLUMN_AGE, .more_bytes = 1},
	{"columns length", COLUMN(AGE, 0, {0}), .more_bytes = UINT32_MAX},
};

TEST(hostile_events)
{
	TRY(events_form, hostile);
}

/* What was freed cannot be freed once more. */
TEST(freed_again)
{
	static const struct change again[] = {
		{NULL, COLUMN(WHAT, 5, {0, 2, 1, 0, 1})},
		{"free", COLUMN(WHAT, 5, {0, 2, 1, 3, 1}), .more = 0},
	};
	static const struct change order = {"free",
					    COLUMN(ORDER, 2, {1, DOWN(1)})};
	struct form form = events_form;

	TRY(form, again);
	form.columns[SP_COLUMN_WHAT] = again[0].is;
	try_changes(&form, &order, 1);
}

/* One after the other, the last of them once. */
TEST(sequence)
{
	static const struct change last = {.column = -1, .first = 5, .and = 1};
	static const struct change behind = {.column = -1, .first = 10};
	struct sp_unpacker *u = new_unpacker(SP_CHUNK_EVENTS);
	uint64_t frees, unfinished;
	struct form second = events_form;

	/* Two sites are known by then, and one sample of the first. */
	second.columns[SP_COLUMN_SITE].n = 0;
	second.columns[SP_COLUMN_THREAD].n = 0;
	assert_null(read_change(u, &events_form, &right));
	assert_false(sp_unpack_is_complete(u, &frees, &unfinished));
	assert_null(read_change(u, &second, &last));
	assert_true(sp_unpack_is_complete(u, &frees, &unfinished));
	assert_string_equal(read_change(u, &second, &behind), "events number");
	assert_string_equal(read_change(u, &second, &behind),
			    "columns after damage");
	sp_unpacker_free(u);
}

/* ---- checks that are wrong ---- */

/* A byte that is another, or the end of the chunk that is missing. */
TEST(changed)
{
	static const uint8_t flips[] = {1, 2, 4, 8, 16, 32, 64, 128, 255};

	for (size_t f = 0; f < 3; f++) {
		struct chunk chunk = build_chunk(forms[f], &right);

		for (size_t i = 24; i < chunk.n; i++) {
			struct sp_unpacker *u = new_unpacker(forms[f]->kind);
			struct chunk cut = {malloc(i), i};

			for (size_t k = 0; k < sizeof(flips); k++) {
				struct sp_unpacker *other =
					sp_unpacker_new(HAND_FILE_ID);

				chunk.bytes[i] ^= flips[k];
				assert_non_null(read_chunk(
					other, forms[f]->kind, &chunk));
				is_broken(other, forms[f]);
				chunk.bytes[i] ^= flips[k];
				sp_unpacker_free(other);
			}
			memcpy(cut.bytes, chunk.bytes, i);
			assert_non_null(read_chunk(u, forms[f]->kind, &cut));
			is_broken(u, forms[f]);
			free(cut.bytes);
			sp_unpacker_free(u);
		}
		free(chunk.bytes);
	}
}

/* Right, but of another file, or of another kind. */
TEST(strange)
{
	for (size_t f = 0; f < 3; f++) {
		const struct chunk chunk = build_chunk(forms[f], &right);
		struct sp_unpacker *u = sp_unpacker_new(HAND_FILE_ID + 1);

		assert_string_equal(read_chunk(u, forms[f]->kind, &chunk),
				    "columns check");
		sp_unpacker_free(u);
		for (size_t k = 0; k < 3; k++) {
			u = new_unpacker(SP_CHUNK_NAMES);
			if (forms[k] != forms[f])
				assert_non_null(
					read_chunk(u, forms[k]->kind, &chunk));
			sp_unpacker_free(u);
		}
		free(chunk.bytes);
	}
}

/* ---- at random ---- */

static struct sp_rng rng;

static uint64_t random_number(void)
{
	static const uint64_t numbers[] = {U32 - 1,    U32,        U32 + 1,
					   1ull << 40, 1ull << 63, UINT64_MAX};
	const uint64_t i = sp_rng_next(&rng) % 30;

	return i < 6 ? numbers[i] : sp_rng_next(&rng) % (i < 20 ? 4 : 70);
}

static void in_range(const struct sp_decoded *d)
{
	const struct sp_record_sample *s = &d->u.sample;
	static struct sp_record_frame frames[SP_FORMAT_FRAMES_MAX];
	static struct sp_record_line lines[SP_FORMAT_LINES_MAX];

	switch (d->type) {
	case SP_RECORD_SAMPLE:
		assert_true(s->size_bytes && s->offset_bytes < s->size_bytes);
		assert_true(s->period_bytes &&
			    s->period_bytes <= SP_FORMAT_PERIOD_MAX);
		assert_true(s->stack <= U32 && s->thread <= U32);
		assert_true(s->entry < 32);
		break;
	case SP_RECORD_FREE:
		assert_true(d->u.free.thread <= U32 && d->u.free.flags <= 1);
		assert_true(d->u.free.has_age || !d->u.free.age_bytes);
		break;
	case SP_RECORD_STACK:
		assert_true(d->u.stack.id && d->u.stack.id <= U32);
		assert_true(d->u.stack.n_frames <= SP_FORMAT_FRAMES_MAX);
		sp_decode_frames(d, frames);
		for (size_t i = 0; i < d->u.stack.n_frames; i++)
			assert_true(frames[i].module <= U32);
		break;
	case SP_RECORD_NAME:
		assert_true(d->u.name.id <= 2 && d->u.name.text_bytes <= 4);
		break;
	default:
		assert_int_equal(d->type, SP_RECORD_SYMBOL);
		sp_decode_lines(d, lines);
		for (size_t i = 0; i < d->u.symbol.n_lines; i++)
			assert_true(lines[i].function >= 1 &&
				    lines[i].function <= 2 &&
				    lines[i].file <= 2);
	}
}

/* Two columns of something else, over and over: whatever comes out of that is
 * in its range, and no byte behind the chunk is read. */
TEST(random)
{
	size_t n_right = 0, n_wrong = 0;

	sp_rng_init(&rng, 31, 0);
	for (unsigned int i = 0; i < 30000; i++) {
		struct form form = *forms[i % 3];
		struct sp_unpacker *u = new_unpacker(form.kind);
		struct sp_decoded d;
		struct chunk chunk;
		int r = -EBADMSG;

		for (int k = 0; k < 2; k++) {
			struct column *c = &form.columns[sp_rng_next(&rng) %
							 form.n_columns];
			const uint64_t at = sp_rng_next(&rng) % 12;

			c->values[at] = random_number();
			if (at >= c->n)
				c->n = at % 3 ? c->n : at + 1;
		}
		chunk = build_chunk(&form, &right);
		if (!sp_unpack_chunk(u, form.kind, chunk.bytes, chunk.n))
			while ((r = sp_unpack_next(u, &d)) == 1)
				in_range(&d);
		assert_true(r == 0 || r == -EBADMSG);
		*(r ? &n_wrong : &n_right) += 1;
		free(chunk.bytes);
		sp_unpacker_free(u);
	}
	assert_true(n_right > 1000 && n_wrong > 1000);
}

TEST_MAIN(NULL, NULL)
