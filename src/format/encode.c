/* SPDX-License-Identifier: MIT */
/*
 * Records to bytes.  The payload's size is computed first, so that the length
 * varint is right at once and a record that does not fit touches nothing.
 * Samples and frees, which are nearly all records, are so short that their
 * length is always one byte: they are written at once.
 */
#include "format/encode.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

uint64_t sp_format_check(uint64_t file_id, uint64_t kind, const void *data,
			 size_t bytes)
{
	uint64_t h = sp_hash_word(sp_hash_word(0, file_id), kind);

	return sp_hash_bytes(h, data, bytes - sizeof(uint64_t));
}

void sp_chunk_state_init(struct sp_chunk_state *state, uint64_t file_id,
			 uint64_t chunk_index)
{
	memset(state, 0, sizeof(*state));
	state->hash = sp_hash_word(sp_hash_word(0, file_id), chunk_index);
}

/* A record under construction. */
struct frame {
	uint8_t *start;
	uint8_t *at; /* NULL: it did not fit */
};

static struct frame begin_record(uint8_t *out, size_t room,
				 size_t payload_bytes)
{
	size_t head = 1 + sp_varint_bytes(payload_bytes);
	struct frame f = {out, NULL};

	if (head + payload_bytes + 2 > room)
		return f;
	f.at = sp_varint_put(out + 1, payload_bytes);
	return f;
}

static void put_varint(struct frame *f, uint64_t v)
{
	f->at = sp_varint_put(f->at, v);
}

static struct sp_encoded finish_record(struct sp_chunk_state *state,
				       struct frame *f, uint8_t type)
{
	uint64_t h = sp_hash_word(state->hash, type);
	size_t n;

	h = sp_hash_bytes(h, f->start + 1, (size_t)(f->at - f->start - 1));
	state->hash = h;
	*f->at++ = (uint8_t)(h >> 48);
	*f->at++ = (uint8_t)(h >> 56);
	n = (size_t)(f->at - f->start);
	return (struct sp_encoded){n, type};
}

static const struct sp_encoded does_not_fit = {0, 0};

/* A record of numbers, and of texts behind them. */
struct plain {
	size_t n;
	uint64_t fields[9];
	struct text {
		const void *data;
		size_t bytes;
	} texts[2];
};

#define NUMBERS(...)                                                           \
	.n = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),             \
	.fields = {__VA_ARGS__}

static struct plain plain_info(const struct sp_record_info *r)
{
	return (struct plain){
		NUMBERS(r->key_bytes),
		.texts = {{r->key, r->key_bytes}, {r->value, r->value_bytes}},
	};
}

static struct plain plain_module(const struct sp_record_module *r)
{
	return (struct plain){
		NUMBERS(r->id, r->start_pc, r->end_pc - r->start_pc,
			sp_zigzag((int64_t)(r->start_pc - r->bias)), r->flags,
			r->build_id_bytes),
		.texts = {{r->build_id, r->build_id_bytes},
			  {r->path, r->path_bytes}},
	};
}

static struct plain plain_thread(const struct sp_record_thread *r)
{
	return (struct plain){
		NUMBERS(r->index, r->tid, r->time_ns),
		.texts = {{r->name, r->name_bytes}},
	};
}

static struct plain plain_thread_end(const struct sp_record_thread_end *r)
{
	return (struct plain){
		NUMBERS(r->index, r->time_ns, r->alloc_bytes, r->alloc_objects),
		.texts = {{r->name, r->name_bytes}},
	};
}

static struct plain plain_mark(const struct sp_record_mark *r)
{
	return (struct plain){
		NUMBERS(r->number, r->kind, r->time_ns, r->alloc_bytes,
			r->alloc_objects, r->unsampled_bytes,
			r->unsampled_objects, r->slack_bytes, r->period_bytes),
		.texts = {{r->name, r->name_bytes}},
	};
}

static struct plain plain_map(const struct sp_record_map *r)
{
	return (struct plain){NUMBERS(r->number, r->flags, r->time_ns, r->start,
				      r->bytes, r->thread, r->stack)};
}

static struct plain plain_unmap(const struct sp_record_unmap *r)
{
	return (struct plain){
		NUMBERS(r->number, r->time_ns, r->start, r->bytes, r->thread)};
}

static struct plain plain_code(const struct sp_record_code *r)
{
	return (struct plain){
		NUMBERS(r->frame.module, r->frame.offset, r->line,
			r->function_bytes),
		.texts = {{r->function, r->function_bytes},
			  {r->file, r->file_bytes}},
	};
}

static void put_text(struct frame *f, const struct text *text)
{
	if (text->bytes)
		memcpy(f->at, text->data, text->bytes);
	f->at += text->bytes;
}

static struct sp_encoded encode_stack(struct sp_chunk_state *state,
				      uint8_t *out, size_t room,
				      const struct sp_record_stack *r)
{
	size_t bytes = sp_varint_bytes(r->id) + sp_varint_bytes(r->flags) +
		       sp_varint_bytes(r->n_frames);
	struct frame f;

	for (size_t i = 0; i < r->n_frames; i++)
		bytes += sp_varint_bytes(r->frames[i].module) +
			 sp_varint_bytes(r->frames[i].offset);
	f = begin_record(out, room, bytes);
	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->id);
	put_varint(&f, r->flags);
	put_varint(&f, r->n_frames);
	for (size_t i = 0; i < r->n_frames; i++) {
		put_varint(&f, r->frames[i].module);
		put_varint(&f, r->frames[i].offset);
	}
	return finish_record(state, &f, SP_RECORD_STACK);
}

/*
 * A record of numbers that begins with a head byte.  `out` may be too small for
 * the longest one: then `buffer` has what is to be copied.
 */
#define SHORT_FIELDS  8
#define SHORT_PAYLOAD (1 + SHORT_FIELDS * SP_VARINT_MAX_BYTES)
#define SHORT_MAX     (2 + SHORT_PAYLOAD + 2)

static_assert(SHORT_PAYLOAD < 0x80, "the length has one byte");

struct short_record {
	struct frame frame;
	uint8_t buffer[SHORT_MAX];
};

/* A writer that is stopped in the middle leaves a record that is no longer than
 * its length says, by which readers know it. */
static void set_length(uint8_t *start, size_t payload_bytes)
{
	atomic_thread_fence(memory_order_release);
	start[1] = (uint8_t)payload_bytes;
	atomic_thread_fence(memory_order_release);
}

static void short_begin(struct short_record *s, uint8_t *out, size_t room)
{
	s->frame.start = room < SHORT_MAX ? s->buffer : out;
	s->frame.at = s->frame.start + 3;
	set_length(s->frame.start, SHORT_PAYLOAD);
}

/* The seven bits of each byte to be, with a bit for more in all but the last
 * one.  v < 2^28, and most are. */
static uint32_t spread_id(uint32_t v, unsigned int bytes)
{
	v = (v & 0x3fffu) | (v & 0xfffc000u) << 2;
	v = (v & 0x7f007fu) | (v & 0x3f803f80u) << 1;
	return v | (0x808080u & ((1u << (8 * bytes - 8)) - 1));
}

/* put_varint(), mostly without a branch on the length: what follows is zero so
 * far. */
static inline void short_put(struct short_record *s, uint64_t v)
{
	uint8_t *at = s->frame.at;
	unsigned int bits, bytes;
	uint32_t word;

	if (v < 0x80) {
		*at = (uint8_t)v;
		s->frame.at = at + 1;
		return;
	}
	if (v >> 28) {
		s->frame.at = sp_varint_put(at, v);
		return;
	}
	bits = 32 - (unsigned int)__builtin_clz((uint32_t)v);
	bytes = (9 * bits + 64) / 64; /* bits / 7, rounded up */
	word = spread_id((uint32_t)v, bytes);
	memcpy(at, &word, sizeof(word));
	s->frame.at = at + bytes;
}

/* False: it did not fit, nothing was written. */
static bool short_end(struct short_record *s, uint8_t *out, size_t room,
		      uint8_t head)
{
	const size_t n = (size_t)(s->frame.at - s->frame.start);

	s->frame.start[2] = head;
	if (s->frame.start != out) {
		if (n + 2 > room)
			return false;
		set_length(out, n - 2);
		memcpy(out + 2, s->buffer + 2, n - 2);
		s->frame = (struct frame){out, out + n};
	}
	set_length(out, n - 2);
	return true;
}

static struct sp_encoded encode_sample(struct sp_chunk_state *state,
				       uint8_t *out, size_t room,
				       const struct sp_record_sample *r)
{
	uint8_t head = r->entry & SP_SAMPLE_ENTRY;
	struct short_record s;

	short_begin(&s, out, room);
	if (r->is_again)
		head |= SP_SAMPLE_AGAIN;
	if (r->thread != state->thread) {
		head |= SP_SAMPLE_THREAD;
		short_put(&s, r->thread);
	}
	if (r->period_bytes != state->period_bytes) {
		head |= SP_SAMPLE_PERIOD;
		short_put(&s, r->period_bytes);
	}
	short_put(&s, sp_zigzag((int64_t)(r->id - state->sample_id)));
	short_put(&s, sp_zigzag((int64_t)(r->time_ns - state->time_ns)));
	short_put(&s, sp_zigzag((int64_t)(r->address - state->address)));
	short_put(&s, r->size_bytes);
	short_put(&s, r->offset_bytes);
	short_put(&s, state->has_stack_steps
			      ? sp_zigzag((int64_t)(r->stack - state->stack))
			      : r->stack);
	if (!short_end(&s, out, room, head))
		return does_not_fit;
	state->thread = r->thread;
	state->period_bytes = r->period_bytes;
	state->sample_id = r->id;
	state->time_ns = r->time_ns;
	state->address = r->address;
	state->stack = r->stack;
	return finish_record(state, &s.frame, SP_RECORD_SAMPLE);
}

static struct sp_encoded encode_free(struct sp_chunk_state *state, uint8_t *out,
				     size_t room,
				     const struct sp_record_free *r)
{
	uint8_t head = r->flags & SP_FREE_MISSED ? SP_FREE_HEAD_MISSED : 0;
	struct short_record s;

	short_begin(&s, out, room);
	if (r->thread != state->thread) {
		head |= SP_FREE_HEAD_THREAD;
		short_put(&s, r->thread);
	}
	short_put(&s, sp_zigzag((int64_t)(r->id - state->freed_id)));
	short_put(&s, sp_zigzag((int64_t)(r->time_ns - state->time_ns)));
	if (r->has_age) {
		head |= SP_FREE_HEAD_AGE;
		short_put(&s, r->age_bytes);
	}
	if (!short_end(&s, out, room, head))
		return does_not_fit;
	state->thread = r->thread;
	state->freed_id = r->id;
	state->time_ns = r->time_ns;
	return finish_record(state, &s.frame, SP_RECORD_FREE);
}

static struct sp_encoded encode_free_address(
	struct sp_chunk_state *state, uint8_t *out, size_t room,
	const struct sp_record_free_address *r)
{
	uint8_t head = 0;
	struct short_record s;

	short_begin(&s, out, room);
	if (r->thread != state->thread) {
		head |= SP_FREE_ADDRESS_THREAD;
		short_put(&s, r->thread);
	}
	short_put(&s, sp_zigzag((int64_t)(r->time_ns - state->time_ns)));
	short_put(&s, sp_zigzag((int64_t)(r->address - state->address)));
	if (!short_end(&s, out, room, head))
		return does_not_fit;
	state->thread = r->thread;
	state->time_ns = r->time_ns;
	state->address = r->address;
	return finish_record(state, &s.frame, SP_RECORD_FREE_ADDRESS);
}

/* Without numbers if it is none of these. */
static struct plain plain_of(const struct sp_record *record)
{
	switch (record->type) {
	case SP_RECORD_INFO:
		return plain_info(&record->u.info);
	case SP_RECORD_MODULE:
		return plain_module(&record->u.module);
	case SP_RECORD_THREAD:
		return plain_thread(&record->u.thread);
	case SP_RECORD_THREAD_END:
		return plain_thread_end(&record->u.thread_end);
	case SP_RECORD_RSS:
		return (struct plain){NUMBERS(record->u.rss.time_ns,
					      record->u.rss.rss_bytes)};
	case SP_RECORD_MARK:
		return plain_mark(&record->u.mark);
	case SP_RECORD_ASKED:
		return (struct plain){NUMBERS(record->u.asked.number,
					      record->u.asked.time_ns)};
	case SP_RECORD_MAP:
		return plain_map(&record->u.map);
	case SP_RECORD_UNMAP:
		return plain_unmap(&record->u.unmap);
	case SP_RECORD_CODE:
		return plain_code(&record->u.code);
	default:
		return (struct plain){0};
	}
}

/* By itself, so that a sample needs no stack for it.  Records that are not
 * plain are of the offline side: format/rewrite.h. */
static __attribute__((noinline)) struct sp_encoded encode_plain(
	struct sp_chunk_state *state, uint8_t *out, size_t room,
	const struct sp_record *record)
{
	const struct plain r = plain_of(record);
	size_t bytes = r.texts[0].bytes + r.texts[1].bytes;
	struct frame f;

	if (!r.n)
		return does_not_fit;
	for (size_t i = 0; i < r.n; i++)
		bytes += sp_varint_bytes(r.fields[i]);
	f = begin_record(out, room, bytes);
	if (!f.at)
		return does_not_fit;
	for (size_t i = 0; i < r.n; i++)
		put_varint(&f, r.fields[i]);
	put_text(&f, &r.texts[0]);
	put_text(&f, &r.texts[1]);
	return finish_record(state, &f, (uint8_t)record->type);
}

struct sp_encoded sp_encode(struct sp_chunk_state *state, uint8_t *out,
			    size_t room, const struct sp_record *record)
{
	switch (record->type) {
	case SP_RECORD_STACK:
		return encode_stack(state, out, room, &record->u.stack);
	case SP_RECORD_SAMPLE:
		return encode_sample(state, out, room, &record->u.sample);
	case SP_RECORD_FREE:
		return encode_free(state, out, room, &record->u.free);
	case SP_RECORD_FREE_ADDRESS:
		return encode_free_address(state, out, room,
					   &record->u.free_address);
	default:
		return encode_plain(state, out, room, record);
	}
}
