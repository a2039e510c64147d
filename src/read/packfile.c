/* SPDX-License-Identifier: MIT */
#include "read/packfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "format/rewrite.h"
#include "pack/events.h"
#include "pack/stackpack.h"
#include "model/walk.h"
#include "read/reader.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

/* The INFO that says it. */
#define TIME_ERROR "time_error_ns"

uint64_t sp_packfile_time_error_ns(const struct sp_profile *p)
{
	if (p->time_error_ns)
		return p->time_error_ns;
	return sp_profile_samples(p) > p->duration_ns / SP_PACKFILE_TICK_NS
		       ? SP_PACKFILE_TICK_NS
		       : 0;
}

/* ---- facts ---- */

struct facts {
	const struct sp_profile *profile;
	sp_chunk_fn *fn;
	void *arg;
	uint64_t n_chunks;
	struct sp_error *err;
};

static int put_chunk(struct facts *f, const uint8_t *chunk)
{
	f->n_chunks++;
	return f->fn(f->arg, chunk);
}

static int put_first(struct facts *f, uint8_t *chunk)
{
	struct sp_file_header h;

	memcpy(&h, chunk, sizeof(h));
	h.flags |= SP_HEADER_PACKED;
	/* Frees in columns know their samples. */
	h.flags &= ~SP_HEADER_ADDRESSES;
	h.check = sp_format_check(h.file_id, SP_CHECK_HEADER, &h, sizeof(h));
	memcpy(chunk, &h, sizeof(h));
	return put_chunk(f, chunk);
}

/* Is it of a kind that stays as it is, but for its number?  Then that is
 * changed. */
static bool renumber_chunk(const struct facts *f, uint8_t *chunk,
			   uint64_t index)
{
	const uint64_t file_id = f->profile->file_id;
	struct sp_chunk_header h;

	memcpy(&h, chunk, sizeof(h));
	if (h.magic != SP_FORMAT_CHUNK_MAGIC || h.index != index ||
	    h.check !=
		    sp_format_check(file_id, SP_CHECK_CHUNK, &h, sizeof(h)) ||
	    h.kind != SP_CHUNK_CLASSES)
		return false;
	h.index = f->n_chunks;
	h.check = sp_format_check(file_id, SP_CHECK_CHUNK, &h, sizeof(h));
	memcpy(chunk, &h, sizeof(h));
	return true;
}

static int copy_chunks(struct facts *f, struct sp_source *from)
{
	uint8_t chunk[CHUNK];

	for (uint64_t i = 0;; i++) {
		const uint64_t data = sp_source_next_data(from, i * CHUNK);
		ssize_t n;
		int r = 0;

		if (data == UINT64_MAX)
			return 0;
		i = data / CHUNK > i ? data / CHUNK : i;
		n = sp_source_read(from, chunk, CHUNK, i * CHUNK);
		if (n < 0)
			return sp_error_set(f->err, (int)n, f->profile->path,
					    "cannot be read: %s",
					    sp_source_strerror((int)n));
		if (n == 0)
			return 0;
		memset(chunk + n, 0, CHUNK - (size_t)n);
		if (i == 0)
			r = put_first(f, chunk);
		else if (renumber_chunk(f, chunk, i))
			r = put_chunk(f, chunk);
		if (r < 0)
			return r;
	}
}

static int put_record(struct sp_chunk_writer *w, uint8_t type,
		      const uint8_t *payload, size_t payload_bytes)
{
	for (;;) {
		size_t room;
		uint8_t *at = sp_chunk_writer_room(w, &room);
		const size_t n = sp_encode_payload(&w->state, at, room, type,
						   payload, payload_bytes);
		int r;

		w->used += n;
		if (n)
			return 0;
		r = sp_chunk_writer_flush(w);
		if (r < 0)
			return r;
	}
}

static int put_time_error(struct sp_chunk_writer *w, uint64_t ns)
{
	uint8_t payload[64];
	uint8_t *at = sp_varint_put(payload, strlen(TIME_ERROR));
	int n = snprintf((char *)at, sizeof(payload) - 1, TIME_ERROR "%" PRIu64,
			 ns);

	return put_record(w, SP_RECORD_INFO, payload,
			  (size_t)(at - payload) + (size_t)n);
}

/* The others are in columns, or symbols. */
static bool is_kept(uint8_t type)
{
	return type != SP_RECORD_SAMPLE && type != SP_RECORD_FREE &&
	       type != SP_RECORD_FREE_ADDRESS && type != SP_RECORD_STACK &&
	       type != SP_RECORD_NAME && type != SP_RECORD_SYMBOL;
}

/* Of what is in discarded segments nothing stays. */
static int copy_records(struct facts *f, struct sp_chunk_writer *w,
			struct sp_reader *r)
{
	struct sp_decoded d;
	int code;

	while ((code = sp_reader_next(r, &d, f->err)) > 0) {
		if (!is_kept(d.type))
			continue;
		code = put_record(w, d.type, d.payload, d.payload_bytes);
		if (code < 0)
			return code;
	}
	return code;
}

static int write_records(struct facts *f, struct sp_packfile_facts *ret)
{
	const uint64_t error_ns = sp_packfile_time_error_ns(f->profile);
	struct sp_chunk_writer *w = malloc(sizeof(*w));
	struct sp_reader *r = malloc(sizeof(*r));
	int code = -ENOMEM;

	if (w && r) {
		sp_chunk_writer_init(w, f->profile->file_id, SP_CHUNK_RECORDS,
				     f->n_chunks, f->fn, f->arg);
		code = sp_reader_open(r, f->profile->path, f->err);
		if (code >= 0)
			code = copy_records(f, w, r);
		if (code >= 0 && error_ns && !f->profile->time_error_ns)
			code = put_time_error(w, error_ns);
		if (code >= 0)
			code = sp_chunk_writer_flush(w);
		if (code >= 0)
			code = sp_stackpack_write(f->profile, w->index, f->fn,
						  f->arg, &ret->places,
						  &ret->n_places);
		ret->unfinished = r->unfinished_chunks;
		sp_reader_close(r);
	}
	free(w);
	free(r);
	return code;
}

int sp_packfile_write_facts(const struct sp_profile *profile, sp_chunk_fn *fn,
			    void *arg, struct sp_packfile_facts *ret,
			    struct sp_error *err)
{
	struct facts f = {.profile = profile, .fn = fn, .arg = arg, .err = err};
	struct sp_source from;
	int r;

	/* Unless something else is said. */
	sp_error_memory(err, profile->path);
	r = sp_source_open(&from, profile->path, err);
	if (r >= 0)
		r = copy_chunks(&f, &from);
	sp_source_close(&from);
	return r < 0 ? r : write_records(&f, ret);
}

/* ---- events ---- */

struct teller {
	const struct sp_profile *profile;
	struct sp_packer *packer;
};

static uint64_t index_of(const struct sp_profile *p, uint32_t thread)
{
	return thread == UINT32_MAX ? 0 : p->thread_infos[thread].index;
}

static int tell_birth(const struct teller *t, const struct sp_sample *s)
{
	return sp_pack_sample(t->packer,
			      &(struct sp_record_sample){
				      .id = s->id,
				      .time_ns = s->born_ns,
				      .size_bytes = s->size_bytes,
				      .offset_bytes = s->offset_bytes,
				      .period_bytes = s->period_bytes,
				      .stack = t->profile->stacks[s->stack].id,
				      .thread = index_of(t->profile, s->thread),
				      .entry = s->entry});
}

static int tell_free(const struct teller *t, const struct sp_sample *s)
{
	const bool has_age = s->age_bytes != SP_UNKNOWN;

	return sp_pack_free(
		t->packer, &(struct sp_record_free){
				   .id = s->id,
				   .time_ns = s->freed_ns,
				   .thread = index_of(t->profile, s->freed_by),
				   .flags = s->free_missed ? SP_FREE_MISSED : 0,
				   .has_age = has_age,
				   .age_bytes = has_age ? s->age_bytes : 0});
}

/* As sp_sample_fn: what did not live for a nanosecond is not told twice. */
static int pack_event(void *arg, enum sp_sample_event event,
		      const struct sp_sample *s)
{
	const struct teller *t = arg;
	int r = 0;

	if (event == SP_SAMPLE_BORN || s->born_ns == s->freed_ns ||
	    !t->profile->has_frees)
		r = tell_birth(t, s);
	if (event == SP_SAMPLE_SETTLED && s->freed_ns != SP_NEVER && r >= 0)
		r = tell_free(t, s);
	return r;
}

/* Before and after these is a difference: no time may change sides. */
static uint64_t *moments_of(const struct sp_profile *p, size_t *ret_n)
{
	uint64_t *moments = malloc((p->n_stretches + p->n_snapshots + 2) *
				   sizeof(*moments));
	size_t n = 0;

	if (!moments)
		return NULL;
	for (size_t i = 0; i < p->n_stretches; i++)
		moments[n++] = p->stretches[i].from_ns;
	for (size_t i = 0; i < p->n_snapshots; i++)
		moments[n++] = p->snapshots[i].time_ns;
	/* What was freed at the window does not count any more. */
	if (p->window_ns) {
		moments[n++] = p->window_ns;
		moments[n++] = p->window_ns + 1;
	}
	qsort(moments, n, sizeof(*moments), sp_array_compare_u64);
	*ret_n = n;
	return moments;
}

int sp_packfile_write_events(const struct sp_profile *profile,
			     uint64_t first_chunk, uint64_t unfinished,
			     sp_chunk_fn *fn, void *arg, struct sp_error *err)
{
	size_t n = 0;
	uint64_t *moments = moments_of(profile, &n);
	struct teller t = {
		.profile = profile,
		.packer = sp_packer_new(profile->file_id, first_chunk,
					sp_packfile_time_error_ns(profile),
					moments, n, fn, arg)};
	int r = -ENOMEM;

	sp_error_memory(err, profile->path);
	if (moments && t.packer)
		r = sp_profile_walk(profile, NULL, NULL, pack_event, &t, err);
	if (r >= 0)
		r = sp_pack_end(t.packer, profile->unmatched_frees, unfinished);
	sp_packer_free(t.packer);
	free(moments);
	return r;
}
