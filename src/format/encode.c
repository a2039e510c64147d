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

static void put_bytes(struct frame *f, const void *data, size_t n)
{
	if (n)
		memcpy(f->at, data, n);
	f->at += n;
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

static struct sp_encoded encode_info(struct sp_chunk_state *state, uint8_t *out,
				     size_t room,
				     const struct sp_record_info *r)
{
	struct frame f = begin_record(out, room,
				      sp_varint_bytes(r->key_bytes) +
					      r->key_bytes + r->value_bytes);

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->key_bytes);
	put_bytes(&f, r->key, r->key_bytes);
	put_bytes(&f, r->value, r->value_bytes);
	return finish_record(state, &f, SP_RECORD_INFO);
}

static struct sp_encoded encode_module(struct sp_chunk_state *state,
				       uint8_t *out, size_t room,
				       const struct sp_record_module *r)
{
	uint64_t span = r->end_pc - r->start_pc;
	uint64_t bias = sp_zigzag((int64_t)(r->start_pc - r->bias));
	struct frame f = begin_record(
		out, room,
		sp_varint_bytes(r->id) + sp_varint_bytes(r->start_pc) +
			sp_varint_bytes(span) + sp_varint_bytes(bias) +
			sp_varint_bytes(r->flags) +
			sp_varint_bytes(r->build_id_bytes) + r->build_id_bytes +
			r->path_bytes);

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->id);
	put_varint(&f, r->start_pc);
	put_varint(&f, span);
	put_varint(&f, bias);
	put_varint(&f, r->flags);
	put_varint(&f, r->build_id_bytes);
	put_bytes(&f, r->build_id, r->build_id_bytes);
	put_bytes(&f, r->path, r->path_bytes);
	return finish_record(state, &f, SP_RECORD_MODULE);
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

static struct sp_encoded encode_thread(struct sp_chunk_state *state,
				       uint8_t *out, size_t room,
				       const struct sp_record_thread *r)
{
	struct frame f = begin_record(
		out, room,
		sp_varint_bytes(r->index) + sp_varint_bytes(r->tid) +
			sp_varint_bytes(r->time_ns) + r->name_bytes);

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->index);
	put_varint(&f, r->tid);
	put_varint(&f, r->time_ns);
	put_bytes(&f, r->name, r->name_bytes);
	return finish_record(state, &f, SP_RECORD_THREAD);
}

static struct sp_encoded encode_thread_end(struct sp_chunk_state *state,
					   uint8_t *out, size_t room,
					   const struct sp_record_thread_end *r)
{
	struct frame f = begin_record(
		out, room,
		sp_varint_bytes(r->index) + sp_varint_bytes(r->time_ns) +
			sp_varint_bytes(r->alloc_bytes) +
			sp_varint_bytes(r->alloc_objects) + r->name_bytes);

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->index);
	put_varint(&f, r->time_ns);
	put_varint(&f, r->alloc_bytes);
	put_varint(&f, r->alloc_objects);
	put_bytes(&f, r->name, r->name_bytes);
	return finish_record(state, &f, SP_RECORD_THREAD_END);
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

static struct sp_encoded encode_rss(struct sp_chunk_state *state, uint8_t *out,
				    size_t room, const struct sp_record_rss *r)
{
	struct frame f = begin_record(out, room,
				      sp_varint_bytes(r->time_ns) +
					      sp_varint_bytes(r->rss_bytes));

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->time_ns);
	put_varint(&f, r->rss_bytes);
	return finish_record(state, &f, SP_RECORD_RSS);
}

static struct sp_encoded encode_mark(struct sp_chunk_state *state, uint8_t *out,
				     size_t room,
				     const struct sp_record_mark *r)
{
	const uint64_t fields[] = {
		r->number,
		r->kind,
		r->time_ns,
		r->alloc_bytes,
		r->alloc_objects,
		r->unsampled_bytes,
		r->unsampled_objects,
		r->slack_bytes,
		r->period_bytes,
	};
	const size_t n = sizeof(fields) / sizeof(fields[0]);
	size_t bytes = r->name_bytes;
	struct frame f;

	for (size_t i = 0; i < n; i++)
		bytes += sp_varint_bytes(fields[i]);
	f = begin_record(out, room, bytes);
	if (!f.at)
		return does_not_fit;
	for (size_t i = 0; i < n; i++)
		put_varint(&f, fields[i]);
	put_bytes(&f, r->name, r->name_bytes);
	return finish_record(state, &f, SP_RECORD_MARK);
}

static struct sp_encoded encode_asked(struct sp_chunk_state *state,
				      uint8_t *out, size_t room,
				      const struct sp_record_asked *r)
{
	struct frame f = begin_record(out, room,
				      sp_varint_bytes(r->number) +
					      sp_varint_bytes(r->time_ns));

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->number);
	put_varint(&f, r->time_ns);
	return finish_record(state, &f, SP_RECORD_ASKED);
}

/* A record of numbers alone. */
static struct sp_encoded encode_numbers(struct sp_chunk_state *state,
					uint8_t *out, size_t room,
					enum sp_record_type type,
					const uint64_t *fields, size_t n)
{
	size_t bytes = 0;
	struct frame f;

	for (size_t i = 0; i < n; i++)
		bytes += sp_varint_bytes(fields[i]);
	f = begin_record(out, room, bytes);
	if (!f.at)
		return does_not_fit;
	for (size_t i = 0; i < n; i++)
		put_varint(&f, fields[i]);
	return finish_record(state, &f, (uint8_t)type);
}

static struct sp_encoded encode_map(struct sp_chunk_state *state, uint8_t *out,
				    size_t room, const struct sp_record_map *r)
{
	const uint64_t fields[] = {r->number, r->flags,  r->time_ns, r->start,
				   r->bytes,  r->thread, r->stack};

	return encode_numbers(state, out, room, SP_RECORD_MAP, fields,
			      sizeof(fields) / sizeof(fields[0]));
}

static struct sp_encoded encode_unmap(struct sp_chunk_state *state,
				      uint8_t *out, size_t room,
				      const struct sp_record_unmap *r)
{
	const uint64_t fields[] = {r->number, r->time_ns, r->start, r->bytes,
				   r->thread};

	return encode_numbers(state, out, room, SP_RECORD_UNMAP, fields,
			      sizeof(fields) / sizeof(fields[0]));
}

static struct sp_encoded encode_code(struct sp_chunk_state *state, uint8_t *out,
				     size_t room,
				     const struct sp_record_code *r)
{
	struct frame f =
		begin_record(out, room,
			     sp_varint_bytes(r->frame.module) +
				     sp_varint_bytes(r->frame.offset) +
				     sp_varint_bytes(r->line) +
				     sp_varint_bytes(r->function_bytes) +
				     r->function_bytes + r->file_bytes);

	if (!f.at)
		return does_not_fit;
	put_varint(&f, r->frame.module);
	put_varint(&f, r->frame.offset);
	put_varint(&f, r->line);
	put_varint(&f, r->function_bytes);
	put_bytes(&f, r->function, r->function_bytes);
	put_bytes(&f, r->file, r->file_bytes);
	return finish_record(state, &f, SP_RECORD_CODE);
}

struct sp_encoded sp_encode(struct sp_chunk_state *state, uint8_t *out,
			    size_t room, const struct sp_record *record)
{
	switch (record->type) {
	case SP_RECORD_INFO:
		return encode_info(state, out, room, &record->u.info);
	case SP_RECORD_MODULE:
		return encode_module(state, out, room, &record->u.module);
	case SP_RECORD_STACK:
		return encode_stack(state, out, room, &record->u.stack);
	case SP_RECORD_THREAD:
		return encode_thread(state, out, room, &record->u.thread);
	case SP_RECORD_THREAD_END:
		return encode_thread_end(state, out, room,
					 &record->u.thread_end);
	case SP_RECORD_SAMPLE:
		return encode_sample(state, out, room, &record->u.sample);
	case SP_RECORD_FREE:
		return encode_free(state, out, room, &record->u.free);
	case SP_RECORD_FREE_ADDRESS:
		return encode_free_address(state, out, room,
					   &record->u.free_address);
	case SP_RECORD_RSS:
		return encode_rss(state, out, room, &record->u.rss);
	case SP_RECORD_MARK:
		return encode_mark(state, out, room, &record->u.mark);
	case SP_RECORD_ASKED:
		return encode_asked(state, out, room, &record->u.asked);
	case SP_RECORD_MAP:
		return encode_map(state, out, room, &record->u.map);
	case SP_RECORD_UNMAP:
		return encode_unmap(state, out, room, &record->u.unmap);
	case SP_RECORD_CODE:
		return encode_code(state, out, room, &record->u.code);
	/* Of the offline side: format/rewrite.h. */
	case SP_RECORD_NAME:
	case SP_RECORD_SYMBOL:
	case SP_RECORD_NONE:
		break;
	}
	return does_not_fit;
}
