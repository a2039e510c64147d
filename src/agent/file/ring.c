/* SPDX-License-Identifier: MIT */
/*
 * I1  The owner of a chunk is one word, changed by compare-and-swap, so that
 *     only one thread can take a chunk.  It is FREE, PERMANENT for good, or a
 *     segment and the number of the lane that filled it.
 * I2  oldest <= complete <= current <= complete + 1.  A chunk of a segment
 *     before `oldest` is free again; `oldest` changes when the file says so,
 *     and with it `current`, in one step.
 * I3  A lane stores only into a chunk of the segment that it found to be the
 *     current one after it was taken.  So chunks of a discarded segment are
 *     immutable.  Exception: a stalled writer's chunk, which is not reused
 *     until that thread resumes.
 * I4  A thread that leaves a rotation by siglongjmp, or is stopped in it, loses
 *     it after ROTATION_NS.  When it resumes, its stores have no effect, since
 *     the range has changed.  Exception: a window that it was writing may spoil
 *     one of the two copies until the next rotation.
 */
#include "agent/file/ring.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/thread/lease.h"

#include "agent/sys/poison.h"

#define FREE      0ull
#define PERMANENT UINT64_MAX

/* The file has at most that many segments: about one in use for each share, as
 * long as threads take whole chunks. */
#define SHARES       8u
#define SEGMENTS_MAX 16u

/* Of a chunk, for records: bytes. */
#define ROOM                                                                   \
	((uint64_t)(SP_FORMAT_CHUNK_BYTES - SP_FORMAT_CHUNK_RECORDS_OFFSET))

/* Without rotation, for what comes after the last sample: modules, marks,
 * totals.
 */
#define KEPT 16u

/* Chunks of a file that is closed for what comes after its end. */
#define SPARE 2u

#define ROTATION_NS 1000000000u

/* What a lane has while it is taking a chunk: any. */
#define ANY_CHUNK UINT64_MAX

static _Atomic uint64_t owners[SP_RING_CHUNKS_MAX];
static uint64_t n_chunks;
static _Atomic uint64_t cursor; /* chunks are looked for from here on */
static _Atomic uint64_t extent;
static bool is_rotated;
static _Atomic uint64_t n_permanent;
/* Without rotation, once the file is closed: what is left, up to spare_end,
 * which is set last; 0: it is not closed. */
static _Atomic uint64_t spare_next;
static _Atomic uint64_t spare_end;

static _Atomic uint64_t range; /* oldest << 32 | current */
static _Atomic uint32_t complete;
static _Atomic uint32_t n_used; /* chunks that the current segment took */
/* Segment << 32 | bytes that passes wrote into it, new samples left out; and
 * those of the segment that was passed last. */
static _Atomic uint64_t rewriting;
static _Atomic uint32_t rewritten_bytes;

/* sp_ring_passed: segment << 32 | chunk. */
static _Atomic uint64_t passed;

static _Atomic uint64_t rotating; /* lease of a rotation */
/* The oldest segment that the file may say is left; `range` follows. */
static _Atomic uint32_t announced;
/* Of kept segments, by number modulo SEGMENTS_MAX; published by `complete`. */
static struct sp_window windows[SEGMENTS_MAX];

static uint32_t segment_of(uint64_t owner)
{
	return (uint32_t)owner;
}

static uint64_t range_of(uint32_t oldest, uint32_t current)
{
	return (uint64_t)oldest << 32 | current;
}

static uint32_t oldest_segment(void)
{
	return (uint32_t)(atomic_load(&range) >> 32);
}

void sp_ring_begin(uint64_t chunks, bool rotates)
{
	is_rotated = rotates;
	n_chunks = chunks;
	if (is_rotated && chunks > SP_RING_CHUNKS_MAX)
		n_chunks = SP_RING_CHUNKS_MAX;
	for (uint64_t i = 0; is_rotated && i < n_chunks; i++)
		atomic_store_explicit(&owners[i], FREE, memory_order_relaxed);
	memset(windows, 0, sizeof(windows));
	atomic_store(&cursor, 0);
	atomic_store(&extent, 1);
	atomic_store(&n_permanent, 0);
	atomic_store(&spare_end, 0);
	atomic_store(&complete, 1);
	atomic_store(&n_used, 0);
	atomic_store(&rewriting, 0);
	atomic_store(&rewritten_bytes, 0);
	atomic_store(&passed, 0);
	atomic_store(&rotating, 0);
	atomic_store(&announced, 1);
	atomic_store(&range, range_of(1, 1));
}

uint32_t sp_ring_segment(void)
{
	return (uint32_t)atomic_load(&range);
}

uint32_t sp_ring_at_rest(void)
{
	const uint32_t now = (uint32_t)atomic_load(&range);

	return atomic_load_explicit(&complete, memory_order_acquire) == now
		       ? now
		       : 0;
}

uint32_t sp_ring_complete(void)
{
	return atomic_load_explicit(&complete, memory_order_acquire);
}

uint64_t sp_ring_extent(void)
{
	return atomic_load_explicit(&extent, memory_order_relaxed);
}

/* ---- chunks ---- */

static uint8_t lane_of(uint64_t owner)
{
	return (uint8_t)(owner >> 32);
}

/* May another than the holder of lane number `own` still store into the chunk
 * (I3)? */
static bool is_held(uint64_t owner, uint64_t chunk, uint8_t own)
{
	const struct sp_lane *lane = sp_lane_of(lane_of(owner));
	uint64_t has;

	if (lane_of(owner) == own || !sp_lane_holder(lane))
		return false;
	has = atomic_load(&lane->chunk_number);
	return has == chunk || has == ANY_CHUNK;
}

static bool is_free(uint64_t owner, uint64_t chunk, uint32_t first, uint8_t own)
{
	return owner == FREE ||
	       (owner != PERMANENT && segment_of(owner) < first &&
		!is_held(owner, chunk, own));
}

static void raise_extent(uint64_t to)
{
	uint64_t now = atomic_load_explicit(&extent, memory_order_relaxed);

	while (now < to && !atomic_compare_exchange_weak(&extent, &now, to))
		;
}

static uint64_t take_spare(void)
{
	const uint64_t end = atomic_load(&spare_end);
	uint64_t n;

	if (!end || atomic_load(&spare_next) >= end)
		return 0;
	n = atomic_fetch_add(&spare_next, 1);
	if (n >= end)
		return 0;
	raise_extent(n + 1);
	return n;
}

/* Without rotation: one after the other, and none has an owner to be known. */
static uint64_t take_next(void)
{
	uint64_t n = atomic_load_explicit(&cursor, memory_order_relaxed);

	do {
		if (n + 1 >= n_chunks)
			return take_spare();
	} while (!atomic_compare_exchange_weak(&cursor, &n, n + 1));
	raise_extent(n + 2);
	return n + 1;
}

static uint64_t take_chunk(uint64_t as, bool *ret_used)
{
	const uint64_t from =
		atomic_load_explicit(&cursor, memory_order_relaxed);
	const uint32_t first = oldest_segment();

	*ret_used = false;
	if (!is_rotated)
		return take_next();
	for (uint64_t i = 0; i + 1 < n_chunks; i++) {
		const uint64_t n = 1 + (from + i) % (n_chunks - 1);
		uint64_t owner = atomic_load(&owners[n]);

		if (!is_free(owner, n, first, lane_of(as)) ||
		    !atomic_compare_exchange_strong(&owners[n], &owner, as))
			continue;
		atomic_store_explicit(&cursor, from + i + 1,
				      memory_order_relaxed);
		raise_extent(n + 1);
		*ret_used = owner != FREE;
		return n;
	}
	return 0;
}

uint64_t sp_ring_take_permanent(bool *ret_used)
{
	uint64_t n;

	if (4 * atomic_fetch_add(&n_permanent, 1) >= 3 * n_chunks) {
		atomic_fetch_sub(&n_permanent, 1);
		return 0;
	}
	n = take_chunk(PERMANENT, ret_used);
	if (!n)
		atomic_fetch_sub(&n_permanent, 1);
	return n;
}

static uint64_t with_spare(uint64_t n)
{
	return n + SPARE < n_chunks ? n + SPARE : n_chunks;
}

/* From the end down: a thread that takes a chunk at this moment either has it
 * before us, or does not get it (I1). */
uint64_t sp_ring_close(void)
{
	uint64_t n, end;

	if (!is_rotated) {
		n = 1 + atomic_exchange(&cursor, n_chunks);
		end = with_spare(n < n_chunks ? n : n_chunks);
		atomic_store(&spare_next, n);
		atomic_store(&spare_end, end);
		return end;
	}
	for (n = n_chunks; n > 1; n--) {
		uint64_t owner = FREE;

		if (!atomic_compare_exchange_strong(&owners[n - 1], &owner,
						    PERMANENT))
			break;
	}
	end = with_spare(n);
	for (; n < end; n++)
		atomic_store(&owners[n], FREE);
	return end;
}

/* A thread that is late, or still has the parent's file, finds another segment.
 * The next thread ignores what it may have stored all the same. */
void sp_ring_rewrote(uint32_t segment, uint32_t bytes)
{
	uint64_t now = atomic_load(&rewriting), next;

	do {
		if (segment != sp_ring_segment())
			return;
		next = now >> 32 == segment ? now : (uint64_t)segment << 32;
		next += bytes;
	} while (!atomic_compare_exchange_weak(&rewriting, &now, next));
}

void sp_ring_passed(uint32_t segment, uint32_t chunk)
{
	const uint64_t now = atomic_load(&rewriting);

	if (chunk == UINT32_MAX && segment + 1 == sp_ring_segment())
		atomic_store(&rewritten_bytes,
			     now >> 32 == segment + 1 ? (uint32_t)now : 0);
	atomic_store(&passed, (uint64_t)segment << 32 | chunk);
}

static uint32_t first_to_pass(uint32_t segment)
{
	const uint64_t p = atomic_load(&passed);

	return (uint32_t)(p >> 32) == segment ? (uint32_t)p : 0;
}

/*
 * Is there more than what is needed to complete the current segment?  All that
 * is still to be passed of the one before may be alive, and each lane begins a
 * chunk.  Without that spare no thread could make room when there is none.
 */
static bool has_spare(uint8_t own)
{
	const uint32_t first = oldest_segment();
	const uint32_t before = sp_ring_segment() - 1;
	const uint32_t to_pass = first_to_pass(before);
	const uint64_t begun = atomic_load(&n_used), lanes = sp_lane_count();
	uint64_t n_free = 0, needed = begun < lanes ? lanes - begun : 0;

	if (!is_rotated)
		return begun + atomic_load(&n_permanent) + KEPT < n_chunks;
	if (atomic_load(&complete) != before)
		return true;
	for (uint64_t n = 1; n < n_chunks; n++) {
		const uint64_t owner =
			atomic_load_explicit(&owners[n], memory_order_relaxed);

		n_free += is_free(owner, n, first, own);
		needed += n >= to_pass && owner != PERMANENT &&
			  segment_of(owner) == before;
	}
	return n_free > needed;
}

bool sp_ring_has_room(void)
{
	const uint32_t first = oldest_segment();

	for (uint64_t n = 1; n < n_chunks; n++)
		if (is_free(atomic_load(&owners[n]), n, first, 0))
			return true;
	return false;
}

uint64_t sp_ring_take(struct sp_lane *lane, uint32_t segment, bool completes,
		      bool *ret_used)
{
	uint64_t n = 0;

	atomic_store(&lane->chunk_number, ANY_CHUNK);
	if (completes || has_spare(sp_lane_number(lane)))
		n = take_chunk((uint64_t)sp_lane_number(lane) << 32 | segment,
			       ret_used);
	if (n)
		atomic_fetch_add(&n_used, 1);
	else
		sp_ring_took(lane, 0);
	return n;
}

void sp_ring_took(struct sp_lane *lane, uint64_t chunk)
{
	atomic_store(&lane->chunk_number, chunk);
}

uint64_t sp_ring_next_of(uint32_t segment, uint64_t after)
{
	for (uint64_t n = after + 1; n < n_chunks; n++) {
		const uint64_t owner =
			atomic_load_explicit(&owners[n], memory_order_relaxed);

		if (owner != PERMANENT && segment_of(owner) == segment)
			return n;
	}
	return 0;
}

/* ---- rotation ---- */

static uint64_t ring_chunks(void)
{
	return n_chunks - 1 - atomic_load(&n_permanent);
}

unsigned int sp_ring_rewritten_percent(void)
{
	const uint64_t ring = ring_chunks();

	return (unsigned int)(100ull * atomic_load(&rewritten_bytes) /
			      ((ring ? ring : 1) * ROOM));
}

/* Chunks that make a segment. */
static uint64_t segment_chunks(void)
{
	const uint64_t ring = ring_chunks();

	return ring / SHARES ? ring / SHARES : 1;
}

/* The same where much is alive: the next segment is to get as much that is new
 * as was rewritten into it, so that rewriting costs each sample the like of
 * itself.  But what is in two segments has to fit, with something to spare. */
static uint64_t fill_of_segment(void)
{
	const uint64_t bytes = 2ull * atomic_load(&rewritten_bytes);
	const uint64_t wanted = (bytes + ROOM - 1) / ROOM;
	const uint64_t most = 3 * ring_chunks() / 8;
	const uint64_t chunks = wanted < most ? wanted : most;

	return chunks < segment_chunks() ? segment_chunks() : chunks;
}

static bool is_due(bool is_full)
{
	return is_rotated && atomic_load(&complete) == sp_ring_segment() &&
	       (is_full || atomic_load(&n_used) >= fill_of_segment());
}

/* The segment that is to be the oldest, so that the next one has room to be
 * complete (has_spare()), for twice its share, since it is not ended before,
 * and a chunk for each lane, since those that the lanes have now are not
 * filled. */
static uint32_t choose_oldest(void)
{
	const uint64_t wanted =
		atomic_load(&n_used) + 2 * segment_chunks() + sp_lane_count();
	const uint32_t first = oldest_segment();
	const uint32_t last = atomic_load(&complete);
	uint64_t chunks[SEGMENTS_MAX] = {0}, n_free = 0;
	uint32_t o;

	for (uint64_t n = 1; n < n_chunks; n++) {
		const uint64_t owner =
			atomic_load_explicit(&owners[n], memory_order_relaxed);

		if (is_free(owner, n, first, 0))
			n_free++;
		else if (owner != PERMANENT && segment_of(owner) >= first)
			chunks[segment_of(owner) % SEGMENTS_MAX]++;
	}
	for (o = first; o < last; o++) {
		if (n_free >= wanted && last + 1 - o < SEGMENTS_MAX)
			break;
		n_free += chunks[o % SEGMENTS_MAX];
	}
	return o;
}

bool sp_ring_begin_rotation(bool is_full, struct sp_ring_rotation *ret_rotation,
			    struct sp_window *ret_window)
{
	uint32_t oldest;

	if (!is_due(is_full))
		return false;
	ret_rotation->token = sp_lease_take(&rotating, ROTATION_NS);
	if (!ret_rotation->token)
		return false;
	ret_rotation->from = atomic_load(&range);
	if (!is_due(is_full)) {
		sp_lease_give(&rotating, ret_rotation->token);
		return false;
	}
	oldest = choose_oldest();
	/* Of two that make the same rotation, the later one. */
	if (oldest < atomic_load(&announced))
		oldest = atomic_load(&announced);
	atomic_store(&announced, oldest);
	ret_rotation->to = range_of(oldest, (uint32_t)ret_rotation->from + 1);
	*ret_window = windows[oldest % SEGMENTS_MAX];
	return true;
}

void sp_ring_give_left(void)
{
	sp_lease_give_left(&rotating);
}

bool sp_ring_has_rotation(const struct sp_ring_rotation *rotation)
{
	return atomic_load(&rotating) == rotation->token;
}

/* The order of I2 and I3: chunks are free before anybody needs them. */
void sp_ring_end_rotation(const struct sp_ring_rotation *rotation,
			  bool is_recorded)
{
	uint64_t from = rotation->from;

	/* A child, forked in here, has begun anew. */
	if (!sp_ring_has_rotation(rotation))
		return;
	if (is_recorded &&
	    atomic_compare_exchange_strong(&range, &from, rotation->to))
		atomic_store(&n_used, 0);
	sp_lease_give(&rotating, rotation->token);
}

/* Once: a thread that was stopped before its store comes too late. */
void sp_ring_set_complete(uint32_t segment, const struct sp_window *window)
{
	uint32_t before = segment - 1;

	if (atomic_load(&complete) != before)
		return;
	windows[segment % SEGMENTS_MAX] = *window;
	windows[segment % SEGMENTS_MAX].oldest = segment;
	atomic_compare_exchange_strong(&complete, &before, segment);
}
