/* SPDX-License-Identifier: MIT */
/*
 * A pass reads the chunks of the segment before, record by record, and asks the
 * live set about each sample.
 *
 * Nothing that is alive is missed.  A sample is written to segment s, inserted
 * into the live set, and then its thread looks at the number of the current
 * segment.  If a pass over s finds the record and the object in the set, it is
 * carried.  If not, s had ended before the insert, so that its thread finds
 * another number and writes the sample once more by itself.
 *
 * Nothing that is dead is carried for good.  The free of a sample that a pass
 * found alive takes it out of the set afterwards, so that its record goes to
 * the segment that the sample is carried to, or to a later one.  What is
 * carried so late that there has been a turn meanwhile is not written.
 *
 * I1  `since` is when somebody began to go on with `pass`, of which he has a
 *     copy.  Who needs longer than TAKEN_NS is off the processor, or has
 *     left by siglongjmp: another begins where he began, and what he still
 *     does is done twice, but for the storing of his copy.  That is a
 *     moment of its own, STORING; who gets lost in it leaves a pass that has
 *     to begin anew.
 */
#include "agent/carry.h"

#include <stdatomic.h>
#include <stddef.h>

#include "agent/chunks.h"
#include "agent/liveset.h"
#include "agent/ring.h"
#include "agent/writer.h"
#include "format/scan.h"

#include "agent/poison.h"

#define RECORDS   32u         /* with one sample: some us */
#define TAKEN_NS  1000000u    /* 1 ms */
#define STORED_NS 1000000000u /* 1 s */

/* Of `since`, whose other bits are the time. */
#define TAKEN   1ull
#define STORING 2ull

/* How far a pass over `segment` has come. */
struct pass {
	uint32_t segment;
	uint64_t chunk; /* 0: before the first */
	bool in_chunk;
	size_t offset;
	struct sp_chunk_state state;
};

static _Atomic uint64_t since; /* 0: nobody is at it */
static struct pass pass;
static _Atomic uint32_t finished;

void sp_carry_reset(void)
{
	atomic_store(&since, 0);
	atomic_store(&finished, 0);
	pass = (struct pass){0};
}

uint32_t sp_carry_finished(void)
{
	const uint32_t segment =
		atomic_load_explicit(&finished, memory_order_acquire);

	return segment == sp_ring_covered() + 1 ? segment : 0;
}

/* *ret_mine is what `since` is then, *ret_pass how far the pass has come. */
static bool take(uint64_t *ret_mine, struct pass *ret_pass)
{
	uint64_t other = atomic_load(&since);
	const uint64_t age_ns = sp_writer_time() - (other & ~3ull);

	*ret_mine = (sp_writer_time() & ~3ull) | TAKEN;
	if (other && age_ns < (other & STORING ? STORED_NS : TAKEN_NS))
		return false;
	if (!atomic_compare_exchange_strong(&since, &other, *ret_mine))
		return false;
	*ret_pass = other & STORING ? (struct pass){0} : pass;
	return true;
}

/* Unless another has taken over. */
static void store(uint64_t mine, const struct pass *p)
{
	const uint64_t storing = (mine & ~TAKEN) | STORING;

	if (!atomic_compare_exchange_strong(&since, &mine, storing))
		return;
	pass = *p;
	atomic_store(&since, 0);
}

/* False: there is no more of the segment. */
static bool next_chunk(struct pass *p)
{
	const uint64_t n = sp_ring_next_of(p->segment, p->chunk);

	if (!n)
		return false;
	p->chunk = n;
	p->in_chunk = true;
	p->offset = SP_FORMAT_CHUNK_RECORDS_OFFSET;
	p->state = (struct sp_chunk_state){.hash = 0};
	return true;
}

/* What is alive of the next records in the chunk; false: there is no room. */
static bool carry_some(struct pass *p, struct sp_lane *lane,
		       unsigned int *records)
{
	size_t bytes;
	const uint8_t *chunk = sp_chunks_read(p->chunk, p->segment, &bytes);
	struct sp_record r = {.type = SP_RECORD_SAMPLE};
	struct pass after = *p;

	while (chunk && sp_scan_sample(&after.state, chunk, bytes,
				       &after.offset, records, &r.u.sample)) {
		r.u.sample.is_again = true;
		if (sp_liveset_has((const void *)(uintptr_t)r.u.sample.address,
				   r.u.sample.id) &&
		    !sp_chunks_append_to(lane, &r, p->segment + 1))
			return false;
		*p = after;
	}
	*p = after;
	/* What a thread that was stopped may still add is not in the set yet.
	 */
	if (*records) {
		sp_chunks_leave(p->chunk);
		p->in_chunk = false;
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
		if (!carry_some(p, lane, &records))
			break;
	}
	return true;
}

void sp_carry_step(struct sp_lane *lane)
{
	const uint32_t now = sp_ring_segment();
	struct pass mine;
	uint64_t token;
	bool is_done;

	if (sp_ring_covered() == now || sp_carry_finished() ||
	    !take(&token, &mine))
		return;
	if (mine.segment != now - 1)
		mine = (struct pass){.segment = now - 1};
	is_done = !go_on(&mine, lane);
	store(token, &mine);
	if (is_done)
		atomic_store_explicit(&finished, now, memory_order_release);
}
