/* SPDX-License-Identifier: MIT */
/*
 * I1  Only the holder of `busy` touches `live` and the state of the pass.
 * I2  A mapping is written to segment s, put into the table, and then its
 *     thread looks at the number of the current segment.  If a pass over the
 *     table comes after the putting it finds it.  If it came before, s had
 *     ended, so that the thread finds another number and writes it once more.
 * I3  An unmapping leaves the table before its record is written.  So what a
 *     pass still finds has its end, if it has one, in the new segment or a
 *     later one.
 */
#include "agent/file/livemaps.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <time.h>

#include "agent/file/chunks.h"
#include "agent/file/ring.h"
#include "agent/file/stacktab.h"
#include "agent/sys/arch.h"
#include "agent/sys/diag.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

#define SPINS_MAX 2000u /* some tens of us */
#define NAPS_MAX  200u
#define NAP_NS    1000000u /* 1 ms: the holder has lost its processor */
#define PER_CHUNK 32u      /* mappings, of the file */
#define STEP      4u       /* that a pass takes at a time */
#define STEPS_MAX 4u       /* some us */

static sp_inside_lock busy;
static _Atomic uint64_t last_number;
static _Atomic uint32_t n_live; /* that of `live`, for whoever has no lock */
static struct sp_span places[SP_LIVEMAPS_MAX];
static struct sp_spans live = {places, 0, SP_LIVEMAPS_MAX};
/* The pass has come to that address, on the way to that segment. */
static uint64_t pass_at;
static uint32_t pass_to;

/* Nobody wakes it. */
static void take_nap(void)
{
	static const uint32_t never = 0;
	const struct timespec time = {0, NAP_NS};

	SP_SYS4(futex, &never, FUTEX_WAIT_PRIVATE, 0, &time);
}

static bool take_lock(void)
{
	for (unsigned int i = 0; i < SPINS_MAX + NAPS_MAX; i++) {
		if (sp_inside_hold(&busy))
			return true;
		if (atomic_load(&busy) == &sp_thread)
			return false;
		if (i < SPINS_MAX)
			sp_arch_pause();
		else
			take_nap();
	}
	return false;
}

static void give_lock(void)
{
	atomic_store_explicit(&n_live, (uint32_t)live.n, memory_order_relaxed);
	sp_inside_give(&busy);
}

static void forget_all(void)
{
	live.n = 0;
	pass_at = 0;
	pass_to = 0;
}

void sp_livemaps_begin(uint64_t max_file_bytes)
{
	const uint64_t chunks = max_file_bytes / SP_FORMAT_CHUNK_BYTES;

	live.room = chunks < SP_LIVEMAPS_MAX / PER_CHUNK
			    ? (size_t)chunks * PER_CHUNK
			    : SP_LIVEMAPS_MAX;
}

void sp_livemaps_reset(void)
{
	forget_all();
	atomic_store(&last_number, 0);
	atomic_store(&n_live, 0);
	atomic_store(&busy, NULL);
}

void sp_livemaps_give_left(void)
{
	if (atomic_load(&busy) != &sp_thread)
		return;
	sp_diag_lose(SP_LOSS_MAP, live.n + 1);
	forget_all();
	give_lock();
}

uint64_t sp_livemaps_number(void)
{
	return 1 + atomic_fetch_add(&last_number, 1);
}

bool sp_livemaps_any(void)
{
	return atomic_load_explicit(&n_live, memory_order_relaxed) != 0;
}

bool sp_livemaps_put(const struct sp_span *span)
{
	bool is_put;

	if (!take_lock())
		return false;
	is_put = sp_spans_cut(&live, span->start, span->end, span->number, NULL,
			      NULL) &&
		 sp_spans_put(&live, span);
	give_lock();
	return is_put;
}

struct told {
	sp_span_fn *fn;
	void *arg;
	int pieces;
};

static void tell_piece(void *arg, const struct sp_span *piece)
{
	struct told *told = arg;

	told->pieces++;
	if (told->fn)
		told->fn(told->arg, piece);
}

int sp_livemaps_cut(uint64_t start, uint64_t end, uint64_t number,
		    sp_span_fn *fn, void *arg)
{
	struct told told = {fn, arg, 0};
	bool has_room;

	if (!take_lock())
		return -EBUSY;
	has_room = sp_spans_cut(&live, start, end, number, tell_piece, &told);
	give_lock();
	return has_room ? told.pieces : -ENOSPC;
}

bool sp_livemaps_find(uint64_t start, uint64_t end, uint32_t flags,
		      struct sp_span *ret)
{
	size_t i;

	if (!take_lock())
		return false;
	i = sp_spans_find(&live, start);
	while (i < live.n && live.at[i].start < end &&
	       (live.at[i].flags & flags) != flags)
		i++;
	*ret = (struct sp_span){.number = 0};
	if (i < live.n && live.at[i].start < end)
		*ret = live.at[i];
	give_lock();
	if (ret->start < start)
		ret->start = start;
	if (ret->end > end)
		ret->end = end;
	return ret->number != 0;
}

/* Context: `busy` is ours. */
static void set_place(const struct sp_span *of)
{
	size_t i = sp_spans_find(&live, of->start);

	for (; i < live.n && live.at[i].start < of->end; i++) {
		if (live.at[i].number != of->number)
			continue;
		live.at[i].stack = of->stack;
		live.at[i].segment = of->segment;
	}
}

void sp_livemaps_set_place(const struct sp_span *span)
{
	if (!take_lock())
		return;
	set_place(span);
	give_lock();
}

/* ---- a pass ---- */

/* False: not now. */
static bool rewrite_span(struct sp_lane *lane, uint32_t from, struct sp_span *s)
{
	uint64_t stack = s->segment == from ? s->stack : 0;
	struct sp_record r = {.type = SP_RECORD_MAP};

	if (sp_stacktab_rewrite(lane, from, &stack)) {
		r.u.map = (struct sp_record_map){
			s->number,         s->flags,  s->time_ns, s->start,
			s->end - s->start, s->thread, stack};
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
	if (!sp_inside_hold(&busy))
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
	if (!sp_inside_hold(&busy))
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
 * stops nobody, since another does the same again.  What is cut meanwhile has
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
