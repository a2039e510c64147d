/* SPDX-License-Identifier: MIT */
/*
 * Bytes to records.  Bytes are untrusted: a slice never reads past its end,
 * the check is verified before a payload is looked at, and every value is
 * tested against its range.
 */
#include "format/decode.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/bytes.h"
#include "base/hash.h"

static const char *decode_info(struct sp_slice *s, struct sp_record_info *r)
{
	r->key_bytes = sp_slice_varint(s);
	r->key = (const char *)sp_slice_take(s, r->key_bytes);
	if (s->failed)
		return "info key";
	r->value_bytes = sp_slice_left(s);
	r->value = (const char *)sp_slice_take(s, r->value_bytes);
	return NULL;
}

static const char *decode_module(struct sp_slice *s, struct sp_record_module *r)
{
	uint64_t span;

	r->id = sp_slice_varint(s);
	r->start_pc = sp_slice_varint(s);
	span = sp_slice_varint(s);
	r->bias = r->start_pc - (uint64_t)sp_unzigzag(sp_slice_varint(s));
	r->flags = sp_slice_varint(s);
	r->build_id_bytes = sp_slice_varint(s);
	if (s->failed || r->id == 0 || r->id > UINT32_MAX)
		return "module id";
	if (__builtin_add_overflow(r->start_pc, span, &r->end_pc))
		return "module size";
	if (r->build_id_bytes > SP_FORMAT_BUILD_ID_MAX)
		return "build id length";
	r->build_id = sp_slice_take(s, r->build_id_bytes);
	if (s->failed)
		return "build id";
	r->path_bytes = sp_slice_left(s);
	r->path = (const char *)sp_slice_take(s, r->path_bytes);
	return NULL;
}

static const char *decode_stack(struct sp_slice *s, struct sp_decoded *d)
{
	uint64_t n;

	d->u.stack.id = sp_slice_varint(s);
	d->u.stack.flags = sp_slice_varint(s);
	n = sp_slice_varint(s);
	if (s->failed || d->u.stack.id == 0 || d->u.stack.id > UINT32_MAX)
		return "stack id";
	if (n > SP_FORMAT_FRAMES_MAX)
		return "number of frames";
	d->u.stack.n_frames = (uint32_t)n;
	d->u.stack.frames = s->at;
	d->u.stack.frames_bytes = sp_slice_left(s);
	for (uint64_t i = 0; i < n; i++) {
		if (sp_slice_varint(s) > UINT32_MAX)
			return "frame module";
		sp_slice_varint(s);
	}
	return s->failed ? "frames" : NULL;
}

static const char *decode_thread(struct sp_slice *s, struct sp_record_thread *r)
{
	r->index = sp_slice_varint(s);
	r->tid = sp_slice_varint(s);
	r->time_ns = sp_slice_varint(s);
	if (s->failed || r->index == 0 || r->index > UINT32_MAX)
		return "thread index";
	r->name_bytes = sp_slice_left(s);
	r->name = (const char *)sp_slice_take(s, r->name_bytes);
	return NULL;
}

static const char *decode_thread_end(struct sp_slice *s,
				     struct sp_record_thread_end *r)
{
	r->index = sp_slice_varint(s);
	r->time_ns = sp_slice_varint(s);
	r->alloc_bytes = sp_slice_varint(s);
	r->alloc_objects = sp_slice_varint(s);
	if (s->failed || r->index == 0 || r->index > UINT32_MAX)
		return "thread index";
	r->name_bytes = sp_slice_left(s);
	r->name = (const char *)sp_slice_take(s, r->name_bytes);
	return NULL;
}

/*
 * A payload, and where numbers end in its first 32 bytes, if the chunk has that
 * many and 8 more: nearly all records are samples and frees, which are short,
 * and nearly all of their numbers have no more than 8 bytes.  It stays in
 * registers as long as nobody takes its address.
 */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	uint32_t ends; /* bit i: at[i] ends a number; 0: not known */
	bool failed;
};

#define WIDE 32

/* The top bits of WIDE bytes: bit i is that of at[i]. */
static inline uint32_t top_bits(const uint8_t *at)
{
#ifdef __SSE2__
	return (uint32_t)_mm_movemask_epi8(
		       _mm_loadu_si128((const __m128i *)at)) |
	       (uint32_t)_mm_movemask_epi8(
		       _mm_loadu_si128((const __m128i *)(at + 16)))
		       << 16;
#else
	uint32_t bits = 0;

	for (unsigned int i = 0; i < WIDE; i += 8) {
		uint64_t w;

		memcpy(&w, at + i, sizeof(w));
		/* Byte k is multiplied to bit 56 + k, and nothing carries. */
		w = (w >> 7 & 0x0101010101010101ull) * 0x0102040810204080ull;
		bits |= (uint32_t)(w >> 56) << i;
	}
	return bits;
#endif
}

/* What may be read ends at `readable`. */
static inline struct cursor begin_record(const uint8_t *at, const uint8_t *end,
					 const uint8_t *readable)
{
	const size_t n = (size_t)(end - at);
	uint32_t bits;

	if (readable - at < WIDE + 8)
		return (struct cursor){at, end, 0, false};
	bits = ~top_bits(at);
	if (n < WIDE)
		bits &= (1u << n) - 1;
	return (struct cursor){at, end, bits, false};
}

/* The seven low bits of each of `bytes` bytes of w side by side. */
static inline uint64_t squeeze_id(uint64_t w, unsigned int bytes)
{
	if (bytes <= 4) {
		uint32_t v =
			(uint32_t)w << (32 - 8 * bytes) >> (32 - 8 * bytes);

		v = (v & 0x007f007fu) | (v & 0x7f007f00u) >> 1;
		return (v & 0x00003fffu) | (v & 0x3fff0000u) >> 2;
	}
	w = w << (64 - 8 * bytes) >> (64 - 8 * bytes);
	w = (w & 0x007f007f007f007full) | (w & 0x7f007f007f007f00ull) >> 1;
	w = (w & 0x00003fff00003fffull) | (w & 0x3fff00003fff0000ull) >> 2;
	return (w & 0x000000000fffffffull) | (w & 0x0fffffff00000000ull) >> 4;
}

/* One that ends elsewhere, or is longer. */
static __attribute__((noinline)) struct cursor take_long(struct cursor c,
							 uint64_t *ret)
{
	struct sp_slice s = {c.at, c.end, c.failed};

	*ret = sp_slice_varint(&s);
	c.ends = !s.failed && s.at - c.at < WIDE ? c.ends >> (s.at - c.at) : 0;
	c.at = s.at;
	c.failed = s.failed;
	return c;
}

/* sp_slice_varint(), mostly without a branch on the length. */
static inline __attribute__((always_inline)) uint64_t varint(struct cursor *c)
{
	const unsigned int bytes =
		(unsigned int)__builtin_ctz(c->ends | 1u << 31) + 1;
	uint64_t w;

	if (__builtin_expect(!c->ends || bytes > 8, 0)) {
		*c = take_long(*c, &w);
		return w;
	}
	memcpy(&w, c->at, 8);
	c->ends >>= bytes;
	c->at += bytes;
	return squeeze_id(w, bytes);
}

/* The first byte, which is none of the numbers. */
static inline uint8_t head_of(struct cursor *c)
{
	c->ends >>= 1;
	if (c->at < c->end)
		return *c->at++;
	c->failed = true;
	return 0;
}

static inline uint64_t from_zigzag(uint64_t v)
{
	return (v >> 1) ^ -(v & 1);
}

static inline __attribute__((always_inline)) uint64_t signed_varint(
	struct cursor *c)
{
	return from_zigzag(varint(c));
}

/* One that has a single byte nearly always: the processor guesses that. */
static inline __attribute__((always_inline)) uint64_t short_varint(
	struct cursor *c)
{
	if (!(c->ends & 1))
		return varint(c);
	c->ends >>= 1;
	return *c->at++;
}

static const char *decode_sample(struct cursor c, struct sp_chunk_state *state,
				 struct sp_record_sample *r)
{
	uint8_t head = head_of(&c);

	r->entry = head & SP_SAMPLE_ENTRY;
	r->is_again = head & SP_SAMPLE_AGAIN;
	r->thread = head & SP_SAMPLE_THREAD ? varint(&c) : state->thread;
	r->period_bytes =
		head & SP_SAMPLE_PERIOD ? varint(&c) : state->period_bytes;
	r->id = state->sample_id + from_zigzag(short_varint(&c));
	r->time_ns = state->time_ns + signed_varint(&c);
	r->address = state->address + signed_varint(&c);
	r->size_bytes = varint(&c);
	r->offset_bytes = varint(&c);
	r->stack = varint(&c);
	if (state->has_stack_steps)
		r->stack = state->stack + from_zigzag(r->stack);
	if (c.failed)
		return "sample";
	if (r->thread > UINT32_MAX)
		return "sample thread";
	if (r->period_bytes == 0 || r->period_bytes > SP_FORMAT_PERIOD_MAX)
		return "sample period";
	if (r->size_bytes == 0)
		return "sample size";
	if (r->offset_bytes >= r->size_bytes)
		return "sample offset";
	if (r->stack > UINT32_MAX)
		return "sample stack";
	state->thread = r->thread;
	state->period_bytes = r->period_bytes;
	state->sample_id = r->id;
	state->time_ns = r->time_ns;
	state->address = r->address;
	state->stack = r->stack;
	return NULL;
}

static const char *decode_free(struct cursor c, struct sp_chunk_state *state,
			       struct sp_record_free *r)
{
	uint8_t head = head_of(&c);

	r->flags = head & SP_FREE_HEAD_MISSED ? SP_FREE_MISSED : 0;
	r->thread = head & SP_FREE_HEAD_THREAD ? varint(&c) : state->thread;
	r->id = state->freed_id + signed_varint(&c);
	r->time_ns = state->time_ns + signed_varint(&c);
	r->has_age = head & SP_FREE_HEAD_AGE;
	r->age_bytes = r->has_age ? varint(&c) : 0;
	if (c.failed || (head & SP_FREE_HEAD_RESERVED))
		return "free";
	if (r->thread > UINT32_MAX)
		return "free thread";
	state->thread = r->thread;
	state->freed_id = r->id;
	state->time_ns = r->time_ns;
	return NULL;
}

static const char *decode_free_address(struct cursor c,
				       struct sp_chunk_state *state,
				       struct sp_record_free_address *r)
{
	uint8_t head = head_of(&c);

	r->thread = head & SP_FREE_ADDRESS_THREAD ? varint(&c) : state->thread;
	r->time_ns = state->time_ns + signed_varint(&c);
	r->address = state->address + signed_varint(&c);
	if (c.failed || (head & SP_FREE_ADDRESS_RESERVED))
		return "free";
	if (r->thread > UINT32_MAX)
		return "free thread";
	state->thread = r->thread;
	state->time_ns = r->time_ns;
	state->address = r->address;
	return NULL;
}

static const char *decode_rss(struct sp_slice *s, struct sp_record_rss *r)
{
	r->time_ns = sp_slice_varint(s);
	r->rss_bytes = sp_slice_varint(s);
	return s->failed ? "resident memory" : NULL;
}

static const char *decode_mark(struct sp_slice *s, struct sp_record_mark *r)
{
	r->number = sp_slice_varint(s);
	r->kind = sp_slice_varint(s);
	r->time_ns = sp_slice_varint(s);
	r->alloc_bytes = sp_slice_varint(s);
	r->alloc_objects = sp_slice_varint(s);
	r->unsampled_bytes = sp_slice_varint(s);
	r->unsampled_objects = sp_slice_varint(s);
	r->slack_bytes = sp_slice_varint(s);
	r->period_bytes = sp_slice_varint(s);
	if (s->failed || r->number == 0)
		return "mark";
	if (r->unsampled_bytes > r->alloc_bytes ||
	    r->unsampled_objects > r->alloc_objects)
		return "mark totals";
	if (r->period_bytes > SP_FORMAT_PERIOD_MAX)
		return "mark period";
	r->name_bytes = sp_slice_left(s);
	if (r->name_bytes > SP_FORMAT_MARK_NAME_MAX)
		return "mark name";
	r->name = (const char *)sp_slice_take(s, r->name_bytes);
	return NULL;
}

static const char *decode_asked(struct sp_slice *s, struct sp_record_asked *r)
{
	r->number = sp_slice_varint(s);
	r->time_ns = sp_slice_varint(s);
	return s->failed || r->number == 0 ? "asked" : NULL;
}

/* No byte of it is beyond the last address. */
static bool is_range(uint64_t start, uint64_t bytes)
{
	return bytes && bytes <= UINT64_MAX - start;
}

static const char *decode_map(struct sp_slice *s, struct sp_record_map *r)
{
	r->number = sp_slice_varint(s);
	r->flags = sp_slice_varint(s);
	r->time_ns = sp_slice_varint(s);
	r->start = sp_slice_varint(s);
	r->bytes = sp_slice_varint(s);
	r->thread = sp_slice_varint(s);
	r->stack = sp_slice_varint(s);
	if (s->failed || r->number == 0)
		return "mapping";
	if (!is_range(r->start, r->bytes))
		return "mapping range";
	if (r->thread > UINT32_MAX)
		return "mapping thread";
	return r->stack > UINT32_MAX ? "mapping stack" : NULL;
}

static const char *decode_unmap(struct sp_slice *s, struct sp_record_unmap *r)
{
	r->number = sp_slice_varint(s);
	r->time_ns = sp_slice_varint(s);
	r->start = sp_slice_varint(s);
	r->bytes = sp_slice_varint(s);
	r->thread = sp_slice_varint(s);
	if (s->failed || r->number == 0)
		return "unmapping";
	if (!is_range(r->start, r->bytes))
		return "unmapping range";
	return r->thread > UINT32_MAX ? "unmapping thread" : NULL;
}

static const char *decode_name(struct sp_slice *s, struct sp_record_name *r)
{
	r->id = sp_slice_varint(s);
	if (s->failed || r->id == 0 || r->id > UINT32_MAX)
		return "name id";
	r->text_bytes = sp_slice_left(s);
	if (r->text_bytes > SP_FORMAT_NAME_MAX)
		return "name length";
	r->text = (const char *)sp_slice_take(s, r->text_bytes);
	return NULL;
}

static const char *decode_symbol(struct sp_slice *s, struct sp_decoded *d)
{
	const uint64_t module = sp_slice_varint(s);
	uint64_t n;

	d->u.symbol.frame.offset = sp_slice_varint(s);
	n = sp_slice_varint(s);
	if (s->failed || module > UINT32_MAX)
		return "symbol module";
	if (n == 0 || n > SP_FORMAT_LINES_MAX)
		return "number of lines";
	d->u.symbol.frame.module = (uint32_t)module;
	d->u.symbol.n_lines = (uint32_t)n;
	d->u.symbol.lines = s->at;
	d->u.symbol.lines_bytes = sp_slice_left(s);
	for (uint64_t i = 0; i < n; i++) {
		sp_slice_varint(s);
		if (sp_slice_varint(s) > UINT32_MAX ||
		    sp_slice_varint(s) > UINT32_MAX ||
		    sp_slice_varint(s) > UINT32_MAX)
			return "symbol line";
	}
	return s->failed ? "symbol lines" : NULL;
}

static const char *decode_code(struct sp_slice *s, struct sp_record_code *r)
{
	r->frame.module = sp_slice_varint(s);
	r->frame.offset = sp_slice_varint(s);
	r->line = sp_slice_varint(s);
	r->function_bytes = sp_slice_varint(s);
	if (s->failed || r->frame.module > UINT32_MAX)
		return "code module";
	if (r->line > UINT32_MAX)
		return "code line";
	if (r->function_bytes == 0 ||
	    r->function_bytes > SP_FORMAT_CODE_TEXT_MAX ||
	    r->function_bytes > sp_slice_left(s))
		return "code function";
	r->function = (const char *)sp_slice_take(s, r->function_bytes);
	r->file_bytes = sp_slice_left(s);
	if (r->file_bytes > SP_FORMAT_CODE_TEXT_MAX)
		return "code file";
	r->file = (const char *)sp_slice_take(s, r->file_bytes);
	return NULL;
}

static const char *decode_other(struct sp_slice *s, struct sp_decoded *d)
{
	d->payload = s->at;
	d->payload_bytes = sp_slice_left(s);
	switch (d->type) {
	case SP_RECORD_INFO:
		return decode_info(s, &d->u.info);
	case SP_RECORD_MODULE:
		return decode_module(s, &d->u.module);
	case SP_RECORD_STACK:
		return decode_stack(s, d);
	case SP_RECORD_THREAD:
		return decode_thread(s, &d->u.thread);
	case SP_RECORD_THREAD_END:
		return decode_thread_end(s, &d->u.thread_end);
	case SP_RECORD_RSS:
		return decode_rss(s, &d->u.rss);
	case SP_RECORD_NAME:
		return decode_name(s, &d->u.name);
	case SP_RECORD_SYMBOL:
		return decode_symbol(s, d);
	case SP_RECORD_MARK:
		return decode_mark(s, &d->u.mark);
	case SP_RECORD_ASKED:
		return decode_asked(s, &d->u.asked);
	case SP_RECORD_MAP:
		return decode_map(s, &d->u.map);
	case SP_RECORD_UNMAP:
		return decode_unmap(s, &d->u.unmap);
	case SP_RECORD_CODE:
		return decode_code(s, &d->u.code);
	default:
		return NULL;
	}
}

/* Of a sample or a free what may be read ends at `readable`. */
static const char *decode_payload(struct sp_slice *s, const uint8_t *readable,
				  struct sp_chunk_state *state,
				  struct sp_decoded *d)
{
	switch (d->type) {
	case SP_RECORD_SAMPLE:
		return decode_sample(begin_record(s->at, s->end, readable),
				     state, &d->u.sample);
	case SP_RECORD_FREE:
		return decode_free(begin_record(s->at, s->end, readable), state,
				   &d->u.free);
	case SP_RECORD_FREE_ADDRESS:
		return decode_free_address(
			begin_record(s->at, s->end, readable), state,
			&d->u.free_address);
	default:
		return decode_other(s, d);
	}
}

static enum sp_decode_result damaged_field(struct sp_decoded *ret,
					   const char *field)
{
	ret->field = field;
	return SP_DECODE_DAMAGED;
}

enum sp_decode_result sp_decode_next(struct sp_chunk_state *state,
				     const uint8_t *chunk, size_t chunk_bytes,
				     size_t *offset, struct sp_decoded *ret)
{
	struct sp_slice s = {chunk + *offset, chunk + chunk_bytes, false};
	struct sp_slice payload;
	const uint8_t *hashed, *check;
	const char *wrong;
	uint64_t n, h;
	size_t left;

	if (s.at == s.end || *s.at == SP_RECORD_NONE)
		return SP_DECODE_END;
	ret->type = *s.at++;
	hashed = s.at;
	n = s.at < s.end && *s.at < 0x80 ? *s.at++ : sp_slice_varint(&s);
	left = (size_t)(s.end - s.at);
	if (s.failed || left < 2 || n > left - 2)
		return damaged_field(ret, "record length");
	check = s.at + n;
	payload = (struct sp_slice){s.at, check, false};
	h = sp_hash_word(state->hash, ret->type);
	n = (size_t)(check - hashed);
	h = hashed - chunk >= 8 ? sp_hash_bytes_inside(h, hashed, n)
				: sp_hash_bytes(h, hashed, n);
	if (check[0] != (uint8_t)(h >> 48) || check[1] != (uint8_t)(h >> 56))
		return damaged_field(ret, "record check");
	wrong = decode_payload(&payload, chunk + chunk_bytes, state, ret);
	if (wrong)
		return damaged_field(ret, wrong);
	state->hash = h;
	*offset = (size_t)(check + 2 - chunk);
	return SP_DECODE_RECORD;
}

uint32_t sp_decode_innermost(const struct sp_decoded *stack)
{
	struct sp_slice s = {
		stack->u.stack.frames,
		stack->u.stack.frames + stack->u.stack.frames_bytes, false};

	return stack->u.stack.n_frames ? (uint32_t)sp_slice_varint(&s) : 0;
}

void sp_decode_frames(const struct sp_decoded *stack,
		      struct sp_record_frame *out)
{
	struct sp_slice s = {
		stack->u.stack.frames,
		stack->u.stack.frames + stack->u.stack.frames_bytes, false};

	for (uint32_t i = 0; i < stack->u.stack.n_frames; i++) {
		out[i].module = (uint32_t)sp_slice_varint(&s);
		out[i].offset = sp_slice_varint(&s);
	}
}

void sp_decode_lines(const struct sp_decoded *symbol,
		     struct sp_record_line *out)
{
	struct sp_slice s = {
		symbol->u.symbol.lines,
		symbol->u.symbol.lines + symbol->u.symbol.lines_bytes, false};

	for (uint32_t i = 0; i < symbol->u.symbol.n_lines; i++) {
		out[i].flags = sp_slice_varint(&s);
		out[i].function = (uint32_t)sp_slice_varint(&s);
		out[i].file = (uint32_t)sp_slice_varint(&s);
		out[i].line = (uint32_t)sp_slice_varint(&s);
	}
}
