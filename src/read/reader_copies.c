/* SPDX-License-Identifier: MIT */
/* What a file keeps in two copies: status, window, totals of threads and of
 * size classes. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/saturate.h"
#include "read/reader_inner.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

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
	sp_reader_note_damage(
		r, offset, (torn == 3 ? 2 : 1) * bytes, field,
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
		if (sp_reader_is_zero(copy, bytes))
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
		const uint64_t damaged = r->damage.records;
		unsigned int torn;
		bool found = read_copies(r, first_chunk + at, sizeof(c),
					 sizeof(c), SP_CHECK_SLOT, &c, &torn);

		*ret_torn |= torn > 0;
		note_torn(r, torn, found, found && c.thread, at, sizeof(c),
			  "thread slot",
			  "unreadable; exact totals are incomplete");
		r->lacks_slots |= !found && r->damage.records > damaged;
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

int sp_reader_read_totals(struct sp_reader *r, struct sp_error *err)
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

		if (sp_reader_is_zero(page, sizeof(copy)))
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

void sp_reader_read_classes(struct sp_reader *r)
{
	memset(r->chunk + r->chunk_bytes, 0, CHUNK - r->chunk_bytes);
	for (unsigned int i = 0; i < SP_FORMAT_CLASS_SLOTS; i++)
		read_class_pair(r, i);
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
