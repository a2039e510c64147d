/* SPDX-License-Identifier: MIT */
#include "format/golden/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/encode.h"

#define CHUNK      SP_FORMAT_CHUNK_BYTES
#define FILE_ID    0x6e656467316c6f76ull
#define MAX_CHUNKS 5

static uint8_t image[MAX_CHUNKS * CHUNK];
static bool has_stack_steps; /* of the file: SP_HEADER_STACK_STEPS */

/* Where the next record goes. */
static struct {
	uint64_t chunk;
	size_t at;
	struct sp_chunk_state state;
} out;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put_header(uint32_t flags)
{
	struct sp_file_header h = {
		.version = 1,
		.header_bytes = sizeof(h),
		.chunk_bytes = CHUNK,
		.flags = flags,
		.file_id = FILE_ID,
		.pid = 4194304001u,
		.process_start_ticks = 123456,
		.start_unix_ns = 1700000000123456789u,
		.period_bytes = GOLDEN_PERIOD,
		.seed = 0xfedcba9876543210u,
		.max_file_bytes = 1 << 20,
		.check_in_bytes = 1 << 20,
	};

	memcpy(h.magic, SP_FORMAT_MAGIC, sizeof(h.magic));
	h.check = sp_format_check(FILE_ID, SP_CHECK_HEADER, &h, sizeof(h));
	memcpy(image, &h, sizeof(h));
}

void image_put_status(struct sp_status s, bool is_torn)
{
	s.check = sp_format_check(FILE_ID, SP_CHECK_STATUS, &s, sizeof(s));
	if (is_torn)
		s.check = 0;
	memcpy(image + SP_FORMAT_STATUS_OFFSET +
		       (s.seq & 1) * SP_FORMAT_STATUS_STRIDE,
	       &s, sizeof(s));
}

void image_put_slot(size_t slot, struct sp_slot_copy c, bool is_torn)
{
	c.check = sp_format_check(FILE_ID, SP_CHECK_SLOT, &c, sizeof(c));
	if (is_torn)
		c.check = 0;
	memcpy(image + SP_FORMAT_SLOTS_OFFSET + slot * sizeof(struct sp_slot) +
		       (c.seq & 1) * sizeof(c),
	       &c, sizeof(c));
}

void image_put_window(struct sp_window w, bool is_torn)
{
	w.check = sp_format_check(FILE_ID, SP_CHECK_WINDOW, &w, sizeof(w));
	if (is_torn)
		w.check = 0;
	memcpy(image + SP_FORMAT_WINDOW_OFFSET + (w.seq & 1) * sizeof(w), &w,
	       sizeof(w));
}

void image_begin_chunk(uint64_t index, uint32_t kind)
{
	struct sp_chunk_header h = {SP_FORMAT_CHUNK_MAGIC, kind, index, 0};

	h.check = sp_format_check(FILE_ID, SP_CHECK_CHUNK, &h, sizeof(h));
	out.chunk = (uint32_t)index;
	memcpy(image + out.chunk * CHUNK, &h, sizeof(h));
	out.at = sizeof(h);
	sp_chunk_state_init(&out.state, FILE_ID, index);
	out.state.has_stack_steps = has_stack_steps;
}

static uint8_t *position(void)
{
	return image + out.chunk * CHUNK + out.at;
}

/* Without its commit mark a record is unfinished. */
void image_put_record(const struct sp_record *r, bool is_finished)
{
	struct sp_encoded e =
		sp_encode(&out.state, position(), CHUNK - out.at, r);

	if (!e.bytes)
		die("a record does not fit");
	if (is_finished)
		*position() = e.type;
	out.at += e.bytes;
}

void image_put_unknown_record(uint8_t type, const void *payload, size_t n)
{
	uint8_t *start = position(), *at = sp_varint_put(start + 1, n);
	uint64_t h = sp_hash_word(out.state.hash, type);

	memcpy(at, payload, n);
	at += n;
	h = sp_hash_bytes(h, start + 1, (size_t)(at - start - 1));
	*at++ = (uint8_t)(h >> 48);
	*at++ = (uint8_t)(h >> 56);
	*start = type;
	out.at += (size_t)(at - start);
	out.state.hash = h;
}

void image_put_info(const char *key, const char *value, size_t value_bytes)
{
	struct sp_record r = {.type = SP_RECORD_INFO};

	r.u.info =
		(struct sp_record_info){key, strlen(key), value, value_bytes};
	image_put_record(&r, true);
}

void image_put_module(uint64_t id, uint64_t start_pc, uint64_t span,
		      uint64_t bias, size_t build_id_bytes, const char *path)
{
	static const uint8_t build_id[SP_FORMAT_BUILD_ID_MAX] = {
		0x5a, 1,  2,  3,  4,  5,  6,  7,  8,  9,
		10,   11, 12, 13, 14, 15, 16, 17, 18, 0xff};
	struct sp_record r = {.type = SP_RECORD_MODULE};

	r.u.module = (struct sp_record_module){
		.id = id,
		.start_pc = start_pc,
		.end_pc = start_pc + span,
		.bias = bias,
		.flags = id == 1 ? SP_MODULE_MAIN : 0,
		.build_id = build_id,
		.build_id_bytes = build_id_bytes,
		.path = path,
		.path_bytes = strlen(path),
	};
	image_put_record(&r, true);
}

void image_put_stack(uint64_t id, uint64_t flags,
		     const struct sp_record_frame *frames, size_t n)
{
	struct sp_record r = {.type = SP_RECORD_STACK};

	r.u.stack = (struct sp_record_stack){id, flags, frames, n};
	image_put_record(&r, true);
}

void image_put_thread(uint64_t index, uint64_t tid, const char *name)
{
	struct sp_record r = {.type = SP_RECORD_THREAD};

	r.u.thread = (struct sp_record_thread){index, tid, 1000 * index, name,
					       strlen(name)};
	image_put_record(&r, true);
}

void image_put_mark(struct sp_record_mark mark)
{
	struct sp_record r = {.type = SP_RECORD_MARK};

	if (!mark.name)
		mark.name = "";
	mark.name_bytes = strlen(mark.name);
	r.u.mark = mark;
	image_put_record(&r, true);
}

void image_put_sample(uint64_t id, uint64_t time_ns, uint64_t period_bytes,
		      bool is_again)
{
	struct sp_record r = {.type = SP_RECORD_SAMPLE};

	r.u.sample = (struct sp_record_sample){
		.id = id,
		.time_ns = time_ns,
		.address = 0x602000 + 64 * id,
		.size_bytes = 1000,
		.offset_bytes = 999,
		.period_bytes = period_bytes,
		.stack = 1,
		.thread = 1,
		.is_again = is_again,
	};
	image_put_record(&r, true);
}

void image_put_classes(uint64_t chunk, struct sp_class_page page, bool is_torn)
{
	size_t pair = page.slot % SP_FORMAT_CLASS_SLOTS;
	size_t at = chunk * CHUNK +
		    (1 + 2 * pair + (page.seq & 1)) * SP_FORMAT_PAGE_BYTES;

	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		page.alloc_bytes += page.classes[i].bytes;
		page.alloc_objects += page.classes[i].objects;
	}
	page.check = sp_format_check(FILE_ID, SP_CHECK_CLASSES, &page,
				     offsetof(struct sp_class_page, classes));
	/* The next publication had begun to write its classes. */
	if (is_torn)
		page.classes[0].objects += 3;
	memcpy(image + at, &page, sizeof(page));
}

void image_begin(uint32_t flags)
{
	memset(image, 0, sizeof(image));
	put_header(flags);
	has_stack_steps = flags & SP_HEADER_STACK_STEPS;
}

void image_write(const char *directory, const char *name)
{
	size_t n = sizeof(image);
	char path[4096];
	FILE *f;

	while (image[n - 1] == 0)
		n--;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "wbe");
	if (!f || fwrite(image, 1, n, f) != n || fclose(f) != 0)
		die(path);
}
