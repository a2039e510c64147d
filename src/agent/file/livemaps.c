/* SPDX-License-Identifier: MIT */
/*
 * I1  Only the holder of `busy` touches `live` and the state of the pass.
 * I2  The holder of `busy` applies the queue first.  A thread that enqueues a
 *     change then tries `busy`; the holder looks at the queue again after it
 *     has released `busy`.  All of that is sequentially consistent, so one of
 *     the two applies the change.  After many rounds the holder leaves the
 *     queue to the next one.  Each holder sees all that was enqueued before.
 * I3  A thread writes a mapping to segment s, puts it into the table or the
 *     queue, and then reads the number of the current segment.  A pass over the
 *     table that comes later finds the mapping.  If the pass came before, s had
 *     ended: the thread reads another number and writes the mapping once more.
 * I4  A mapping leaves the table, or its end is in the queue, before the record
 *     of the end is written.  So of each mapping that a pass still finds the
 *     end, if there is one, is in the new segment or a later one.
 * I5  A mapping from a queued change is UNWRITTEN until its record is written:
 *     to the segment that is current then, or by the pass to the next segment,
 *     which finds it in the table.  If both write it, the reader counts once
 *     what records of one number have in common.
 * I6  The table and each queued change have an epoch.  A child has another one,
 *     so nothing of its parent counts, even if a signal handler forked while it
 *     interrupted the holder, which goes on in the child.
 */
#include "agent/file/livemaps.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/file/chunks.h"
#include "agent/file/mapqueue.h"
#include "agent/file/ring.h"
#include "agent/file/stacktab.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

#define ROUNDS_MAX 16u /* of what others leave meanwhile */
#define COVERED    64u
#define PER_CHUNK  32u /* mappings, of the file */
#define STEP       4u  /* that a pass takes at a time */
#define STEPS_MAX  4u  /* some us */

/* Among the flags of a span: no flag of a record. */
#define UNWRITTEN 0x80000000u

static sp_inside_lock busy;
static _Atomic uint64_t last_number;
static _Atomic uint32_t epoch;
static _Atomic uint32_t n_live; /* that of `live`, for those without the lock */
static _Atomic bool owes;       /* something may be UNWRITTEN */
static uint32_t table_epoch;
static struct sp_spans live = {.room = SP_LIVEMAPS_MAX};
/* The last that were mapped over: from, to, their call, and the one that did.
 */
static struct covered {
	uint64_t start, end, number, by;
} covered[COVERED];
static unsigned int n_covered;
/* The pass has come to that address, on the way to that segment. */
static uint64_t pass_at;
static uint32_t pass_to;

/* ---- changes; `busy` is ours ---- */

static void count_piece(void *arg, const struct sp_span *piece)
{
	int *pieces = arg;

	(void)piece;
	++*pieces;
}

static int cut_table(uint64_t start, uint64_t end, uint64_t number)
{
	int pieces = 0;

	return sp_spans_cut(&live, start, end, number, count_piece, &pieces)
		       ? pieces
		       : -ENOSPC;
}

/* What is mapped over was unmapped or moved by a thread that has not said so
 * yet. */
static void note_covered(void *arg, const struct sp_span *piece)
{
	const struct sp_span *by = arg;

	covered[n_covered++ % COVERED] = (struct covered){
		piece->start, piece->end, piece->number, by->number};
}

/* Was something there before that call, and is known to be covered since? */
static bool was_covered(uint64_t start, uint64_t end, uint64_t number)
{
	for (unsigned int i = 0; i < COVERED; i++) {
		const struct covered *c = &covered[i];

		if (c->start < end && c->end > start && c->number < number &&
		    c->by > number)
			return true;
	}
	return false;
}

/* Few programs map memory by themselves. */
static bool make_table(void)
{
	if (!live.at)
		live.at = sp_sys_map(SP_LIVEMAPS_MAX * sizeof(*live.at));
	return live.at;
}

static int put_span(const struct sp_span *span)
{
	struct sp_span by = *span;

	return make_table() &&
			       sp_spans_cut(&live, span->start, span->end,
					    span->number, note_covered, &by) &&
			       sp_spans_put(&live, span)
		       ? 0
		       : -ENOSPC;
}

static int put_unwritten(struct sp_span span)
{
	span.flags |= UNWRITTEN;
	atomic_store(&owes, true);
	return put_span(&span);
}

static bool is_older_with(const struct sp_span *s, uint64_t number,
			  uint32_t flags)
{
	return s->number < number && (s->flags & flags) == flags;
}

/* The first that has these flags and is older; false: there is none. */
static bool find_part(uint64_t start, uint64_t end, uint64_t number,
		      uint32_t flags, struct sp_span *ret)
{
	size_t i = sp_spans_find(&live, start);

	while (i < live.n && live.at[i].start < end &&
	       !is_older_with(&live.at[i], number, flags))
		i++;
	if (i == live.n || live.at[i].start >= end)
		return false;
	*ret = live.at[i];
	if (ret->start < start)
		ret->start = start;
	if (ret->end > end)
		ret->end = end;
	return true;
}

static int open_parts(const struct sp_span *span)
{
	struct sp_span part = *span, closed;
	int r = 0;

	part.end = span->start;
	for (unsigned int i = 0; i < SP_LIVEMAPS_PARTS && !r; i++) {
		if (!find_part(part.end, span->end, span->number,
			       SP_MAP_NO_ACCESS, &closed))
			return 0;
		part.start = closed.start;
		part.end = closed.end;
		r = put_unwritten(part);
	}
	return r;
}

static int set_place(const struct sp_span *of)
{
	size_t i = sp_spans_find(&live, of->start);

	for (; i < live.n && live.at[i].start < of->end; i++) {
		if (live.at[i].number != of->number)
			continue;
		live.at[i].stack = of->stack;
		live.at[i].segment = of->segment;
		live.at[i].flags &= ~UNWRITTEN;
	}
	return 0;
}

static int move_span(const struct sp_mapchange *c)
{
	const bool was_there = was_covered(c->start, c->end, c->number);

	return cut_table(c->start, c->end, c->number) || was_there
		       ? put_unwritten(c->span)
		       : 0;
}

static int change_table(const struct sp_mapchange *c)
{
	switch (c->kind) {
	case SP_MAPCHANGE_PUT:
		return put_span(&c->span);
	case SP_MAPCHANGE_MOVE:
		return move_span(c);
	case SP_MAPCHANGE_OPEN:
		return open_parts(&c->span);
	case SP_MAPCHANGE_PLACE:
		return set_place(&c->span);
	default:
		return cut_table(c->start, c->end, c->number);
	}
}

static void forget_all(void)
{
	live.n = 0;
	memset(covered, 0, sizeof(covered));
	pass_at = 0;
	pass_to = 0;
}

/* A fork may come at any time (I6). */
static void begin_epoch(void)
{
	const uint32_t now = atomic_load(&epoch);

	if (table_epoch == now)
		return;
	forget_all();
	table_epoch = now;
}

static void change_later(const struct sp_mapchange *c)
{
	begin_epoch();
	if (c->epoch == table_epoch && change_table(c) < 0)
		sp_diag_lose(SP_LOSS_MAP, 1);
}

/* ---- the lock ---- */

/* True: nothing waits that was there. */
static bool settle_changes(void)
{
	begin_epoch();
	return sp_mapqueue_take(change_later);
}

/* What others leave from here on they find `busy` free for (I2). */
static void give_lock(void)
{
	unsigned int rounds = 0;

	do {
		if (rounds)
			settle_changes();
		atomic_store(&n_live, (uint32_t)live.n);
		sp_inside_give(&busy);
	} while (++rounds < ROUNDS_MAX && sp_mapqueue_any() &&
		 sp_inside_hold(&busy));
}

/* False: it is another's, or so much waits that this has its turn later. */
static bool take_lock(void)
{
	if (!sp_inside_hold(&busy))
		return false;
	if (settle_changes())
		return true;
	give_lock();
	return false;
}

/* -EAGAIN: it waits; -EBUSY: too many do. */
static int leave_change(const struct sp_mapchange *c)
{
	if (!sp_mapqueue_put(c))
		return -EBUSY;
	if (sp_inside_hold(&busy)) {
		settle_changes();
		give_lock();
	}
	return -EAGAIN;
}

static int try_change(const struct sp_mapchange *c)
{
	int r;

	if (!take_lock())
		return -EAGAIN;
	r = c->epoch == table_epoch ? change_table(c) : 0;
	give_lock();
	return r;
}

static int make_change(const struct sp_mapchange *c)
{
	const int r = try_change(c);

	return r == -EAGAIN ? leave_change(c) : r;
}

/* ---- interface ---- */

void sp_livemaps_begin(uint64_t max_file_bytes)
{
	const uint64_t chunks = max_file_bytes / SP_FORMAT_CHUNK_BYTES;

	live.room = chunks < SP_LIVEMAPS_MAX / PER_CHUNK
			    ? (size_t)chunks * PER_CHUNK
			    : SP_LIVEMAPS_MAX;
}

/* A holder of `busy` that the fork interrupted gives it back in the child. */
void sp_livemaps_reset(void)
{
	atomic_fetch_add(&epoch, 1);
	sp_mapqueue_reset();
	atomic_store(&last_number, 0);
	atomic_store(&n_live, 0);
	atomic_store(&owes, false);
	if (atomic_load(&busy) != &sp_thread)
		atomic_store(&busy, NULL);
}

void sp_livemaps_give_left(void)
{
	unsigned int lost = sp_mapqueue_give_left();

	if (atomic_load(&busy) == &sp_thread) {
		lost += (unsigned int)live.n + 1;
		forget_all();
		give_lock();
	}
	if (lost)
		sp_diag_lose(SP_LOSS_MAP, lost);
}

uint64_t sp_livemaps_number(void)
{
	return 1 + atomic_fetch_add(&last_number, 1);
}

/* In that order: what was taken out of the queue is in the table before `busy`
 * is given back, and `n_live` says so. */
bool sp_livemaps_any(void)
{
	return sp_mapqueue_any() || atomic_load(&busy) || atomic_load(&n_live);
}

/* What a fork interrupts from here on is the parent's (I6). */
static struct sp_mapchange begin_change(enum sp_mapchange_kind kind,
					const struct sp_span *span)
{
	return (struct sp_mapchange){
		.kind = kind, .epoch = atomic_load(&epoch), .span = *span};
}

static struct sp_mapchange begin_cut(enum sp_mapchange_kind kind,
				     uint64_t start, uint64_t end,
				     uint64_t number)
{
	return (struct sp_mapchange){.kind = kind,
				     .epoch = atomic_load(&epoch),
				     .start = start,
				     .end = end,
				     .number = number};
}

/* Its result is the holder's affair. */
static int hand_over(const struct sp_mapchange *c)
{
	const int r = leave_change(c);

	return r == -EAGAIN ? 0 : r;
}

int sp_livemaps_put(const struct sp_span *span)
{
	const struct sp_mapchange c = begin_change(SP_MAPCHANGE_PUT, span);
	const int r = try_change(&c);

	if (r != -EAGAIN)
		return r;
	if (atomic_load(&n_live) >= live.room)
		return -ENOSPC;
	return hand_over(&c);
}

int sp_livemaps_cut(uint64_t start, uint64_t end, uint64_t number)
{
	const struct sp_mapchange c =
		begin_cut(SP_MAPCHANGE_CUT, start, end, number);

	return make_change(&c);
}

int sp_livemaps_move(uint64_t start, uint64_t end, uint64_t number,
		     const struct sp_span *span)
{
	struct sp_mapchange c =
		begin_cut(SP_MAPCHANGE_MOVE, start, end, number);

	c.span = *span;
	return hand_over(&c);
}

int sp_livemaps_open(const struct sp_span *span)
{
	const struct sp_mapchange c = begin_change(SP_MAPCHANGE_OPEN, span);

	return hand_over(&c);
}

int sp_livemaps_find(uint64_t start, uint64_t end, uint32_t flags,
		     struct sp_span *ret)
{
	bool is_found;

	if (!take_lock())
		return -EAGAIN;
	is_found = find_part(start, end, UINT64_MAX, flags, ret);
	give_lock();
	return is_found;
}

void sp_livemaps_set_place(const struct sp_span *span)
{
	const struct sp_mapchange c = begin_change(SP_MAPCHANGE_PLACE, span);

	/* Without it the next pass leaves out the stack. */
	make_change(&c);
}

/* ---- records ---- */

static void to_record(const struct sp_span *s, uint64_t stack,
		      struct sp_record *r)
{
	r->type = SP_RECORD_MAP;
	r->u.map = (struct sp_record_map){
		s->number, s->flags & ~UNWRITTEN, s->time_ns,
		s->start,  s->end - s->start,     s->thread,
		stack};
}

bool sp_livemaps_owes(void)
{
	return atomic_load_explicit(&owes, memory_order_relaxed);
}

/* False: there is none, or the table is taken. */
static bool copy_unwritten(struct sp_span *ret)
{
	bool is_found;

	if (!take_lock())
		return false;
	is_found = find_part(0, UINT64_MAX, UINT64_MAX, UNWRITTEN, ret);
	if (!is_found)
		atomic_store(&owes, false);
	give_lock();
	return is_found;
}

/* Into that segment, while it is the current one. */
static bool write_span(struct sp_lane *lane, struct sp_span *s,
		       uint32_t segment)
{
	uint64_t stack = s->stack;
	struct sp_record r;

	if (s->segment + 1 == segment &&
	    !sp_stacktab_rewrite(lane, s->segment, &stack))
		return false;
	if (s->segment != segment && s->segment + 1 != segment)
		stack = 0;
	to_record(s, stack, &r);
	if (!sp_chunks_append_to(lane, &r, segment))
		return false;
	s->stack = (uint32_t)stack;
	s->segment = segment;
	return true;
}

void sp_livemaps_write(struct sp_lane *lane)
{
	struct sp_span s;

	for (unsigned int i = 0; i < SP_LIVEMAPS_PARTS && copy_unwritten(&s);
	     i++) {
		const uint32_t segment = sp_ring_segment();

		if (!write_span(lane, &s, segment)) {
			if (sp_ring_segment() != segment)
				continue;
			sp_diag_lose(SP_LOSS_MAP, 1);
		}
		sp_livemaps_set_place(&s);
	}
}

/* ---- a pass ---- */

/* False: not now. */
static bool rewrite_span(struct sp_lane *lane, uint32_t from, struct sp_span *s)
{
	uint64_t stack = s->segment == from ? s->stack : 0;
	struct sp_record r;

	if (sp_stacktab_rewrite(lane, from, &stack)) {
		to_record(s, stack, &r);
		if (sp_chunks_rewrite(lane, &r, from + 1)) {
			s->stack = (uint32_t)stack;
			s->segment = from + 1;
			return true;
		}
	}
	/* A later step goes on here, unless there is no room for ever. */
	if (sp_ring_segment() != from + 1 || sp_ring_has_room())
		return false;
	sp_diag_lose(SP_LOSS_MAP, 1);
	return true;
}

/* Some that are next; *ret_n of them, 0: all were passed.  False: no lock. */
static bool copy_next(uint32_t from, struct sp_span copies[STEP],
		      unsigned int *ret_n)
{
	if (!take_lock())
		return false;
	if (pass_to != from + 1) {
		pass_to = from + 1;
		pass_at = 0;
	}
	*ret_n = 0;
	for (size_t i = sp_spans_find(&live, pass_at);
	     i < live.n && *ret_n < STEP; i++)
		copies[(*ret_n)++] = live.at[i];
	give_lock();
	return true;
}

/* A thread that comes late changes nothing of a later pass. */
static bool note_rewritten(uint32_t from, const struct sp_span *s)
{
	if (!take_lock())
		return false;
	if (pass_to == from + 1) {
		if (s->segment == pass_to)
			set_place(s);
		if (s->end > pass_at)
			pass_at = s->end;
	}
	give_lock();
	return true;
}

/* Without the lock while it writes: a thread that loses its processor in there
 * stops no other, since another does the same again.  What is cut meanwhile has
 * its end in the new segment. */
bool sp_livemaps_rewrite(struct sp_lane *lane, uint32_t from)
{
	struct sp_span copies[STEP];
	unsigned int n;

	for (unsigned int steps = 0; steps < STEPS_MAX; steps++) {
		if (!copy_next(from, copies, &n))
			return false;
		if (!n)
			return true;
		for (unsigned int i = 0; i < n; i++)
			if ((copies[i].segment != from + 1 &&
			     !rewrite_span(lane, from, &copies[i])) ||
			    !note_rewritten(from, &copies[i]))
				return false;
	}
	return false;
}
