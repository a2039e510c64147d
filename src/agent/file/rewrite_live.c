/* SPDX-License-Identifier: MIT */
/*
 * A pass reads the chunks of the previous segment, record by record, and asks
 * the live set about each sample.
 *
 * Nothing that is alive is missed.  A sample is written to segment s, inserted
 * into the live set, and then its thread looks at the number of the current
 * segment.  If a pass over s finds the record and the object in the set, it is
 * rewritten.  If not, s had ended before the insert, so that its thread finds
 * another number and writes the sample once more by itself.
 *
 * Nothing that is dead is rewritten for good.  The free of a sample that a pass
 * found alive takes it out of the set afterwards, so that its record goes to
 * the segment that the sample is rewritten into, or to a later one.  What is
 * rewritten so late that there has been a rotation meanwhile is not written.
 *
 * A sample that two have rewritten, or that its thread wrote once more, is in a
 * segment twice.  Only the first is rewritten again: the live set knows what
 * the segment has.  Otherwise they would double with every such accident, for
 * as long as the object lives.
 *
 * The stacks of what is rewritten are taken along (stacktab.c), so that the new
 * segment can be read without the old one.
 *
 * I1  A thread that continues `pass` holds a lease and works on a copy.  A
 *     holder that exceeds TAKEN_NS is presumed gone (off the processor, or left
 *     by siglongjmp): another thread repeats its step.  If the first one does
 *     return, the step is done twice.  Every stored state of a pass is true:
 *     all records before it were looked at.
 * I2  Then two threads may store `pass` at the same time.  Such a mixed state
 *     does not agree with its `check`, and the pass begins anew.
 * I3  A late thread writes to the segment of its own pass, or not at all.  It
 *     leaves `complete` and `finished` as they are, or sets them back to a
 *     value that the next step corrects.  Likewise its late step may set
 *     sp_ring_passed too low, or to a value of an older segment.
 */
#include "agent/file/rewrite_live.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/file/chunks.h"
#include "agent/file/livemaps.h"
#include "agent/file/liveset.h"
#include "agent/file/ring.h"
#include "agent/file/stacktab.h"
#include "agent/sys/diag.h"
#include "agent/thread/lease.h"
#include "base/hash.h"
#include "format/scan.h"

#include "agent/sys/poison.h"

#define RECORDS 32u /* with one sample: some us */
/* Some times what a step takes, and a part of what a thread may run before the
 * next one does: on one processor each would find the lease of the last. */
#define TAKEN_NS 250000u

/* How far a pass over `segment` has come. */
struct pass {
	uint32_t segment;
	uint32_t in_chunk; /* 1, or 0: behind it */
	uint64_t chunk;    /* 0: before the first */
	uint64_t offset;
	struct sp_chunk_state state;
};

#define WORDS (sizeof(struct pass) / sizeof(uint64_t))
static_assert(sizeof(struct pass) % sizeof(uint64_t) == 0, "whole words");

static _Atomic uint64_t lease;
static _Atomic uint64_t pass[WORDS + 1]; /* and its check */
static _Atomic uint32_t finished;

void sp_rewrite_live_reset(void)
{
	atomic_store(&lease, 0);
	atomic_store(&finished, 0);
	atomic_store(&pass[WORDS], 0);
}

void sp_rewrite_live_give_left(void)
{
	sp_lease_give_left(&lease);
}

uint32_t sp_rewrite_live_finished(void)
{
	const uint32_t segment =
		atomic_load_explicit(&finished, memory_order_acquire);

	return segment == sp_ring_complete() + 1 ? segment : 0;
}

/* All zero if it is not whole. */
static void read_pass(struct pass *ret)
{
	uint64_t words[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		words[i] = atomic_load_explicit(&pass[i], memory_order_relaxed);
	/* cppcheck-suppress uninitvar ; all WORDS of them were loaded */
	memcpy(ret, words, sizeof(*ret));
	if (atomic_load_explicit(&pass[WORDS], memory_order_relaxed) !=
	    sp_hash_bytes(1, words, sizeof(words)))
		*ret = (struct pass){.segment = 0};
}

static void store_pass(const struct pass *p)
{
	uint64_t words[WORDS];

	memcpy(words, p, sizeof(words));
	for (size_t i = 0; i < WORDS; i++)
		atomic_store_explicit(&pass[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&pass[WORDS],
			      sp_hash_bytes(1, words, sizeof(words)),
			      memory_order_relaxed);
}

/* False: there is no more of the segment. */
static bool next_chunk(struct pass *p)
{
	const uint64_t n = sp_ring_next_of(p->segment, p->chunk);

	if (!n)
		return false;
	p->chunk = n;
	p->in_chunk = 1;
	p->offset = SP_FORMAT_CHUNK_RECORDS_OFFSET;
	p->state = (struct sp_chunk_state){.hash = 0};
	return true;
}

/* Into the next segment; false: not now. */
static bool rewrite_sample(struct sp_lane *lane, uint32_t from,
			   struct sp_record *r,
			   const struct sp_liveset_place *place)
{
	struct sp_record_sample *sample = &r->u.sample;
	const uint64_t stack = sample->stack;

	sample->is_again = true;
	if (sp_stacktab_rewrite(lane, from, &sample->stack) &&
	    sp_chunks_rewrite(lane, r, from + 1)) {
		sp_liveset_rewritten(place, from + 1);
		if (stack && !sample->stack)
			sp_diag_lose(SP_LOSS_STACK_TABLE, 1);
		return true;
	}
	/* A later event goes on here, unless there is no room for ever. */
	if (sp_ring_segment() != from + 1 || sp_ring_has_room())
		return false;
	sp_diag_lose(SP_LOSS_FILE_FULL, 1);
	return true;
}

/* What is going to be asked about the next records is far away, and each in
 * another place. */
static void prefetch_some(const struct pass *p, const uint8_t *chunk,
			  size_t bytes, unsigned int records)
{
	struct sp_chunk_state state = p->state;
	struct sp_record_sample sample;
	size_t offset = p->offset;

	while (sp_scan_sample(&state, chunk, bytes, &offset, &records, &sample))
		sp_liveset_prefetch((const void *)(uintptr_t)sample.address);
}

/* What is alive of the next records in the chunk; false: not now. */
static bool rewrite_some(struct pass *p, struct sp_lane *lane,
			 unsigned int *records)
{
	size_t bytes, offset = p->offset;
	const uint8_t *chunk = sp_chunks_read(p->chunk, p->segment, &bytes);
	struct sp_record r = {.type = SP_RECORD_SAMPLE};
	struct sp_chunk_state state = p->state;
	struct sp_liveset_place place;

	if (chunk)
		prefetch_some(p, chunk, bytes, *records);
	while (chunk && sp_scan_sample(&state, chunk, bytes, &offset, records,
				       &r.u.sample)) {
		if (sp_liveset_is_missing(
			    (const void *)(uintptr_t)r.u.sample.address,
			    r.u.sample.id, p->segment + 1, &place) &&
		    !rewrite_sample(lane, p->segment, &r, &place))
			return false;
		p->state = state;
		p->offset = offset;
	}
	p->state = state;
	p->offset = offset;
	/* What a thread that was stopped may still add is not in the set yet.
	 */
	if (*records) {
		sp_chunks_leave(p->chunk);
		p->in_chunk = 0;
	}
	return true;
}

/* False: the pass is at its end. */
static bool go_on(struct pass *p, struct sp_lane *lane)
{
	unsigned int records = RECORDS;

	while (records) {
		if (!p->in_chunk && !next_chunk(p))
			return false;
		if (!rewrite_some(p, lane, &records))
			break;
	}
	return true;
}

static __attribute__((noinline)) void step(struct sp_lane *lane)
{
	const uint32_t now = sp_ring_segment();
	struct pass mine;
	uint64_t token;

	token = sp_lease_take(&lease, TAKEN_NS);
	if (!token)
		return;
	read_pass(&mine);
	if (mine.segment != now - 1)
		mine = (struct pass){.segment = now - 1};
	/* First, while all of the room that the segment before took is kept for
	 * what is rewritten of it. */
	if (!sp_livemaps_rewrite(lane, now - 1)) {
		sp_lease_give(&lease, token);
		return;
	}
	if (!go_on(&mine, lane)) {
		sp_ring_passed(now - 1, UINT32_MAX);
		atomic_store_explicit(&finished, now, memory_order_release);
	} else if (atomic_load(&lease) == token) {
		sp_ring_passed(now - 1, (uint32_t)mine.chunk);
		store_pass(&mine);
	}
	sp_lease_give(&lease, token);
}

void sp_rewrite_live_step(struct sp_lane *lane)
{
	if (!sp_ring_at_rest() && !sp_rewrite_live_finished())
		step(lane);
}
