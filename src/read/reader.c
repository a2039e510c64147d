/* SPDX-License-Identifier: MIT */
#include "read/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/saturate.h"
#include "pack/events.h"
#include "read/fileheader.h"
#include "read/running.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

static void note_damage(struct sp_reader *r, uint64_t offset, uint64_t ignored,
			const char *field, const char *consequence)
{
	r->damage.records++;
	r->damage.ignored_bytes += ignored;
	if (r->damage.text[0])
		return;
	snprintf(r->damage.text, sizeof(r->damage.text),
		 "offset %" PRIu64 ": %s: %s", offset, field, consequence);
}

static bool all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/*
 * Of two copies, bit i of `torn` says that number i is neither valid nor
 * untouched.  A writer only ever touches the older one, number 1 at first; so
 * if it was stopped, the other one is valid, or there was nothing before.  An
 * orderly end stops the threads that are left: has_writer says that there may
 * have been one.
 */
static void note_torn(struct sp_reader *r, unsigned int torn, bool found,
		      bool has_writer, uint64_t offset, size_t bytes,
		      const char *field, const char *if_none)
{
	if (!torn || r->is_running)
		return;
	if ((r->status.end_kind != SP_END_CLEAN || has_writer) &&
	    (torn == 2 || (torn == 1 && found))) {
		r->unfinished++;
		return;
	}
	note_damage(r, offset, (torn == 3 ? 2 : 1) * bytes, field,
		    found ? "one of two copies is unreadable; the other one is "
			    "used"
			  : if_none);
}

/*
 * The newer valid one of two copies at `at` and at + stride, each of `bytes`
 * with `seq` first and `check` last, into ret; false if there is none.
 * *ret_torn is as in note_torn().
 */
static bool read_copies(struct sp_reader *r, const uint8_t *at, size_t stride,
			size_t bytes, enum sp_check_kind kind, void *ret,
			unsigned int *ret_torn)
{
	uint64_t best = 0;

	*ret_torn = 0;
	for (int i = 0; i < 2; i++) {
		const uint8_t *copy = at + (size_t)i * stride;
		uint64_t seq, check;

		memcpy(&seq, copy, 8);
		memcpy(&check, copy + bytes - 8, 8);
		if (all_zero(copy, bytes))
			continue;
		if ((seq & 1) != (uint64_t)i ||
		    check != sp_format_check(r->header.file_id, kind, copy,
					     bytes)) {
			*ret_torn |= 1u << i;
			continue;
		}
		if (seq > best) {
			best = seq;
			memcpy(ret, copy, bytes);
		}
	}
	return best > 0;
}

static void read_slots(struct sp_reader *r, const uint8_t *first_chunk,
		       bool *ret_torn)
{
	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
		uint64_t at =
			SP_FORMAT_SLOTS_OFFSET + i * sizeof(struct sp_slot);
		struct sp_slot_copy c = {0};
		unsigned int torn;
		bool found = read_copies(r, first_chunk + at, sizeof(c),
					 sizeof(c), SP_CHECK_SLOT, &c, &torn);

		*ret_torn |= torn > 0;
		note_torn(r, torn, found, found && c.thread, at, sizeof(c),
			  "thread slot",
			  "unreadable; exact totals are incomplete");
		if (!found)
			continue;
		r->slots[i] = (struct sp_reader_slot){
			.alloc_bytes = c.alloc_bytes,
			.alloc_objects = c.alloc_objects,
			.owner_bytes = c.alloc_bytes - c.base_bytes,
			.owner_objects = c.alloc_objects - c.base_objects,
			.thread = c.thread,
			.tid = c.tid,
		};
	}
}

static void read_status(struct sp_reader *r, const uint8_t *first_chunk,
			bool *ret_torn)
{
	const uint8_t *at = first_chunk + SP_FORMAT_STATUS_OFFSET;
	unsigned int torn;
	bool found =
		read_copies(r, at, SP_FORMAT_STATUS_STRIDE, sizeof(r->status),
			    SP_CHECK_STATUS, &r->status, &torn);

	if (!found)
		memset(&r->status, 0, sizeof(r->status));
	*ret_torn = torn > 0;
	note_torn(
		r, torn, found, found, SP_FORMAT_STATUS_OFFSET,
		sizeof(r->status), "status",
		"unreadable; losses and the end of the process are not known");
}

static void read_window(struct sp_reader *r, const uint8_t *first_chunk,
			bool *ret_torn)
{
	unsigned int torn;
	bool found = read_copies(r, first_chunk + SP_FORMAT_WINDOW_OFFSET,
				 sizeof(r->window), sizeof(r->window),
				 SP_CHECK_WINDOW, &r->window, &torn);

	if (!found)
		memset(&r->window, 0, sizeof(r->window));
	*ret_torn |= torn > 0;
	note_torn(r, torn, found, true, SP_FORMAT_WINDOW_OFFSET,
		  sizeof(r->window), "window",
		  "unreadable; samples that were discarded may be missing");
}

/* Status and slots; again if a writer was in the middle of them. */
static int read_totals(struct sp_reader *r, struct sp_error *err)
{
	for (int attempt = 0;; attempt++) {
		bool torn;
		ssize_t n = sp_source_read(&r->source, r->chunk, CHUNK, 0);

		if (n < 0)
			return sp_error_set(err, (int)n, r->path,
					    "cannot be read: %s",
					    sp_source_strerror((int)n));
		if ((size_t)n < SP_FORMAT_SLOTS_OFFSET)
			return sp_error_set_at(
				err, -EINVAL, r->path, (uint64_t)n, "status",
				"the file ends here, before its first totals: "
				"it is truncated");
		memset(r->chunk + n, 0, CHUNK - (size_t)n);
		memset(r->slots, 0, sizeof(r->slots));
		read_status(r, r->chunk, &torn);
		read_window(r, r->chunk, &torn);
		read_slots(r, r->chunk, &torn);
		if (!torn || !r->is_running || attempt == 10)
			return 0;
	}
}

/*
 * The writer gives the file its full length at once.  After an orderly end the
 * number of chunks is known, and only those have to be there; else there may
 * be more than were published.  A packed copy has an end of its own.
 */
static void note_if_cut(struct sp_reader *r)
{
	uint64_t whole;

	if (r->header.flags & SP_HEADER_PACKED)
		return;
	if (__builtin_mul_overflow(r->status.chunks, CHUNK, &whole))
		whole = UINT64_MAX;
	if (r->status.end_kind != SP_END_CLEAN &&
	    r->header.max_file_bytes > whole)
		whole = r->header.max_file_bytes;
	r->is_cut = r->file_bytes < whole;
	if (r->is_cut)
		note_damage(r, r->file_bytes, whole - r->file_bytes, "file",
			    "truncated: samples after this are missing");
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
	if (all_zero((const uint8_t *)&r->header, (size_t)n))
		return sp_error_set_at(err, -EINVAL, path, 0, "magic",
				       "the file is empty: its process was "
				       "stopped while it started");
	/* A short text is no profile that ends too soon. */
	if (memcmp(r->header.magic, SP_FORMAT_MAGIC,
		   (size_t)n < SP_FORMAT_MAGIC_BYTES ? (size_t)n
						     : SP_FORMAT_MAGIC_BYTES))
		return sp_error_set_at(err, -EINVAL, path, 0, "magic",
				       "this is not a sampleprof profile");
	if ((size_t)n < sizeof(r->header))
		return sp_error_set_at(
			err, -EINVAL, path, (uint64_t)n, "header",
			"the file ends here; a profile has a header of %zu "
			"bytes",
			sizeof(r->header));
	code = sp_fileheader_check(&r->header, path, err);
	if (code)
		return code;
	r->is_running = !r->source.unpacker &&
			sp_running(&r->header, r->source.stat.st_ino);
	code = read_totals(r, err);
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
		note_damage(r, (r->chunk_index + 1) * CHUNK, 0, "file",
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
	if (fstat(r->source.fd, &st) == 0 &&
	    (uint64_t)st.st_size < r->file_bytes) {
		note_damage(r, (uint64_t)st.st_size,
			    r->file_bytes - (uint64_t)st.st_size, "file",
			    "cut while it was read: samples after this are "
			    "missing");
		r->file_bytes = (uint64_t)st.st_size;
	}
	return 0;
}

/*
 * Is it whole, and of a slot that belongs there?  The sums are the check of
 * what the check does not cover.
 */
static bool class_page_is_whole(const struct sp_reader *r,
				const struct sp_class_page *page,
				unsigned int pair, uint64_t copy)
{
	struct sp_class_total sum = {0};

	if ((page->seq & 1) != copy || page->slot >= SP_FORMAT_SLOTS ||
	    page->slot % SP_FORMAT_CLASS_SLOTS != pair ||
	    page->check !=
		    sp_format_check(r->header.file_id, SP_CHECK_CLASSES, page,
				    offsetof(struct sp_class_page, classes)))
		return false;
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		sp_sat_add(&sum.bytes, page->classes[i].bytes);
		sp_sat_add(&sum.objects, page->classes[i].objects);
	}
	return sum.bytes == page->alloc_bytes &&
	       sum.objects == page->alloc_objects;
}

/* The newer whole one of a slot's two copies.  Of a slot that comes again the
 * first is meant. */
static void read_class_pair(struct sp_reader *r, unsigned int pair)
{
	size_t at = SP_FORMAT_PAGE_BYTES + pair * 2 * SP_FORMAT_PAGE_BYTES;
	struct sp_class_page copy, best = {.seq = 0};
	unsigned int torn = 0;

	for (uint64_t i = 0; i < 2; i++) {
		const uint8_t *page = r->chunk + at + i * SP_FORMAT_PAGE_BYTES;

		if (all_zero(page, sizeof(copy)))
			continue;
		memcpy(&copy, page, sizeof(copy));
		if (!class_page_is_whole(r, &copy, pair, i))
			torn |= 1u << i;
		else if (copy.seq > best.seq)
			best = copy;
	}
	note_torn(r, torn, best.seq, best.seq && r->slots[best.slot].thread,
		  r->chunk_index * CHUNK + at, sizeof(copy), "class totals",
		  "unreadable; intervals are wider");
	if (!best.seq || r->has_class_slot[best.slot])
		return;
	r->has_classes = r->has_class_slot[best.slot] = true;
	r->class_slots[best.slot] =
		(struct sp_class_total){best.alloc_bytes, best.alloc_objects};
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		sp_sat_add(&r->classes[i].bytes, best.classes[i].bytes);
		sp_sat_add(&r->classes[i].objects, best.classes[i].objects);
	}
}

static void read_class_chunk(struct sp_reader *r)
{
	memset(r->chunk + r->chunk_bytes, 0, CHUNK - r->chunk_bytes);
	for (unsigned int i = 0; i < SP_FORMAT_CLASS_SLOTS; i++)
		read_class_pair(r, i);
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
	    all_zero(r->chunk + sizeof(struct sp_chunk_header),
		     n - sizeof(struct sp_chunk_header)))
		note_unfinished(r);
	else
		note_damage(r, at, n, "chunk header",
			    "damaged: its samples are not used");
}

static void note_bad_columns(struct sp_reader *r, const char *field)
{
	note_damage(r, r->chunk_index * CHUNK, r->chunk_bytes, field,
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
		return sp_error_set(err, -ENOMEM, r->path, "not enough memory");
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
		note_damage(r, at, 0, sp_source_strerror((int)n),
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
	if (all_zero(r->chunk, (size_t)n))
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
		read_class_chunk(r);
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
	if (r->is_running || all_zero(record, left))
		return;
	while (record[left - 1] == 0)
		left--;
	if (is_unfinished(record, left))
		note_unfinished(r);
	else
		note_damage(r, r->chunk_index * CHUNK + r->offset, left,
			    "record",
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
			note_damage(r, r->chunk_index * CHUNK + r->offset,
				    r->chunk_bytes - r->offset, ret->field,
				    "damaged: the samples after it in this "
				    "chunk are not used");
		r->in_chunk = false;
	}
}

bool sp_reader_is_outdated(struct sp_reader *r)
{
	uint8_t copies[2 * sizeof(struct sp_window)];
	struct sp_window now = {.seq = 0};
	unsigned int torn;

	if (!r->is_running)
		return false;
	if (sp_source_read(&r->source, copies, sizeof(copies),
			   SP_FORMAT_WINDOW_OFFSET) != sizeof(copies))
		return true;
	return read_copies(r, copies, sizeof(now), sizeof(now), SP_CHECK_WINDOW,
			   &now, &torn) &&
	       now.oldest != r->window.oldest;
}

void sp_reader_close(struct sp_reader *r)
{
	sp_unpacker_free(r->unpacker);
	r->unpacker = NULL;
	sp_source_close(&r->source);
}
