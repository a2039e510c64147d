/* SPDX-License-Identifier: MIT */
/*
 * I1  A chunk belongs to the one tail that took it (ring.h), until the tail
 *     takes another, or the segment of the chunk has ended.
 * I2  A byte is stored to only after sp_outfile_populate has backed its page:
 *     a full disk is an error here, never a signal in the program.  Where pages
 *     move, sp_mapping_hold() asks for that again just before each store; what
 *     is left is that the kernel writes the page out between the two.
 * I3  A chunk that is used again keeps its old header, of a segment that the
 *     file says is discarded, until the rest of it is zero.
 * I4  A thread that leaves a tail in the middle of a record, by siglongjmp,
 *     leaves `is_writing` set.  That chunk is not written to any more.
 * I5  A permanent tail belongs to one holding of a lane.  If the lane was
 *     released, or its holder comes here again, the tail was abandoned.
 */
#include "agent/file/chunks.h"

#include <string.h>

#include "agent/file/mapping.h"
#include "agent/file/outfile.h"
#include "agent/file/ring.h"
#include "agent/file/writer.h"
#include "agent/thread/thread.h"
#include "format/scan.h"

#include "agent/sys/poison.h"

static_assert(SP_RING_CHUNKS_MAX <= SP_FORMAT_STACK_CHUNKS, "ids of stacks");

#define CHUNK    SP_FORMAT_CHUNK_BYTES
#define POPULATE SP_CHUNKS_POPULATE

/* Threads that the file remembers for good; of later ones each segment has a
 * record of its own. */
#define THREADS_KEPT 4096u

static uint64_t file_id;
/* By chunk: steps of POPULATE bytes that are backed.  Others must not even be
 * read: where files are memory, that would need a page. */
static _Atomic uint8_t backed[SP_RING_CHUNKS_MAX];
static _Atomic int full;     /* the disk */
static _Atomic int closed;   /* the file: see sp_chunks_end */
static _Atomic int at_limit; /* a file without rotation */
static bool is_rotated;
static _Atomic uint32_t last_stack; /* without rotation: the last id */
static _Atomic uint64_t window_seq;

/* Of permanent chunks: as many in use as threads write such records at the same
 * moment. */
#define PERMANENTS SP_LANES
static struct permanent {
	_Atomic uint64_t holder; /* number of a lane, takes << 8; 0: nobody */
	_Atomic uint64_t begun;  /* take_for_good() */
	struct sp_tail tail;
} permanents[PERMANENTS];

void sp_chunks_begin(uint64_t id, uint64_t n, bool rotates)
{
	file_id = id;
	is_rotated = rotates;
	atomic_store(&window_seq, 0);
	for (uint64_t i = 0; is_rotated && i < n && i < SP_RING_CHUNKS_MAX; i++)
		atomic_store_explicit(&backed[i], 0, memory_order_relaxed);
	sp_ring_begin(n, is_rotated);
}

bool sp_chunks_is_full(void)
{
	return atomic_load_explicit(&at_limit, memory_order_relaxed) ||
	       atomic_load_explicit(&full, memory_order_relaxed);
}

void sp_chunks_reset(void)
{
	for (unsigned int i = 0; i < PERMANENTS; i++) {
		const uint64_t holder = atomic_load(&permanents[i].holder);

		atomic_store(&permanents[i].begun, 0);
		/* As in sp_lane_reset: in use, below a signal handler. */
		if (holder &&
		    sp_lane_holder(sp_lane_of((uint8_t)holder)) == &sp_thread)
			continue;
		permanents[i].tail.chunk = NULL;
		atomic_store(&permanents[i].holder, 0);
	}
	atomic_store(&full, 0);
	atomic_store(&closed, 0);
	atomic_store(&at_limit, 0);
	atomic_store(&last_stack, 0);
}

/* First `closed`: a thread that finds no chunk because of what follows does not
 * take the file for full, and discards nothing (next_sampled). */
uint64_t sp_chunks_end(void)
{
	atomic_store(&closed, 1);
	return sp_ring_close();
}

/* The disk of the file of that generation is full. */
static void stop_recording(uint32_t of)
{
	if (sp_mapping_generation() == of)
		atomic_store_explicit(&full, 1, memory_order_relaxed);
}

static void write_chunk_header(uint8_t *at, enum sp_chunk_kind kind,
			       uint64_t index)
{
	struct sp_chunk_header header = {SP_FORMAT_CHUNK_MAGIC, kind, index, 0};

	header.check = sp_format_check(file_id, SP_CHECK_CHUNK, &header,
				       sizeof(header));
	memcpy(at, &header, sizeof(header));
}

/* All zero but for its header. */
static bool clear_chunk(uint8_t *at)
{
	if (!sp_mapping_hold(at, CHUNK))
		return false;
	memset(at + SP_FORMAT_CHUNK_RECORDS_OFFSET, 0,
	       CHUNK - SP_FORMAT_CHUNK_RECORDS_OFFSET);
	atomic_thread_fence(memory_order_release);
	return true;
}

/* A chunk that was taken. */
struct taken {
	uint64_t n;
	uint32_t segment;        /* 0: permanent */
	bool is_used;            /* it was before, and is not zero */
	_Atomic uint64_t *begun; /* take_for_good(); NULL: of a segment */
};

/* A chunk with a header, and otherwise zero; NULL: there is no room for it on
 * the disk.  *populated bytes are backed by storage. */
static uint8_t *make_chunk(const struct taken *taken, enum sp_chunk_kind kind,
			   uint64_t *populated, uint32_t of)
{
	uint8_t *at = sp_mapping_chunk(taken->n);

	if (taken->is_used)
		*populated = CHUNK;
	if (!at || !sp_outfile_populate(at, *populated)) {
		stop_recording(of);
		return NULL;
	}
	/* Nobody reads it until it is whole. */
	if (is_rotated)
		atomic_store_explicit(&backed[taken->n], 0,
				      memory_order_relaxed);
	if (taken->is_used && !clear_chunk(at))
		return NULL;
	write_chunk_header(at, kind,
			   sp_format_chunk_index(taken->n, taken->segment));
	return at;
}

/* Is there a file, and room on its disk? */
static bool may_take(void)
{
	return sp_writer_is_open() &&
	       !atomic_load_explicit(&full, memory_order_relaxed);
}

/* What others may read of it. */
static void note_backed(struct sp_tail *tail, uint64_t bytes)
{
	tail->populated = bytes;
	if (!is_rotated)
		return;
	atomic_store_explicit(&backed[tail->number],
			      (uint8_t)(bytes / POPULATE),
			      memory_order_release);
}

/* `of` is read first: in a child that was forked in between, it is the
 * parent's, and the chunk is never used. */
static bool begin_tail(struct sp_tail *tail, const struct taken *taken,
		       uint32_t of)
{
	uint64_t populated = POPULATE;
	uint8_t *chunk = make_chunk(taken, SP_CHUNK_RECORDS, &populated, of);

	if (!chunk)
		return false;
	if (taken->begun)
		atomic_store(taken->begun, 0);
	/* The tail stands behind `begun` in a struct.
	 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	tail->chunk = chunk;
	tail->generation = of;
	tail->segment = taken->segment;
	tail->at = SP_FORMAT_CHUNK_RECORDS_OFFSET;
	tail->number = taken->n;
	note_backed(tail, populated);
	sp_chunk_state_init(&tail->state, file_id,
			    sp_format_chunk_index(taken->n, taken->segment));
	tail->state.has_stack_steps = true;
	return true;
}

/*
 * A permanent chunk, or none.  A signal that comes while the disk is asked is
 * delivered then, and its handler may leave by siglongjmp.  So *begun has the
 * chunk until it has its header, and the next holder does not take another.
 */
static bool take_for_good(_Atomic uint64_t *begun, struct taken *ret)
{
	const uint64_t before = atomic_load(begun);

	*ret = (struct taken){
		.n = before >> 1, .is_used = before & 1, .begun = begun};
	if (ret->n)
		return true;
	ret->n = sp_ring_take_permanent(&ret->is_used);
	if (ret->n)
		atomic_store(begun, ret->n << 1 | ret->is_used);
	return ret->n;
}

/* What a child has of it that was forked in between is its parent's. */
static void forget_begun(const struct taken *taken, uint32_t of)
{
	if (sp_mapping_generation() != of)
		atomic_store(taken->begun, 0);
}

static bool next_permanent(struct permanent *k)
{
	const uint32_t of = sp_mapping_generation();
	struct taken taken;

	if (!may_take() || !take_for_good(&k->begun, &taken))
		return false;
	if (begin_tail(&k->tail, &taken, of))
		return true;
	forget_begun(&taken, of);
	return false;
}

/* What a reader has to know before a chunk is used again. */
static bool write_window(const struct sp_ring_rotation *rotation,
			 const struct sp_window *window)
{
	uint8_t *to = sp_mapping_base();
	struct sp_window w = *window;

	if (!to)
		return false;
	to += SP_FORMAT_WINDOW_OFFSET;
	if (!sp_mapping_hold(to, 2 * sizeof(w)))
		return false;
	w.seq = 1 + atomic_fetch_add(&window_seq, 1);
	/* An old window would be the newest then. */
	if (!sp_ring_has_rotation(rotation))
		return false;
	w.check = sp_format_check(file_id, SP_CHECK_WINDOW, &w, sizeof(w));
	to += (w.seq & 1) * sizeof(w);
	memcpy(to, &w, sizeof(w) - sizeof(w.check));
	atomic_thread_fence(memory_order_release);
	memcpy(to + sizeof(w) - sizeof(w.check), &w.check, sizeof(w.check));
	return true;
}

static void rotate_segment(bool is_full)
{
	struct sp_window window;
	struct sp_ring_rotation t;

	if (sp_ring_begin_rotation(is_full, &t, &window))
		sp_ring_end_rotation(&t, !window.oldest ||
						 write_window(&t, &window));
}

static bool next_of_ring(struct sp_lane *lane, bool completes)
{
	const uint32_t of = sp_mapping_generation();
	struct taken taken = {.segment = sp_ring_segment()};
	const bool is_first =
		!lane->tail.chunk || lane->tail.segment != taken.segment;
	bool is_made;

	taken.n = sp_ring_take(lane, taken.segment, completes || is_first,
			       &taken.is_used);
	if (!taken.n) {
		if (!atomic_load(&closed))
			atomic_store_explicit(&at_limit, !is_rotated,
					      memory_order_relaxed);
		return false;
	}
	is_made = begin_tail(&lane->tail, &taken, of);
	sp_ring_took(lane, is_made ? taken.n : 0);
	return is_made;
}

/* Give the lane a chunk of the current segment.  It ends when a thread has
 * filled a chunk of it, not when one comes that has none yet. */
static bool next_sampled(struct sp_lane *lane, bool completes)
{
	const struct sp_tail *tail = &lane->tail;

	if (!may_take())
		return false;
	if (tail->chunk && tail->segment == sp_ring_segment() &&
	    !atomic_load(&closed))
		rotate_segment(false);
	if (tail->chunk && tail->generation == sp_mapping_generation())
		sp_outfile_release(tail->chunk, CHUNK);
	if (next_of_ring(lane, completes))
		return true;
	if (atomic_load(&closed) || !may_take())
		return false;
	rotate_segment(true);
	return next_of_ring(lane, completes);
}

const uint8_t *sp_chunks_read(uint64_t n, uint32_t segment, size_t *ret_bytes)
{
	const unsigned int steps =
		atomic_load_explicit(&backed[n], memory_order_acquire);
	const struct sp_chunk_header *h =
		steps ? (const void *)sp_mapping_chunk(n) : NULL;

	*ret_bytes = (size_t)steps * POPULATE;
	return h && h->index == sp_format_chunk_index(n, segment)
		       ? (const uint8_t *)h
		       : NULL;
}

void sp_chunks_leave(uint64_t n)
{
	sp_outfile_release(sp_mapping_chunk(n), CHUNK);
}

uint8_t *sp_chunks_take_size_counts(_Atomic uint64_t *begun)
{
	const uint32_t of = sp_mapping_generation();
	uint64_t populated = SP_FORMAT_PAGE_BYTES;
	struct taken taken;
	uint8_t *chunk;

	if (!may_take() || !take_for_good(begun, &taken))
		return NULL;
	chunk = make_chunk(&taken, SP_CHUNK_CLASSES, &populated, of);
	if (!chunk)
		forget_begun(&taken, of);
	return chunk;
}

/* ---- records ---- */

static bool has_chunk(const struct sp_tail *tail)
{
	return tail->chunk && tail->generation == sp_mapping_generation() &&
	       (!tail->segment || tail->segment == sp_ring_segment());
}

static struct permanent *permanent_of(struct sp_tail *tail)
{
	return (struct permanent *)((char *)tail -
				    offsetof(struct permanent, tail));
}

/* More of the tail's chunk, or another chunk: the lane's, or without one a
 * permanent one. */
static bool more_room(struct sp_tail *tail, struct sp_lane *lane,
		      bool completes)
{
	if (!has_chunk(tail) || tail->populated == CHUNK)
		return lane ? next_sampled(lane, completes)
			    : next_permanent(permanent_of(tail));
	if (!sp_outfile_populate(tail->chunk + tail->populated, POPULATE)) {
		stop_recording(tail->generation);
		return false;
	}
	note_backed(tail, tail->populated + POPULATE);
	return true;
}

static bool hold_tail(const struct sp_tail *tail)
{
	if (sp_mapping_hold(tail->chunk + tail->at, tail->populated - tail->at))
		return true;
	stop_recording(tail->generation);
	return false;
}

/* The id of a STACK is where it stands, unless it has one. */
static struct sp_encoded encode_record(struct sp_tail *tail,
				       const struct sp_record *record)
{
	uint8_t *at = tail->chunk + tail->at;
	const size_t room = tail->populated - tail->at;
	struct sp_record r;

	if (record->type != SP_RECORD_STACK || record->u.stack.id)
		return sp_encode(&tail->state, at, room, record);
	r = *record;
	r.u.stack.id = sp_format_stack_id(tail->number, tail->at);
	return sp_encode(&tail->state, at, room, &r);
}

/* Where a record is to go: to a chunk of the lane, or without one to a
 * permanent one; if `segment` is not 0, as long as it is the current one. */
struct target {
	struct sp_tail *tail;
	struct sp_lane *lane;
	uint32_t segment;
	bool completes;
};

/* Where in the tail's chunk it stands; 0: there is no room. */
static size_t write_record(const struct target *to,
			   const struct sp_record *record)
{
	struct sp_tail *tail = to->tail;

	/* At most: the rest of one chunk, then all of another. */
	for (unsigned int tries = 0; tries <= 2 * CHUNK / POPULATE; tries++) {
		struct sp_encoded e = {0, 0};

		if (to->segment && to->segment != sp_ring_segment())
			return 0;
		if (has_chunk(tail)) {
			if (!hold_tail(tail))
				return 0;
			e = encode_record(tail, record);
		}
		if (e.bytes) {
			const size_t at = tail->at;
			_Atomic uint8_t *commit =
				(_Atomic uint8_t *)(tail->chunk + at);

			atomic_store_explicit(commit, e.type,
					      memory_order_release);
			tail->at += e.bytes;
			return at;
		}
		if (!more_room(tail, to->lane, to->completes))
			return 0;
	}
	return 0;
}

static size_t append_record(const struct target *to,
			    const struct sp_record *record)
{
	struct sp_tail *tail = to->tail;
	size_t at;

	if (tail->is_writing)
		tail->chunk = NULL;
	tail->is_writing = true;
	atomic_signal_fence(memory_order_seq_cst);
	at = write_record(to, record);
	atomic_signal_fence(memory_order_seq_cst);
	tail->is_writing = false;
	return at;
}

/* The lane is held by the caller: a signal handler has another one. */
static bool take_permanent(struct permanent *k, const struct sp_lane *lane)
{
	const uint64_t mine = sp_lane_number(lane) |
			      (uint64_t)atomic_load_explicit(
				      &lane->takes, memory_order_relaxed)
				      << 8;
	uint64_t other = atomic_load(&k->holder);
	struct sp_lane *held = sp_lane_of((uint8_t)other);

	if (other && other != mine && sp_lane_holder(held) &&
	    atomic_load(&held->takes) == (uint32_t)(other >> 8))
		return false;
	return atomic_compare_exchange_strong(&k->holder, &other, mine);
}

/* Rare: what it needs on the stack, samples shall not set up. */
static __attribute__((noinline)) bool append_for_good(
	struct sp_lane *lane, const struct sp_record *record)
{
	for (unsigned int i = 0; i < PERMANENTS; i++) {
		struct permanent *k = &permanents[i];
		bool written;

		if (!take_permanent(k, lane))
			continue;
		written = append_record(&(struct target){.tail = &k->tail},
					record);
		atomic_store_explicit(&k->holder, 0, memory_order_release);
		return written;
	}
	return false;
}

/* Samples, their frees and what else comes again and again goes to the ring. */
static bool is_for_good(const struct sp_record *r)
{
	switch (r->type) {
	case SP_RECORD_THREAD:
		return r->u.thread.index <= THREADS_KEPT;
	case SP_RECORD_THREAD_END:
		return r->u.thread_end.index <= THREADS_KEPT;
	case SP_RECORD_STACK:
	case SP_RECORD_SAMPLE:
	case SP_RECORD_FREE:
	case SP_RECORD_FREE_ADDRESS:
	case SP_RECORD_RSS:
	case SP_RECORD_MAP:
	case SP_RECORD_UNMAP:
		return false;
	default:
		return true;
	}
}

bool sp_chunks_append(struct sp_lane *lane, const struct sp_record *record)
{
	return is_for_good(record) ? append_for_good(lane, record)
				   : sp_chunks_append_to(lane, record, 0);
}

bool sp_chunks_append_to(struct sp_lane *lane, const struct sp_record *record,
			 uint32_t segment)
{
	const struct target to = {&lane->tail, lane, segment, false};

	return append_record(&to, record) != 0;
}

/* Of what is alive, and counted as that. */
static size_t append_again(struct sp_lane *lane, const struct sp_record *record,
			   uint32_t segment)
{
	const struct target to = {&lane->tail, lane, segment, true};
	const size_t at = append_record(&to, record);

	if (at)
		sp_ring_rewrote(segment, (uint32_t)(lane->tail.at - at));
	return at;
}

bool sp_chunks_rewrite(struct sp_lane *lane, const struct sp_record *record,
		       uint32_t segment)
{
	return append_again(lane, record, segment) != 0;
}

uint32_t sp_chunks_append_stack(struct sp_lane *lane, uint32_t flags,
				unsigned int n, uint32_t completes)
{
	const struct target to = {.tail = &lane->tail, .lane = lane};
	struct sp_record r = {.type = SP_RECORD_STACK};
	size_t at;

	r.u.stack = (struct sp_record_stack){0, flags, lane->frames, n};
	/* Without rotation nobody looks for it again, and there may be more
	 * chunks than such ids. */
	if (!is_rotated)
		r.u.stack.id =
			1 + atomic_fetch_add_explicit(&last_stack, 1,
						      memory_order_relaxed);
	at = completes ? append_again(lane, &r, completes)
		       : append_record(&to, &r);
	if (!at)
		return 0;
	return is_rotated ? sp_format_stack_id(lane->tail.number, at)
			  : (uint32_t)r.u.stack.id;
}

bool sp_chunks_read_stack(struct sp_lane *lane, uint32_t id, uint32_t segment,
			  uint32_t *ret_flags, unsigned int *ret_n)
{
	size_t bytes;
	const uint8_t *chunk = sp_chunks_read(id >> 16, segment, &bytes);

	return chunk && sp_scan_stack(chunk, bytes, id & 0xffff, id, ret_flags,
				      lane->frames, ret_n);
}

uint8_t sp_chunks_thread_mark(uint32_t index)
{
	const unsigned int first = SP_THREAD_RENAMED + 1;

	if (index <= THREADS_KEPT)
		return SP_THREAD_KNOWN;
	return (uint8_t)(first + sp_ring_segment() % (UINT8_MAX + 1 - first));
}
