/* SPDX-License-Identifier: MIT */
/* Encoding and decoding compared with the naive model of the format. */
#include "base/rng.h"
#include "format/decode.h"
#include "format/encode.h"
#include "support/format_model.h"
#include "support/test.h"

#define TEXT_MAX 300
#define FRAMES   SP_FORMAT_FRAMES_MAX

/* Random content, and the storage that a random record points to. */
struct maker {
	struct sp_rng rng;
	char text[2][TEXT_MAX];
	uint8_t build_id[SP_FORMAT_BUILD_ID_MAX];
	struct sp_record_frame frames[FRAMES];
};

static uint64_t random_upto(struct maker *m, uint64_t max)
{
	/* Any number of bits is as likely as any other. */
	uint64_t v = sp_rng_next(&m->rng) >> (sp_rng_next(&m->rng) % 64);

	return v <= max ? v : max < 3 ? v % (max + 1) : max - v % 3;
}

static uint64_t random_any(struct maker *m)
{
	return random_upto(m, UINT64_MAX);
}

static uint64_t random_id(struct maker *m)
{
	return 1 + random_upto(m, UINT32_MAX - 1);
}

static size_t random_text(struct maker *m, int which)
{
	size_t n = sp_rng_next(&m->rng) % TEXT_MAX;

	for (size_t i = 0; i < n; i++)
		m->text[which][i] = (char)sp_rng_next(&m->rng);
	return n;
}

static void random_module(struct maker *m, struct sp_record_module *r)
{
	r->id = random_id(m);
	r->start_pc = random_any(m);
	r->end_pc = r->start_pc + random_upto(m, UINT64_MAX - r->start_pc);
	r->bias = random_any(m);
	r->flags = random_any(m);
	r->build_id = m->build_id;
	r->build_id_bytes = random_upto(m, SP_FORMAT_BUILD_ID_MAX);
	for (size_t i = 0; i < sizeof(m->build_id); i++)
		m->build_id[i] = (uint8_t)sp_rng_next(&m->rng);
	r->path = m->text[0];
	r->path_bytes = random_text(m, 0);
}

static void random_stack(struct maker *m, struct sp_record_stack *r)
{
	r->id = random_id(m);
	r->flags = random_any(m);
	r->n_frames = random_upto(m, FRAMES);
	r->frames = m->frames;
	for (size_t i = 0; i < r->n_frames; i++) {
		m->frames[i].module = (uint32_t)random_upto(m, UINT32_MAX);
		m->frames[i].offset = random_any(m);
	}
}

static void random_sample(struct maker *m, struct sp_record_sample *r,
			  const struct sp_record_sample *last)
{
	r->id = random_any(m);
	r->time_ns = random_any(m);
	r->address = random_any(m);
	r->size_bytes = 1 + random_upto(m, UINT64_MAX - 1);
	r->offset_bytes = random_upto(m, r->size_bytes - 1);
	r->period_bytes =
		sp_rng_next(&m->rng) % 2 && last->period_bytes
			? last->period_bytes
			: 1 + random_upto(m, SP_FORMAT_PERIOD_MAX - 1);
	r->thread = sp_rng_next(&m->rng) % 2 ? last->thread
					     : random_upto(m, UINT32_MAX);
	r->stack = random_upto(m, UINT32_MAX);
	r->entry = (uint8_t)(sp_rng_next(&m->rng) % 32);
	r->is_again = sp_rng_next(&m->rng) % 4 == 0;
}

static void random_free(struct maker *m, struct sp_record_free *r,
			const struct sp_record_sample *last)
{
	r->id = random_any(m);
	r->time_ns = random_any(m);
	r->thread = sp_rng_next(&m->rng) % 2 ? last->thread
					     : random_upto(m, UINT32_MAX);
	r->flags = sp_rng_next(&m->rng) % 2 ? SP_FREE_MISSED : 0;
	r->has_age = sp_rng_next(&m->rng) % 2;
	r->age_bytes = r->has_age ? random_any(m) : 0;
}

static void random_mark(struct maker *m, struct sp_record_mark *r)
{
	r->number = random_id(m);
	r->kind = random_any(m);
	r->time_ns = random_any(m);
	r->alloc_bytes = random_any(m);
	r->alloc_objects = random_any(m);
	r->unsampled_bytes = random_upto(m, r->alloc_bytes);
	r->unsampled_objects = random_upto(m, r->alloc_objects);
	r->slack_bytes = random_any(m);
	r->period_bytes = random_upto(m, SP_FORMAT_PERIOD_MAX);
	r->name = m->text[0];
	r->name_bytes = random_text(m, 0);
	if (r->name_bytes > SP_FORMAT_MARK_NAME_MAX)
		r->name_bytes = SP_FORMAT_MARK_NAME_MAX;
}

static void random_record(struct maker *m, struct sp_record *r,
			  const struct sp_record_sample *last)
{
	memset(r, 0, sizeof(*r));
	r->type = 1 + sp_rng_next(&m->rng) % 11;
	if (r->type > SP_RECORD_RSS)
		r->type += SP_RECORD_MARK - SP_RECORD_RSS - 1;
	switch (r->type) {
	case SP_RECORD_INFO:
		r->u.info.key = m->text[0];
		r->u.info.key_bytes = random_text(m, 0);
		r->u.info.value = m->text[1];
		r->u.info.value_bytes = random_text(m, 1);
		break;
	case SP_RECORD_MODULE:
		random_module(m, &r->u.module);
		break;
	case SP_RECORD_STACK:
		random_stack(m, &r->u.stack);
		break;
	case SP_RECORD_THREAD:
		r->u.thread.index = random_id(m);
		r->u.thread.tid = random_any(m);
		r->u.thread.time_ns = random_any(m);
		r->u.thread.name = m->text[0];
		r->u.thread.name_bytes = random_text(m, 0);
		break;
	case SP_RECORD_THREAD_END:
		r->u.thread_end.index = random_id(m);
		r->u.thread_end.time_ns = random_any(m);
		r->u.thread_end.alloc_bytes = random_any(m);
		r->u.thread_end.alloc_objects = random_any(m);
		r->u.thread_end.name = m->text[0];
		r->u.thread_end.name_bytes = random_text(m, 0);
		break;
	case SP_RECORD_SAMPLE:
		random_sample(m, &r->u.sample, last);
		break;
	case SP_RECORD_FREE:
		random_free(m, &r->u.free, last);
		break;
	case SP_RECORD_FREE_ADDRESS:
		r->u.free_address = (struct sp_record_free_address){
			random_any(m), random_any(m),
			random_upto(m, UINT32_MAX)};
		break;
	case SP_RECORD_RSS:
		r->u.rss.time_ns = random_any(m);
		r->u.rss.rss_bytes = random_any(m);
		break;
	case SP_RECORD_MARK:
		random_mark(m, &r->u.mark);
		break;
	case SP_RECORD_ASKED:
		r->u.asked.number = random_id(m);
		r->u.asked.time_ns = random_any(m);
		break;
	default: /* test_record_maps.c, test_rewrite.c */
		fail();
	}
}

static void assert_text(const void *got, size_t got_n, const void *want,
			size_t want_n)
{
	assert_int_equal(got_n, want_n);
	if (want_n)
		assert_memory_equal(got, want, want_n);
}

static void assert_same_module(const struct sp_record_module *got,
			       const struct sp_record_module *want)
{
	assert_true(got->id == want->id);
	assert_true(got->start_pc == want->start_pc);
	assert_true(got->end_pc == want->end_pc);
	assert_true(got->bias == want->bias);
	assert_true(got->flags == want->flags);
	assert_text(got->build_id, got->build_id_bytes, want->build_id,
		    want->build_id_bytes);
	assert_text(got->path, got->path_bytes, want->path, want->path_bytes);
}

static void assert_same_stack(const struct sp_decoded *got,
			      const struct sp_record_stack *want)
{
	static struct sp_record_frame frames[FRAMES];

	assert_true(got->u.stack.id == want->id);
	assert_true(got->u.stack.flags == want->flags);
	assert_int_equal(got->u.stack.n_frames, want->n_frames);
	sp_decode_frames(got, frames);
	for (size_t i = 0; i < want->n_frames; i++) {
		assert_true(frames[i].module == want->frames[i].module);
		assert_true(frames[i].offset == want->frames[i].offset);
	}
}

static void assert_same_sample(const struct sp_record_sample *got,
			       const struct sp_record_sample *want)
{
	assert_true(got->id == want->id);
	assert_true(got->time_ns == want->time_ns);
	assert_true(got->address == want->address);
	assert_true(got->size_bytes == want->size_bytes);
	assert_true(got->offset_bytes == want->offset_bytes);
	assert_true(got->period_bytes == want->period_bytes);
	assert_true(got->stack == want->stack);
	assert_true(got->thread == want->thread);
	assert_int_equal(got->entry, want->entry);
	assert_int_equal(got->is_again, want->is_again);
}

static void assert_same_free(const struct sp_record_free *got,
			     const struct sp_record_free *want)
{
	assert_true(got->id == want->id);
	assert_true(got->time_ns == want->time_ns);
	assert_true(got->thread == want->thread);
	assert_true(got->flags == want->flags);
	assert_int_equal(got->has_age, want->has_age);
	assert_true(got->age_bytes == want->age_bytes);
}

static void assert_same_end(const struct sp_record_thread_end *got,
			    const struct sp_record_thread_end *want)
{
	assert_true(got->index == want->index);
	assert_true(got->time_ns == want->time_ns);
	assert_true(got->alloc_bytes == want->alloc_bytes);
	assert_true(got->alloc_objects == want->alloc_objects);
	assert_text(got->name, got->name_bytes, want->name, want->name_bytes);
}

static void assert_same_mark(const struct sp_record_mark *got,
			     const struct sp_record_mark *want)
{
	assert_true(got->number == want->number);
	assert_true(got->kind == want->kind);
	assert_true(got->time_ns == want->time_ns);
	assert_true(got->alloc_bytes == want->alloc_bytes);
	assert_true(got->alloc_objects == want->alloc_objects);
	assert_true(got->unsampled_bytes == want->unsampled_bytes);
	assert_true(got->unsampled_objects == want->unsampled_objects);
	assert_true(got->slack_bytes == want->slack_bytes);
	assert_true(got->period_bytes == want->period_bytes);
	assert_text(got->name, got->name_bytes, want->name, want->name_bytes);
}

static void assert_same(const struct sp_decoded *got,
			const struct sp_record *want)
{
	assert_int_equal(got->type, want->type);
	switch (want->type) {
	case SP_RECORD_INFO:
		assert_text(got->u.info.key, got->u.info.key_bytes,
			    want->u.info.key, want->u.info.key_bytes);
		assert_text(got->u.info.value, got->u.info.value_bytes,
			    want->u.info.value, want->u.info.value_bytes);
		break;
	case SP_RECORD_MODULE:
		assert_same_module(&got->u.module, &want->u.module);
		break;
	case SP_RECORD_STACK:
		assert_same_stack(got, &want->u.stack);
		break;
	case SP_RECORD_THREAD:
		assert_true(got->u.thread.index == want->u.thread.index);
		assert_true(got->u.thread.tid == want->u.thread.tid);
		assert_true(got->u.thread.time_ns == want->u.thread.time_ns);
		assert_text(got->u.thread.name, got->u.thread.name_bytes,
			    want->u.thread.name, want->u.thread.name_bytes);
		break;
	case SP_RECORD_THREAD_END:
		assert_same_end(&got->u.thread_end, &want->u.thread_end);
		break;
	case SP_RECORD_SAMPLE:
		assert_same_sample(&got->u.sample, &want->u.sample);
		break;
	case SP_RECORD_FREE:
		assert_same_free(&got->u.free, &want->u.free);
		break;
	case SP_RECORD_FREE_ADDRESS:
		assert_memory_equal(&got->u.free_address, &want->u.free_address,
				    sizeof(got->u.free_address));
		break;
	case SP_RECORD_RSS:
		assert_true(got->u.rss.time_ns == want->u.rss.time_ns);
		assert_true(got->u.rss.rss_bytes == want->u.rss.rss_bytes);
		break;
	case SP_RECORD_MARK:
		assert_same_mark(&got->u.mark, &want->u.mark);
		break;
	case SP_RECORD_ASKED:
		assert_true(got->u.asked.number == want->u.asked.number);
		assert_true(got->u.asked.time_ns == want->u.asked.time_ns);
		break;
	case SP_RECORD_MAP:
	case SP_RECORD_UNMAP:
	case SP_RECORD_CODE:
	case SP_RECORD_NAME:
	case SP_RECORD_SYMBOL:
	case SP_RECORD_NONE:
		fail();
	}
}

/* Every room that is too small is refused and changes nothing. */
static void check_too_small(const struct sp_chunk_state *state,
			    const struct sp_record *r, size_t need)
{
	static uint8_t out[65536], untouched[65536];
	size_t step = need > 200 ? need / 100 : 1;

	memset(untouched, 0x55, need);
	for (size_t room = 0; room < need; room += step) {
		size_t at = need - 1 - room;
		struct sp_chunk_state copy = *state;
		struct sp_encoded e;

		memset(out, 0x55, need);
		e = sp_encode(&copy, out, at, r);
		assert_int_equal(e.bytes, 0);
		assert_memory_equal(&copy, state, sizeof(copy));
		assert_memory_equal(out, untouched, need);
	}
}

/* One chunk full of random records: the same bytes as the model's, and back. */
static void check_chunk(struct maker *m, uint64_t index)
{
	static uint8_t chunk[65536];
	struct sp_chunk_state writing, reading;
	struct model_chunk model;
	FREED_BY(model_done) struct model_bytes want = {0};
	struct sp_record r;
	size_t at = 0, read_at = 0;

	memset(chunk, 0, sizeof(chunk));
	sp_chunk_state_init(&writing, 9 * index, index);
	sp_chunk_state_init(&reading, 9 * index, index);
	model_chunk_begin(&model, 9 * index, index);
	writing.has_stack_steps = index % 2;
	reading.has_stack_steps = index % 2;
	model.has_stack_steps = index % 2;
	for (;;) {
		struct sp_chunk_state before = writing;
		struct sp_record_sample last = model.last;
		struct sp_decoded d;
		struct sp_encoded e;

		random_record(m, &r, &last);
		e = sp_encode(&writing, chunk + at, sizeof(chunk) - at, &r);
		if (!e.bytes)
			break;
		model_encode(&want, &model, &r);
		assert_int_equal(e.type, r.type);
		assert_int_equal(at + e.bytes, want.n);
		/* Not committed: nothing is there yet for a reader. */
		assert_int_equal(chunk[at], 0);
		assert_int_equal(sp_decode_next(&reading, chunk, sizeof(chunk),
						&read_at, &d),
				 SP_DECODE_END);
		check_too_small(&before, &r, e.bytes);
		chunk[at] = e.type;
		assert_memory_equal(chunk + at, want.data + at, e.bytes);
		assert_int_equal(sp_decode_next(&reading, chunk, sizeof(chunk),
						&read_at, &d),
				 SP_DECODE_RECORD);
		assert_same(&d, &r);
		at += e.bytes;
		assert_int_equal(read_at, at);
	}
	assert_true(at > 30000);
}

TEST(round_trip)
{
	static struct maker m;

	sp_rng_init(&m.rng, 5, 1);
	for (uint64_t index = 1; index <= 60; index++)
		check_chunk(&m, index);
}

/* The example of docs/format.md, byte by byte. */
static const uint8_t example[] =
	"\x01\x0d\x03\x65\x78\x65\x2f\x62\x69\x6e\x2f\x74\x72\x75\x65"
	"\x9c\xf0"
	"\x02\x1c\x01\x80\xa0\x80\x80\xd0\xaa\x15\x80\x80\x02\x80\x40"
	"\x01\x04\xde\xad\xbe\xef\x2f\x62\x69\x6e\x2f\x74\x72\x75\x65"
	"\x79\x45"
	"\x03\x0e\x01\x00\x02\x01\xb4\x04\x00\x80\xa0\x80\x80\x80\xe0"
	"\x1f\xd3\x91"
	"\x04\x09\x01\xe7\x24\xe8\x07\x6d\x61\x69\x6e\x70\x1d"
	"\x06\x13\x60\x01\x80\x80\x20\x02\xb8\x17\xa0\x80\x90\x80\xa0"
	"\xd5\x2a\xac\x02\x11\x01\x2b\x20"
	"\x06\x08\x01\x02\xc7\x01\x1f\x10\x00\x01\xc1\x47"
	"\x07\x04\x02\x04\x64\x00\x8d\xc6"
	"\x08\x06\x90\x4e\x80\x80\xc0\x02\xd7\xd0"
	"\x0c\x12\x01\x01\xa0\x9c\x01\xbc\x02\x02\x00\x00\x00\x80\x80"
	"\x20\x6c\x6f\x61\x64\x7b\xa6";

TEST(example)
{
	static const struct sp_record_frame frames[] = {{1, 0x234},
							{0, 0x7f0000001000}};
	struct sp_record r[9] = {
		{.type = SP_RECORD_INFO},   {.type = SP_RECORD_MODULE},
		{.type = SP_RECORD_STACK},  {.type = SP_RECORD_THREAD},
		{.type = SP_RECORD_SAMPLE}, {.type = SP_RECORD_SAMPLE},
		{.type = SP_RECORD_FREE},   {.type = SP_RECORD_RSS},
		{.type = SP_RECORD_MARK},
	};
	struct sp_chunk_state s;
	uint8_t got[sizeof(example)];
	size_t at = 0;

	r[0].u.info = (struct sp_record_info){"exe", 3, "/bin/true", 9};
	r[1].u.module =
		(struct sp_record_module){1,
					  0x555500001000,
					  0x555500009000,
					  0x555500000000,
					  1,
					  (const uint8_t *)"\xde\xad\xbe\xef",
					  4,
					  "/bin/true",
					  9};
	r[2].u.stack = (struct sp_record_stack){1, 0, frames, 2};
	r[3].u.thread = (struct sp_record_thread){1, 4711, 1000, "main", 4};
	r[4].u.sample = (struct sp_record_sample){
		1, 1500, 0x555500020010, 300, 17, 524288, 1, 1, 0, false};
	r[5].u.sample = (struct sp_record_sample){
		2, 1400, 0x555500020000, 16, 0, 524288, 1, 1, 1, false};
	r[6].u.free = (struct sp_record_free){2, 1450, 1, 0, true, 0};
	r[7].u.rss = (struct sp_record_rss){10000, 5 << 20};
	r[8].u.mark = (struct sp_record_mark){
		1, SP_MARK_PHASE, 20000, 316, 2, 0, 0, 0, 524288, "load", 4};
	sp_chunk_state_init(&s, 0x0123456789abcdef, 1);
	assert_true(s.hash == 0xe4c80652783696b4);
	for (size_t i = 0; i < 9; i++) {
		struct sp_encoded e =
			sp_encode(&s, got + at, sizeof(got) - at, &r[i]);

		assert_int_not_equal(e.bytes, 0);
		got[at] = e.type;
		at += e.bytes;
	}
	assert_int_equal(at, sizeof(example) - 1);
	assert_memory_equal(got, example, at);
}

/* A thread that allocates small objects one after another, each freed soon. */
static void check_pair_size(uint64_t step_ns, const struct sp_record *end,
			    size_t both, size_t one)
{
	struct sp_record born = {.type = SP_RECORD_SAMPLE}, freed = *end;
	struct sp_chunk_state s;
	uint8_t out[64];

	sp_chunk_state_init(&s, 1, 1);
	for (uint64_t i = 1; i <= 1000; i++) {
		const uint64_t at = 0x7f1234567000 - 64 * i, now = step_ns * i;
		size_t n, m;

		born.u.sample = (struct sp_record_sample){
			1000000 + i,     now,  at,           48,
			i % 48,          1,    100 + i % 20, 3,
			SP_ENTRY_MALLOC, false};
		if (end->type == SP_RECORD_FREE)
			freed.u.free = (struct sp_record_free){
				1000000 + i, now + step_ns * 3 / 5, 3, 0, true,
				96};
		else
			freed.u.free_address = (struct sp_record_free_address){
				at, now + step_ns * 3 / 5, 3};
		n = sp_encode(&s, out, sizeof(out), &born).bytes;
		m = sp_encode(&s, out, sizeof(out), &freed).bytes;
		assert_true(n > 0 && m > 0);
		if (i == 1)
			continue;
		assert_in_range(m, 1, one);
		assert_in_range(n + m, 1, both);
	}
}

/* Bytes of a pair, and of its free: by its sample, a microsecond apart, and by
 * its address, between two readings of the clock. */
TEST(pair_size)
{
	check_pair_size(1000, &(struct sp_record){.type = SP_RECORD_FREE}, 24,
			9);
	check_pair_size(2, &(struct sp_record){.type = SP_RECORD_FREE_ADDRESS},
			19, 7);
}

TEST(no_record)
{
	struct sp_chunk_state s, before;
	struct sp_record none = {.type = SP_RECORD_NONE};
	uint8_t out[64];

	sp_chunk_state_init(&s, 1, 1);
	before = s;
	assert_int_equal(sp_encode(&s, out, sizeof(out), &none).bytes, 0);
	assert_memory_equal(&s, &before, sizeof(s));
}

/* The check of a fixed structure depends on the file, on the kind and on every
 * byte before it, and not on itself. */
TEST(fixed_check)
{
	uint8_t bytes[96], copy[96];
	uint64_t check, stored;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37);
	memcpy(copy, bytes, sizeof(copy));
	model_seal(77, SP_CHECK_SLOT, copy, sizeof(copy));
	memcpy(&stored, copy + 88, 8);
	check = sp_format_check(77, SP_CHECK_SLOT, bytes, sizeof(bytes));
	assert_true(check == stored);
	assert_true(check == sp_format_check(77, SP_CHECK_SLOT, copy, 96));
	assert_true(check != sp_format_check(78, SP_CHECK_SLOT, bytes, 96));
	assert_true(check != sp_format_check(77, SP_CHECK_CHUNK, bytes, 96));
	for (size_t i = 0; i < 88; i++) {
		bytes[i] ^= 0x10;
		assert_true(check !=
			    sp_format_check(77, SP_CHECK_SLOT, bytes, 96));
		bytes[i] ^= 0x10;
	}
}

/* Names of the positions that the file stores. */
TEST(names)
{
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++) {
		assert_true(strlen(sp_loss_name(i)) > 0);
		assert_true(strlen(sp_loss_help(i)) > 0);
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(sp_loss_name(i),
						sp_loss_name(k));
	}
	assert_null(sp_loss_name(SP_LOSS_COUNT));
	assert_null(sp_loss_help(SP_LOSS_COUNT));
	assert_string_equal(sp_entry_name(SP_ENTRY_MALLOC), "malloc");
	for (unsigned int i = 0; i < SP_ENTRY_COUNT; i++)
		assert_string_not_equal(sp_entry_name(i), "?");
	assert_string_equal(sp_entry_name(SP_ENTRY_COUNT), "?");
	assert_string_equal(sp_entry_name(31), "?");
}

TEST_MAIN(NULL, NULL)
