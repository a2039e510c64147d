/* SPDX-License-Identifier: MIT */
#include "read/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/regular.h"
#include "pack/events.h"
#include "read/fileheader.h"
#include "read/reader_inner.h"
#include "read/running.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

void sp_reader_note_damage(struct sp_reader *r, uint64_t offset,
			   uint64_t ignored, const char *field,
			   const char *consequence)
{
	r->damage.records++;
	r->damage.ignored_bytes += ignored;
	if (r->damage.text[0])
		return;
	snprintf(r->damage.text, sizeof(r->damage.text),
		 "offset %" PRIu64 ": %s: %s", offset, field, consequence);
}

/* It ends here, and not after `whole` bytes. */
static void note_cut(struct sp_reader *r, uint64_t whole)
{
	r->is_cut = true;
	sp_reader_note_damage(r, r->file_bytes, whole - r->file_bytes, "file",
			      "truncated: samples after this are missing");
}

/*
 * The writer gives the file its full length at once.  After an orderly end the
 * number of chunks is known, and only those have to be there; else there may
 * be more than were published.  A packed copy has an end of its own.
 */
static void note_if_cut(struct sp_reader *r)
{
	uint64_t whole;

	/* Before the last totals, in any file. */
	if (r->header.flags & SP_HEADER_PACKED) {
		if (r->file_bytes < CHUNK)
			note_cut(r, CHUNK);
		return;
	}
	if (__builtin_mul_overflow(r->status.chunks, CHUNK, &whole))
		whole = UINT64_MAX;
	if (r->status.end_kind != SP_END_CLEAN &&
	    r->header.max_file_bytes > whole)
		whole = r->header.max_file_bytes;
	if (whole < CHUNK)
		whole = CHUNK;
	if (r->file_bytes < whole)
		note_cut(r, whole);
}

/* A file that is no profile, by its first bytes: what it is, and what takes
 * it. */
static int refuse_other(const char *path, const uint8_t *bytes, size_t n,
			struct sp_error *err)
{
	static const struct {
		const char *magic;
		size_t bytes;
		const char *what;
	} kinds[] = {
		{"#!", 2, "a script: `sampleprof run` records it"},
		{"\x1f\x8b", 2, "compressed by gzip, as profiles of pprof are"},
		{"PERFILE2", 8, "a profile of perf"},
		{"SQLite format 3", 16,
		 "a database: `sampleprof fleet report --db sqlite:FILE`"},
		{"PK\3\4", 4, "a zip archive"},
		{"{", 1, "JSON, perhaps an export or a baseline"},
	};

	if (n >= 18 && memcmp(bytes, "\177ELF", 4) == 0)
		return sp_error_set(
			err, -EINVAL, path, "this is an ELF %s%s",
			bytes[16] == 2 || bytes[16] == 3 ? "executable or "
							   "library"
			: bytes[16] == 4                 ? "core file"
							 : "file",
			bytes[16] == 2 || bytes[16] == 3
				? ", no profile: `sampleprof run PROGRAM` "
				  "records one"
				: ", no profile");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (n >= kinds[i].bytes &&
		    memcmp(bytes, kinds[i].magic, kinds[i].bytes) == 0)
			return sp_error_set(err, -EINVAL, path,
					    "this is no profile, but %s",
					    kinds[i].what);
	return sp_error_set_at(err, -EINVAL, path, 0, "magic",
			       "this is not a sampleprof profile");
}

int sp_reader_open(struct sp_reader *r, const char *path, struct sp_error *err)
{
	ssize_t n;
	int code;

	memset(r, 0, sizeof(*r));
	r->path = path;
	code = sp_source_open(&r->source, path, err);
	if (code)
		return code;
	r->file_bytes = r->source.bytes;
	n = sp_source_read(&r->source, &r->header, sizeof(r->header), 0);
	if (n < 0)
		return sp_error_set(err, (int)n, path, "cannot be read: %s",
				    sp_source_strerror((int)n));
	if (sp_reader_is_zero((const uint8_t *)&r->header, (size_t)n))
		return sp_error_set_at(err, -EINVAL, path, 0, "magic",
				       "the file is empty: its process was "
				       "stopped while it started");
	/* A short text is no profile that ends too soon. */
	if (memcmp(r->header.magic, SP_FORMAT_MAGIC,
		   (size_t)n < SP_FORMAT_MAGIC_BYTES ? (size_t)n
						     : SP_FORMAT_MAGIC_BYTES))
		return refuse_other(path, (const uint8_t *)&r->header,
				    (size_t)n, err);
	if ((size_t)n < sizeof(r->header))
		return sp_error_set_at(
			err, -EINVAL, path, (uint64_t)n, "header",
			"the file ends here; a profile has a header of %zu "
			"bytes",
			sizeof(r->header));
	code = sp_fileheader_check(&r->header, path, err);
	if (code)
		return code;
	r->is_running =
		!r->source.unpacker && sp_running(&r->header, r->source.fd);
	code = sp_reader_read_totals(r, err);
	if (code)
		return code;
	if (r->status.end_kind == SP_END_CLEAN)
		r->is_running = false;
	r->opened_ns = r->is_running ? sp_running_now_ns(&r->header, &r->status)
				     : UINT64_MAX;
	note_if_cut(r);
	return 0;
}

/* What the copy could not tell in another way, if it is all there. */
static int end_of_packed(struct sp_reader *r)
{
	uint64_t unfinished = 0;

	if (r->unpacker &&
	    sp_unpack_is_complete(r->unpacker, &r->unmatched_frees,
				  &unfinished)) {
		r->unfinished += unfinished;
		r->unfinished_chunks += unfinished;
		return 0;
	}
	r->is_cut = true;
	if (!r->damage.records)
		sp_reader_note_damage(
			r, (r->chunk_index + 1) * CHUNK, 0, "file",
			"truncated: samples after this are missing");
	return 0;
}

/*
 * Nothing more to read.  A file that someone cuts while it is read looks as if
 * it had ended there.
 */
static int end_of_file(struct sp_reader *r)
{
	struct stat st;

	if (r->header.flags & SP_HEADER_PACKED)
		return end_of_packed(r);
	if (r->source.unpacker && r->source.bytes != r->file_bytes) {
		r->file_bytes = r->source.bytes;
		note_if_cut(r);
	}
	if (r->source.unpacker)
		return 0;
	if (sp_regular_stat_found(r->source.fd, &st) == 0 &&
	    (uint64_t)st.st_size < r->file_bytes) {
		r->is_cut = true;
		sp_reader_note_damage(
			r, (uint64_t)st.st_size,
			r->file_bytes - (uint64_t)st.st_size, "file",
			"cut while it was read: samples after this are "
			"missing");
		r->file_bytes = (uint64_t)st.st_size;
	}
	return 0;
}

static void note_unfinished(struct sp_reader *r)
{
	r->unfinished++;
	r->unfinished_chunks++;
}

/* The header of a chunk is neither zero nor right: it is stored first. */
static void note_bad_header(struct sp_reader *r, uint64_t at, size_t n)
{
	if (r->is_running)
		return;
	if (r->status.end_kind != SP_END_CLEAN &&
	    n > sizeof(struct sp_chunk_header) &&
	    sp_reader_is_zero(r->chunk + sizeof(struct sp_chunk_header),
			      n - sizeof(struct sp_chunk_header)))
		note_unfinished(r);
	else
		sp_reader_note_damage(r, at, n, "chunk header",
				      "damaged: its samples are not used");
}

static void note_bad_columns(struct sp_reader *r, const char *field)
{
	sp_reader_note_damage(r, r->chunk_index * CHUNK, r->chunk_bytes, field,
			      "damaged: the samples after it are not used");
}

/* 1, or negative errno. */
static int begin_columns(struct sp_reader *r, uint32_t kind,
			 struct sp_error *err)
{
	const char *field;

	if (!r->unpacker)
		r->unpacker = sp_unpacker_new(r->header.file_id);
	if (!r->unpacker)
		return sp_error_memory(err, r->path);
	field = sp_unpack_chunk(r->unpacker, kind, r->chunk, r->chunk_bytes);
	r->in_columns = !field;
	if (field)
		note_bad_columns(r, field);
	return 1;
}

/* The next record of the chunk: 1; 0: there is none; or negative errno. */
static int next_of_columns(struct sp_reader *r, struct sp_decoded *ret,
			   struct sp_error *err)
{
	const int code = sp_unpack_next(r->unpacker, ret);

	r->in_columns = code > 0;
	if (code == -EBADMSG) {
		note_bad_columns(r, ret->field);
		return 0;
	}
	return code < 0 ? sp_error_set(err, code, r->path, "not enough memory")
			: code;
}

static bool may_have_segments(const struct sp_file_header *h)
{
	return (h->flags & (SP_HEADER_SEGMENTS | SP_HEADER_PACKED)) ==
	       SP_HEADER_SEGMENTS;
}

/* Move to the next chunk that has something in it.  1, 0 at the end. */
static int next_chunk(struct sp_reader *r, struct sp_error *err)
{
	uint64_t at = (r->chunk_index + 1) * CHUNK;
	struct sp_chunk_header h;
	const uint64_t data = sp_source_next_data(&r->source, at);
	ssize_t n;

	if (data > at)
		at = data / CHUNK * CHUNK;
	if (data == UINT64_MAX || at >= r->file_bytes)
		return end_of_file(r);
	n = sp_source_read(&r->source, r->chunk, CHUNK, at);
	if (n == -EBADMSG || n == -EFBIG) {
		r->is_cut = true;
		sp_reader_note_damage(r, at, 0, sp_source_strerror((int)n),
				      "samples after this are missing");
		return 0;
	}
	if (n < 0)
		return sp_error_set(err, (int)n, r->path, "cannot be read: %s",
				    strerror((int)-n));
	if (n == 0)
		return end_of_file(r);
	r->chunk_index = at / CHUNK;
	r->chunk_bytes = (size_t)n;
	r->in_chunk = false;
	if (sp_reader_is_zero(r->chunk, (size_t)n))
		return 1;
	memset(&h, 0, sizeof(h));
	if ((size_t)n >= sizeof(h))
		memcpy(&h, r->chunk, sizeof(h));
	if (h.magic != SP_FORMAT_CHUNK_MAGIC ||
	    (uint32_t)h.index != r->chunk_index ||
	    (h.index >> 32 && !may_have_segments(&r->header)) ||
	    h.check != sp_format_check(r->header.file_id, SP_CHECK_CHUNK, &h,
				       sizeof(h))) {
		note_bad_header(r, at, (size_t)n);
		return 1;
	}
	/* Permanent, or of a segment that was not discarded? */
	if (h.index >> 32 && h.index >> 32 < r->window.oldest)
		return 1;
	if (h.kind == SP_CHUNK_CLASSES)
		sp_reader_read_classes(r);
	if (r->header.flags & SP_HEADER_PACKED && h.kind >= SP_CHUNK_EVENTS &&
	    h.kind <= SP_CHUNK_NAMES)
		return begin_columns(r, h.kind, err);
	if (h.kind != SP_CHUNK_RECORDS && h.kind != SP_CHUNK_SYMBOLS)
		return 1;
	sp_chunk_state_init(&r->state, r->header.file_id, h.index);
	r->state.has_stack_steps = r->header.flags & SP_HEADER_STACK_STEPS;
	r->offset = SP_FORMAT_CHUNK_RECORDS_OFFSET;
	r->in_chunk = true;
	return 1;
}

/* Could the `n` bytes at `record`, the last of which is not zero, be all that a
 * writer had stored of one record? */
static bool is_unfinished(const uint8_t *record, size_t n)
{
	struct sp_slice s = {record + 1, record + n, false};
	uint64_t payload_bytes = sp_slice_varint(&s);
	uint64_t left = sp_slice_left(&s);

	return s.failed || left <= 2 || left - 2 <= payload_bytes;
}

/* The committed part of the chunk ended: whatever follows is an unfinished
 * record, or damage. */
static void finish_chunk(struct sp_reader *r)
{
	const uint8_t *record = r->chunk + r->offset;
	size_t left = r->chunk_bytes - r->offset;

	r->in_chunk = false;
	if (r->is_running || sp_reader_is_zero(record, left))
		return;
	while (record[left - 1] == 0)
		left--;
	if (is_unfinished(record, left))
		note_unfinished(r);
	else
		sp_reader_note_damage(
			r, r->chunk_index * CHUNK + r->offset, left, "record",
			"damaged: the samples after it in this chunk are "
			"not used");
}

/*
 * A file that is being written is read as of when it was opened: of what comes
 * meanwhile some is found and some is not, samples without their frees.
 */
static bool is_later(const struct sp_reader *r, const struct sp_decoded *d)
{
	switch (d->type) {
	case SP_RECORD_SAMPLE:
		return d->u.sample.time_ns > r->opened_ns;
	case SP_RECORD_FREE:
		return d->u.free.time_ns > r->opened_ns;
	case SP_RECORD_FREE_ADDRESS:
		return d->u.free_address.time_ns > r->opened_ns;
	case SP_RECORD_RSS:
		return d->u.rss.time_ns > r->opened_ns;
	case SP_RECORD_MARK:
		return d->u.mark.time_ns > r->opened_ns;
	case SP_RECORD_MAP:
		return d->u.map.time_ns > r->opened_ns;
	case SP_RECORD_UNMAP:
		return d->u.unmap.time_ns > r->opened_ns;
	default:
		return false;
	}
}

int sp_reader_next(struct sp_reader *r, struct sp_decoded *ret,
		   struct sp_error *err)
{
	for (;;) {
		enum sp_decode_result result;
		int code;

		while (!r->in_chunk) {
			code = r->in_columns ? next_of_columns(r, ret, err) : 0;
			if (code)
				return code;
			code = next_chunk(r, err);
			if (code <= 0)
				return code;
		}
		result = sp_decode_next(&r->state, r->chunk, r->chunk_bytes,
					&r->offset, ret);
		if (result == SP_DECODE_RECORD && r->is_running &&
		    is_later(r, ret))
			continue;
		if (result == SP_DECODE_RECORD)
			return 1;
		if (result == SP_DECODE_END) {
			finish_chunk(r);
			continue;
		}
		/* A running writer may be between the bytes that were read. */
		if (!r->is_running)
			sp_reader_note_damage(
				r, r->chunk_index * CHUNK + r->offset,
				r->chunk_bytes - r->offset, ret->field,
				"damaged: the samples after it in this "
				"chunk are not used");
		r->in_chunk = false;
	}
}

void sp_reader_close(struct sp_reader *r)
{
	sp_unpacker_free(r->unpacker);
	r->unpacker = NULL;
	sp_source_close(&r->source);
}
