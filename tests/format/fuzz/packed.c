/* SPDX-License-Identifier: MIT */
#include "format/fuzz/packed.h"

#include <stdlib.h>
#include <string.h>

#include "read/packfile.h"
#include "format/rewrite.h"
#include "format/fuzz/target.h"
#include "read/load.h"
#include "support/memfile.h"

#define CHUNK SP_FORMAT_CHUNK_BYTES

static struct {
	uint8_t bytes[SP_EVENTS_COLUMNS][CHUNK];
	size_t n[SP_EVENTS_COLUMNS];
	uint64_t before[3]; /* events, stacks, places of earlier chunks */
	int count;          /* -1: as many as there are */
	bool is_last;
} made;

static void clear(void)
{
	memset(made.n, 0, sizeof(made.n));
	made.count = -1;
	made.is_last = false;
}

void fuzz_columns_begin(void)
{
	memset(made.before, 0, sizeof(made.before));
	clear();
}

void fuzz_columns_add(unsigned int column, const uint8_t *bytes, size_t n)
{
	column %= SP_EVENTS_COLUMNS;
	if (n > CHUNK - made.n[column])
		n = CHUNK - made.n[column];
	if (n)
		memcpy(made.bytes[column] + made.n[column], bytes, n);
	made.n[column] += n;
}

void fuzz_columns_count(uint16_t n)
{
	made.count = n;
}

void fuzz_columns_last(void)
{
	made.is_last = true;
}

static uint32_t numbers_in(unsigned int column)
{
	uint32_t n = 0;

	for (size_t i = 0; i < made.n[column]; i++)
		n += made.bytes[column][i] < 0x80;
	return n;
}

/* Header and columns; the check is the last of the header. */
static void put(uint8_t *chunk, uint64_t file_id, enum sp_check_kind kind,
		void *header, size_t header_bytes, uint32_t *column_bytes,
		unsigned int n_columns)
{
	uint8_t *const at_header = chunk + SP_FORMAT_CHUNK_RECORDS_OFFSET;
	uint8_t *at = at_header + header_bytes;
	size_t used = 0;
	uint64_t check;

	for (unsigned int i = 0; i < n_columns; i++) {
		const size_t room = (size_t)(chunk + CHUNK - at) - used;
		const size_t n = made.n[i] < room ? made.n[i] : room;

		memcpy(at + used, made.bytes[i], n);
		column_bytes[i] = (uint32_t)n;
		used += n;
	}
	memcpy(at_header, header, header_bytes);
	check = sp_columns_check(file_id, kind, chunk, header_bytes, used);
	memcpy(at - sizeof(check), &check, sizeof(check));
}

static void put_events(uint8_t *chunk, uint64_t file_id)
{
	struct sp_events_header h = {
		.first = made.before[0],
		.n_events = made.count < 0 ? numbers_in(SP_COLUMN_WHAT)
					   : (uint32_t)made.count,
		.is_last = made.is_last,
		.unmatched_frees = made.is_last,
	};

	made.before[0] += h.n_events;
	put(chunk, file_id, SP_CHECK_EVENTS, &h, sizeof(h), h.column_bytes,
	    SP_EVENTS_COLUMNS);
}

static void put_stacks(uint8_t *chunk, uint64_t file_id)
{
	struct sp_stacks_header h = {
		.first = made.before[1],
		.n_stacks = made.count < 0 ? numbers_in(SP_COLUMN_STACK) / 4
					   : (uint32_t)made.count,
	};

	made.before[1] += h.n_stacks;
	put(chunk, file_id, SP_CHECK_STACKS, &h, sizeof(h), h.column_bytes,
	    SP_STACKS_COLUMNS);
}

static void put_names(uint8_t *chunk, uint64_t file_id)
{
	struct sp_names_header h = {
		.first = made.before[2],
		.n_places = made.count < 0 ? numbers_in(SP_COLUMN_LINES)
					   : (uint32_t)made.count,
		.n_texts = numbers_in(SP_COLUMN_LENGTH),
	};

	made.before[2] += h.n_places;
	put(chunk, file_id, SP_CHECK_NAMES, &h, sizeof(h), h.column_bytes,
	    SP_NAMES_COLUMNS);
}

void fuzz_columns_end(uint8_t *chunk, uint32_t kind, uint64_t file_id)
{
	if (kind == SP_CHUNK_EVENTS)
		put_events(chunk, file_id);
	else if (kind == SP_CHUNK_STACKS)
		put_stacks(chunk, file_id);
	else if (kind == SP_CHUNK_NAMES)
		put_names(chunk, file_id);
	clear();
}

/* ---- a copy ---- */

struct copy {
	struct memfile file;
	uint64_t n_chunks;
};

static int put_chunk(void *arg, const uint8_t *chunk)
{
	struct copy *c = arg;

	memfile_write(&c->file, c->n_chunks++ * CHUNK, chunk, CHUNK);
	return 0;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t error_ns)
{
	return a == b || (a < b ? b - a : a - b) < error_ns;
}

static void check_same(const struct sp_profile *a, const struct sp_profile *b,
		       uint64_t error_ns)
{
	FUZZ_ASSERT(!b->damage[0] && !b->is_cut);
	FUZZ_ASSERT(sp_profile_samples(a) == sp_profile_samples(b));
	FUZZ_ASSERT(a->exact_alloc_bytes == b->exact_alloc_bytes);
	FUZZ_ASSERT(a->unmatched_frees == b->unmatched_frees);
	FUZZ_ASSERT(a->unfinished_records == b->unfinished_records);
	FUZZ_ASSERT(a->n_stretches == b->n_stretches);
	FUZZ_ASSERT(a->n_rss == b->n_rss);
	for (size_t i = 0; i < a->n_samples; i++) {
		const struct sp_sample *x = &a->samples[i];
		const struct sp_sample *y = &b->samples[i];
		const struct sp_stack *p = &a->stacks[x->stack];
		const struct sp_stack *q = &b->stacks[y->stack];

		FUZZ_ASSERT(x->id == y->id && x->entry == y->entry);
		FUZZ_ASSERT(x->size_bytes == y->size_bytes);
		FUZZ_ASSERT(x->offset_bytes == y->offset_bytes);
		FUZZ_ASSERT(x->period_bytes == y->period_bytes);
		FUZZ_ASSERT(x->age_bytes == y->age_bytes);
		FUZZ_ASSERT(x->free_missed == y->free_missed);
		FUZZ_ASSERT(is_near(x->born_ns, y->born_ns, error_ns));
		FUZZ_ASSERT(is_near(x->freed_ns, y->freed_ns, error_ns));
		FUZZ_ASSERT(p->id == q->id && p->flags == q->flags);
		FUZZ_ASSERT(p->n_frames == q->n_frames);
		for (uint32_t k = 0; k < p->n_frames; k++)
			FUZZ_ASSERT(sp_profile_compare_frames(
					    &p->frames[k], &q->frames[k]) == 0);
	}
}

void fuzz_check_packed(const struct sp_profile *profile)
{
	struct sp_packfile_facts facts = {0};
	struct copy copy = {.n_chunks = 0};
	struct sp_profile *other;
	struct sp_error err;

	memfile_open(&copy.file);
	FUZZ_ASSERT(sp_packfile_write_facts(profile, put_chunk, &copy, &facts,
					    &err) == 0);
	free(facts.places);
	FUZZ_ASSERT(sp_packfile_write_events(profile, copy.n_chunks,
					     facts.unfinished, put_chunk, &copy,
					     &err) == 0);
	FUZZ_ASSERT(sp_profile_load(copy.file.path, NULL, NULL, &other, &err) ==
		    0);
	check_same(profile, other, sp_packfile_time_error_ns(profile));
	sp_profile_free(other);
	memfile_close(&copy.file);
}
