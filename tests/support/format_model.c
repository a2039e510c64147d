/* SPDX-License-Identifier: MIT */
#include "support/format_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more bytes; where they go. */
static uint8_t *extend(struct model_bytes *b, size_t n)
{
	uint8_t *at;

	if (b->room - b->n < n) {
		b->room = 2 * b->room + n + 64;
		b->data = realloc(b->data, b->room);
		if (!b->data) {
			perror("format_model");
			exit(1);
		}
	}
	at = b->data + b->n;
	b->n += n;
	return at;
}

static void append(struct model_bytes *b, uint8_t byte)
{
	*extend(b, 1) = byte;
}

void model_done(struct model_bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void model_raw(struct model_bytes *b, const void *data, size_t n)
{
	if (n)
		memcpy(extend(b, n), data, n);
}

void model_varint(struct model_bytes *b, uint64_t v)
{
	while (v / 128) {
		append(b, (uint8_t)(v % 128 + 128));
		v /= 128;
	}
	append(b, (uint8_t)v);
}

void model_difference(struct model_bytes *out, uint64_t a, uint64_t b)
{
	uint64_t d = a - b;

	/* 0, -1, 1, -2, ... are 0, 1, 2, 3, ... */
	if (d < 1ull << 63)
		model_varint(out, 2 * d);
	else
		model_varint(out, 2 * (0 - d) - 1);
}

static uint64_t hash_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash_bytes(uint64_t h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;

		for (size_t k = i; k < i + 8 && k < n; k++)
			word += (uint64_t)p[k] << 8 * (k - i);
		h = hash_word(h, word);
	}
	return h;
}

void model_chunk_begin(struct model_chunk *chunk, uint64_t file_id,
		       uint64_t index)
{
	memset(chunk, 0, sizeof(*chunk));
	chunk->hash = hash_word(hash_word(0, file_id), index);
}

void model_record(struct model_bytes *out, struct model_chunk *chunk,
		  uint8_t type, const struct model_bytes *payload)
{
	size_t start = out->n;

	append(out, type);
	model_varint(out, payload->n);
	model_raw(out, payload->data, payload->n);
	chunk->hash = hash_bytes(hash_word(chunk->hash, type),
				 out->data + start + 1, out->n - start - 1);
	append(out, (uint8_t)(chunk->hash >> 48 & 255));
	append(out, (uint8_t)(chunk->hash >> 56));
}

static void put_module(struct model_bytes *b, const struct sp_record_module *r)
{
	model_varint(b, r->id);
	model_varint(b, r->start_pc);
	model_varint(b, r->end_pc - r->start_pc);
	model_difference(b, r->start_pc, r->bias);
	model_varint(b, r->flags);
	model_varint(b, r->build_id_bytes);
	model_raw(b, r->build_id, r->build_id_bytes);
	model_raw(b, r->path, r->path_bytes);
}

static void put_stack(struct model_bytes *b, const struct sp_record_stack *r)
{
	model_varint(b, r->id);
	model_varint(b, r->flags);
	model_varint(b, r->n_frames);
	for (size_t i = 0; i < r->n_frames; i++) {
		model_varint(b, r->frames[i].module);
		model_varint(b, r->frames[i].offset);
	}
}

static void put_sample(struct model_bytes *b, struct model_chunk *chunk,
		       const struct sp_record_sample *r)
{
	const struct sp_record_sample *last = &chunk->last;

	append(b, (uint8_t)(r->entry + (r->thread != last->thread ? 32 : 0) +
			    (r->period_bytes != last->period_bytes ? 64 : 0) +
			    (r->is_again ? 128 : 0)));
	if (r->thread != last->thread)
		model_varint(b, r->thread);
	if (r->period_bytes != last->period_bytes)
		model_varint(b, r->period_bytes);
	model_difference(b, r->id, last->id);
	model_difference(b, r->time_ns, last->time_ns);
	model_difference(b, r->address, last->address);
	model_varint(b, r->size_bytes);
	model_varint(b, r->offset_bytes);
	if (chunk->has_stack_steps)
		model_difference(b, r->stack, last->stack);
	else
		model_varint(b, r->stack);
	chunk->last = *r;
}

static void put_free(struct model_bytes *b, struct model_chunk *chunk,
		     const struct sp_record_free *r)
{
	append(b, (uint8_t)((r->thread != chunk->last.thread ? 1 : 0) +
			    (r->has_age ? 2 : 0) + (r->flags & 1 ? 4 : 0)));
	if (r->thread != chunk->last.thread)
		model_varint(b, r->thread);
	model_difference(b, r->id, chunk->freed_id);
	model_difference(b, r->time_ns, chunk->last.time_ns);
	if (r->has_age)
		model_varint(b, r->age_bytes);
	chunk->last.thread = r->thread;
	chunk->last.time_ns = r->time_ns;
	chunk->freed_id = r->id;
}

static void put_free_address(struct model_bytes *b, struct model_chunk *chunk,
			     const struct sp_record_free_address *r)
{
	append(b, r->thread != chunk->last.thread ? 1 : 0);
	if (r->thread != chunk->last.thread)
		model_varint(b, r->thread);
	model_difference(b, r->time_ns, chunk->last.time_ns);
	model_difference(b, r->address, chunk->last.address);
	chunk->last.thread = r->thread;
	chunk->last.time_ns = r->time_ns;
	chunk->last.address = r->address;
}

static void put_thread_end(struct model_bytes *b,
			   const struct sp_record_thread_end *r)
{
	model_varint(b, r->index);
	model_varint(b, r->time_ns);
	model_varint(b, r->alloc_bytes);
	model_varint(b, r->alloc_objects);
	model_raw(b, r->name, r->name_bytes);
}

static void put_map(struct model_bytes *b, const struct sp_record_map *r)
{
	model_varint(b, r->number);
	model_varint(b, r->flags);
	model_varint(b, r->time_ns);
	model_varint(b, r->start);
	model_varint(b, r->bytes);
	model_varint(b, r->thread);
	model_varint(b, r->stack);
}

static void put_unmap(struct model_bytes *b, const struct sp_record_unmap *r)
{
	model_varint(b, r->number);
	model_varint(b, r->time_ns);
	model_varint(b, r->start);
	model_varint(b, r->bytes);
	model_varint(b, r->thread);
}

static void put_mark(struct model_bytes *b, const struct sp_record_mark *r)
{
	model_varint(b, r->number);
	model_varint(b, r->kind);
	model_varint(b, r->time_ns);
	model_varint(b, r->alloc_bytes);
	model_varint(b, r->alloc_objects);
	model_varint(b, r->unsampled_bytes);
	model_varint(b, r->unsampled_objects);
	model_varint(b, r->slack_bytes);
	model_varint(b, r->period_bytes);
	model_raw(b, r->name, r->name_bytes);
}

static void put_code(struct model_bytes *b, const struct sp_record_code *r)
{
	model_varint(b, r->frame.module);
	model_varint(b, r->frame.offset);
	model_varint(b, r->line);
	model_varint(b, r->function_bytes);
	model_raw(b, r->function, r->function_bytes);
	model_raw(b, r->file, r->file_bytes);
}

static void put_thread(struct model_bytes *b, const struct sp_record_thread *r)
{
	model_varint(b, r->index);
	model_varint(b, r->tid);
	model_varint(b, r->time_ns);
	model_raw(b, r->name, r->name_bytes);
}

void model_encode(struct model_bytes *out, struct model_chunk *chunk,
		  const struct sp_record *record)
{
	struct model_bytes b = {0};
	const struct sp_record_info *info = &record->u.info;

	switch (record->type) {
	case SP_RECORD_INFO:
		model_varint(&b, info->key_bytes);
		model_raw(&b, info->key, info->key_bytes);
		model_raw(&b, info->value, info->value_bytes);
		break;
	case SP_RECORD_MODULE:
		put_module(&b, &record->u.module);
		break;
	case SP_RECORD_STACK:
		put_stack(&b, &record->u.stack);
		break;
	case SP_RECORD_THREAD:
		put_thread(&b, &record->u.thread);
		break;
	case SP_RECORD_THREAD_END:
		put_thread_end(&b, &record->u.thread_end);
		break;
	case SP_RECORD_SAMPLE:
		put_sample(&b, chunk, &record->u.sample);
		break;
	case SP_RECORD_FREE:
		put_free(&b, chunk, &record->u.free);
		break;
	case SP_RECORD_FREE_ADDRESS:
		put_free_address(&b, chunk, &record->u.free_address);
		break;
	case SP_RECORD_RSS:
		model_varint(&b, record->u.rss.time_ns);
		model_varint(&b, record->u.rss.rss_bytes);
		break;
	case SP_RECORD_MARK:
		put_mark(&b, &record->u.mark);
		break;
	case SP_RECORD_ASKED:
		model_varint(&b, record->u.asked.number);
		model_varint(&b, record->u.asked.time_ns);
		break;
	case SP_RECORD_MAP:
		put_map(&b, &record->u.map);
		break;
	case SP_RECORD_UNMAP:
		put_unmap(&b, &record->u.unmap);
		break;
	case SP_RECORD_CODE:
		put_code(&b, &record->u.code);
		break;
	case SP_RECORD_NAME:
	case SP_RECORD_SYMBOL:
	case SP_RECORD_NONE:
		break;
	}
	model_record(out, chunk, (uint8_t)record->type, &b);
	model_done(&b);
}

void model_seal(uint64_t file_id, uint64_t kind, void *data, size_t bytes)
{
	uint64_t h = hash_word(hash_word(0, file_id), kind);

	h = hash_bytes(h, data, bytes - 8);
	memcpy((uint8_t *)data + bytes - 8, &h, 8);
}

struct sp_file_header *model_file_header(struct model_file *file)
{
	return (struct sp_file_header *)file->bytes.data;
}

struct sp_status *model_file_status(struct model_file *file, int copy)
{
	return (struct sp_status *)(file->bytes.data + 4096 + 1024 * copy);
}

struct sp_slot_copy *model_file_slot(struct model_file *file, size_t slot,
				     int copy)
{
	return (struct sp_slot_copy *)(file->bytes.data + 8192 + 128 * slot) +
	       copy;
}

void model_file_seal(struct model_file *file)
{
	model_seal(file->file_id, SP_CHECK_HEADER, model_file_header(file),
		   sizeof(struct sp_file_header));
	for (int copy = 0; copy < 2; copy++) {
		struct sp_status *s = model_file_status(file, copy);

		if (s->seq)
			model_seal(file->file_id, SP_CHECK_STATUS, s,
				   sizeof(*s));
	}
	for (size_t i = 0; i < 2 * SP_FORMAT_SLOTS; i++) {
		struct sp_slot_copy *c = model_file_slot(file, 0, 0) + i;

		if (c->seq)
			model_seal(file->file_id, SP_CHECK_SLOT, c, sizeof(*c));
	}
}

void model_file_init(struct model_file *file, size_t chunks,
		     uint64_t period_bytes)
{
	const struct model_bytes none = {0};
	struct sp_file_header *h;
	struct sp_status *s;

	memset(file, 0, sizeof(*file));
	file->file_id = 0x0123456789abcdefull;
	file->bytes.n = file->bytes.room = chunks * SP_FORMAT_CHUNK_BYTES;
	file->bytes.data = calloc(chunks, SP_FORMAT_CHUNK_BYTES);
	if (!file->bytes.data) {
		perror("format_model");
		exit(1);
	}
	h = model_file_header(file);
	memcpy(h->magic, "\x89sprof\r\n", 8);
	h->version = 1;
	h->header_bytes = 96;
	h->chunk_bytes = 65536;
	h->file_id = file->file_id;
	h->period_bytes = period_bytes;
	h->max_file_bytes = file->bytes.n;
	h->check_in_bytes = 1 << 20;
	s = model_file_status(file, 1);
	s->seq = 1;
	s->end_kind = SP_END_CLEAN;
	s->chunks = chunks;
	model_file_seal(file);
	for (size_t i = 1; i < chunks; i++)
		model_file_put(file, i, &none);
}

/* An empty chunk; where it begins. */
static uint8_t *put_chunk(struct model_file *file, size_t index, uint32_t kind)
{
	uint8_t *chunk = file->bytes.data + index * SP_FORMAT_CHUNK_BYTES;
	struct sp_chunk_header h = {0x6b6e6863, kind, index, 0};

	model_seal(file->file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memset(chunk, 0, SP_FORMAT_CHUNK_BYTES);
	memcpy(chunk, &h, sizeof(h));
	return chunk;
}

void model_file_put(struct model_file *file, size_t index,
		    const struct model_bytes *records)
{
	uint8_t *chunk = put_chunk(file, index, 1);

	if (records->n)
		memcpy(chunk + 24, records->data, records->n);
}

void model_file_put_classes(struct model_file *file, size_t index)
{
	put_chunk(file, index, 2);
}

struct sp_class_page *model_file_class_page(struct model_file *file,
					    size_t index, unsigned int pair,
					    int copy)
{
	return (struct sp_class_page *)(file->bytes.data + 65536 * index +
					4096 + 8192 * pair + 4096 * copy);
}

void model_file_seal_classes(struct model_file *file,
			     struct sp_class_page *page)
{
	page->alloc_bytes = page->alloc_objects = 0;
	for (int i = 0; i < 252; i++) {
		page->alloc_bytes += page->classes[i].bytes;
		page->alloc_objects += page->classes[i].objects;
	}
	model_seal(file->file_id, 5, page, 40);
}

int model_file_write(const struct model_file *file, const char *path, size_t n)
{
	FILE *f = fopen(path, "wbe");
	int ret = 0;

	if (!f)
		return -1;
	if (fwrite(file->bytes.data, 1, n, f) != n)
		ret = -1;
	if (fclose(f) != 0)
		ret = -1;
	return ret;
}
