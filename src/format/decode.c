/* SPDX-License-Identifier: MIT */
/*
 * Bytes to records.  Bytes are untrusted: a slice never reads past its end,
 * the check is verified before a payload is looked at, and every value is
 * tested against its range.
 */
#include "format/decode.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

#define HEAD_ENTRY    0x1fu
#define HEAD_THREAD   0x20u
#define HEAD_PERIOD   0x40u
#define HEAD_RESERVED 0x80u
#define FREE_THREAD   0x01u
#define FREE_AGE      0x02u
#define FREE_MISSED   0x04u
#define FREE_RESERVED 0xf8u

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

static const char *decode_sample(struct sp_slice *s,
				 struct sp_chunk_state *state,
				 struct sp_record_sample *r)
{
	uint8_t head = sp_slice_u8(s);

	r->entry = head & HEAD_ENTRY;
	r->thread = head & HEAD_THREAD ? sp_slice_varint(s) : state->thread;
	r->period_bytes =
		head & HEAD_PERIOD ? sp_slice_varint(s) : state->period_bytes;
	r->id = state->sample_id + (uint64_t)sp_unzigzag(sp_slice_varint(s));
	r->time_ns = state->time_ns + (uint64_t)sp_unzigzag(sp_slice_varint(s));
	r->address = state->address + (uint64_t)sp_unzigzag(sp_slice_varint(s));
	r->size_bytes = sp_slice_varint(s);
	r->offset_bytes = sp_slice_varint(s);
	r->stack = sp_slice_varint(s);
	if (s->failed || (head & HEAD_RESERVED))
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
	return NULL;
}

static const char *decode_free(struct sp_slice *s, struct sp_chunk_state *state,
			       struct sp_record_free *r)
{
	uint8_t head = sp_slice_u8(s);

	r->flags = head & FREE_MISSED ? SP_FREE_MISSED : 0;
	r->thread = head & FREE_THREAD ? sp_slice_varint(s) : state->thread;
	r->id = state->freed_id + (uint64_t)sp_unzigzag(sp_slice_varint(s));
	r->time_ns = state->time_ns + (uint64_t)sp_unzigzag(sp_slice_varint(s));
	r->has_age = head & FREE_AGE;
	r->age_bytes = r->has_age ? sp_slice_varint(s) : 0;
	if (s->failed || (head & FREE_RESERVED))
		return "free";
	if (r->thread > UINT32_MAX)
		return "free thread";
	state->thread = r->thread;
	state->freed_id = r->id;
	state->time_ns = r->time_ns;
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

static const char *decode_payload(struct sp_slice *s,
				  struct sp_chunk_state *state,
				  struct sp_decoded *d)
{
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
	case SP_RECORD_SAMPLE:
		return decode_sample(s, state, &d->u.sample);
	case SP_RECORD_FREE:
		return decode_free(s, state, &d->u.free);
	case SP_RECORD_RSS:
		return decode_rss(s, &d->u.rss);
	case SP_RECORD_NAME:
		return decode_name(s, &d->u.name);
	case SP_RECORD_SYMBOL:
		return decode_symbol(s, d);
	case SP_RECORD_MARK:
		return decode_mark(s, &d->u.mark);
	default:
		return NULL;
	}
}

static enum sp_decode_result damaged(struct sp_decoded *ret, const char *field)
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

	memset(ret, 0, sizeof(*ret));
	if (sp_slice_left(&s) == 0 || *s.at == SP_RECORD_NONE)
		return SP_DECODE_END;
	ret->type = sp_slice_u8(&s);
	hashed = s.at;
	n = sp_slice_varint(&s);
	payload.at = sp_slice_take(&s, n);
	check = sp_slice_take(&s, 2);
	if (s.failed)
		return damaged(ret, "record length");
	payload.end = payload.at + n;
	payload.failed = false;
	h = sp_hash_word(state->hash, ret->type);
	h = sp_hash_bytes(h, hashed, (size_t)(payload.end - hashed));
	if (check[0] != (uint8_t)(h >> 48) || check[1] != (uint8_t)(h >> 56))
		return damaged(ret, "record check");
	wrong = decode_payload(&payload, state, ret);
	if (wrong)
		return damaged(ret, wrong);
	state->hash = h;
	*offset = (size_t)(s.at - chunk);
	return SP_DECODE_RECORD;
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
