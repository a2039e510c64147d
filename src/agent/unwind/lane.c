/* SPDX-License-Identifier: MIT */
#include "agent/unwind/lane.h"

#include "agent/thread/thread.h"

#include "agent/sys/poison.h"

#define CACHE_LINE 64
#define FOR_FACTS  (SP_LANES - 1) /* the last lane */

static_assert(SP_LANES <= UINT8_MAX, "a number of a lane is a byte");

/* Touched lane by lane: an unused one costs address space only. */
static struct sp_lane lanes[SP_LANES];
/* Who has them.  Acquire in sp_lane_take pairs with release in sp_lane_give.
 * They are beside the lanes, so that closing unused ones takes no memory: a
 * process near its limit would die of it. */
static struct {
	_Alignas(CACHE_LINE) _Atomic(const void *) holder;
} words[SP_LANES];
static _Atomic unsigned int n_used; /* lanes [0, n_used) were ever taken */
static const char closed;           /* holds those that nobody is to take */
static _Atomic bool is_closed;

static bool take(unsigned int n)
{
	const void *nobody = NULL;
	unsigned int used = atomic_load_explicit(&n_used, memory_order_relaxed);
	_Atomic uint32_t *takes = &lanes[n].takes;

	if (atomic_load_explicit(&words[n].holder, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong_explicit(
		    &words[n].holder, &nobody, &sp_thread, memory_order_acquire,
		    memory_order_relaxed))
		return false;
	while (used <= n &&
	       !atomic_compare_exchange_weak(&n_used, &used, n + 1))
		;
	/* The holder alone writes it. */
	atomic_store_explicit(
		takes, 1 + atomic_load_explicit(takes, memory_order_relaxed),
		memory_order_relaxed);
	return true;
}

struct sp_lane *sp_lane_take(uint8_t *hint)
{
	const unsigned int first = *hint % FOR_FACTS;

	for (unsigned int i = 0; i < FOR_FACTS; i++) {
		/* Back to lane 0 first, so that few lanes are in use. */
		const unsigned int n = i == 0 ? first : i - (i <= first);

		if (take(n)) {
			*hint = (uint8_t)n;
			return &lanes[n];
		}
	}
	return NULL;
}

struct sp_lane *sp_lane_take_for_fact(uint8_t *hint)
{
	struct sp_lane *lane = sp_lane_take(hint);

	return lane || !take(FOR_FACTS) ? lane : &lanes[FOR_FACTS];
}

void sp_lane_give(struct sp_lane *lane)
{
	atomic_store_explicit(&words[lane - lanes].holder, NULL,
			      memory_order_release);
}

const void *sp_lane_holder(const struct sp_lane *lane)
{
	return atomic_load(&words[lane - lanes].holder);
}

unsigned int sp_lane_count(void)
{
	return atomic_load_explicit(&n_used, memory_order_relaxed);
}

uint8_t sp_lane_number(const struct sp_lane *lane)
{
	return (uint8_t)(lane - lanes + 1);
}

struct sp_lane *sp_lane_of(uint8_t number)
{
	return number ? &lanes[number - 1] : NULL;
}

/* What its holder was doing to the last walks is not known.  Whether its chunk
 * was left in the middle of a record is (I4 of chunks.c). */
static void forget_walks(struct sp_lane *lane)
{
	lane->walks[0].n = lane->walks[1].n = 0;
}

void sp_lane_give_left(void)
{
	unsigned int used = atomic_load_explicit(&n_used, memory_order_relaxed);

	for (unsigned int i = 0; i < used; i++) {
		if (atomic_load_explicit(&words[i].holder,
					 memory_order_relaxed) != &sp_thread)
			continue;
		forget_walks(&lanes[i]);
		sp_lane_give(&lanes[i]);
	}
}

bool sp_lane_close(void)
{
	bool are_all = true;

	/* First: a thread that finds no lane has to know why. */
	atomic_store(&is_closed, true);
	for (unsigned int i = 0; i < SP_LANES; i++) {
		const void *holder = NULL;

		if (!atomic_compare_exchange_strong(&words[i].holder, &holder,
						    &closed) &&
		    holder != &closed)
			are_all = false;
	}
	return are_all;
}

bool sp_lane_is_closed(void)
{
	return atomic_load(&is_closed);
}

void sp_lane_open(void)
{
	for (unsigned int i = 0; i < SP_LANES; i++) {
		const void *holder = &closed;

		atomic_compare_exchange_strong(&words[i].holder, &holder, NULL);
	}
	atomic_store(&is_closed, false);
}

void sp_lane_reset(void)
{
	unsigned int used = atomic_load_explicit(&n_used, memory_order_relaxed);

	for (unsigned int i = 0; i < used; i++) {
		struct sp_lane *lane = &lanes[i];
		const void *holder = atomic_load_explicit(&words[i].holder,
							  memory_order_relaxed);

		if (holder == &sp_thread)
			continue;
		if (holder)
			forget_walks(lane);
		lane->tail.chunk = NULL;
		if (holder == &closed)
			continue;
		atomic_store_explicit(&words[i].holder, NULL,
				      memory_order_relaxed);
	}
}
