/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/thread/thread.h"

/*
 * Is a thread still in the agent?  A signal handler that interrupted it may
 * leave by siglongjmp, which the agent does not notice.  So the outermost call
 * into the agent has a mark in its frame, and the thread keeps its address.
 *
 * I1  A mark that has changed, or that cannot be read any more, is of a call
 *     that was left: no other code writes to the frame of one that goes on.
 * I2  The frames of two calls that go on do not overlap.
 * I3  What a call holds says so by the address of its thread (sp_inside_hold):
 *     when it was left, the thread gives it back.
 */
#define SP_INSIDE_MARK 0x5a1e1a7eu

static inline void sp_inside_begin(volatile uint32_t *mark)
{
	if (sp_thread.inside)
		return;
	*mark = SP_INSIDE_MARK;
	atomic_signal_fence(memory_order_seq_cst);
	sp_thread.inside = mark;
}

static inline void sp_inside_end(const volatile uint32_t *mark)
{
	if (sp_thread.inside == mark)
		sp_thread.inside = NULL;
}

/*
 * Was the call that sp_thread.inside belongs to left?  `here` is in the frame
 * of the function that asks, which the program or a signal handler called.
 * Uses only a system call that malloc needs, so that it works in a sandbox.
 * Context: sampled.
 */
bool sp_inside_was_left(volatile uint32_t *here);

/* A signal handler that interrupted the agent has used up SP_THREAD_ROOM: its
 * allocation of n bytes is counted, and not sampled.  Context: sampled. */
void sp_inside_pass(uint64_t n);

/* What is allocated between the two is not the program's. */
struct sp_inside_pause {
	uint64_t word, limit, objects;
	struct sp_size_counts *counts;
};

struct sp_inside_pause sp_inside_pause_counting(void);
void sp_inside_resume_counting(const struct sp_inside_pause *pause);

/* Have it noticed that this thread exits (sp_hooks_watch_thread), if that is
 * possible by now.  Threads older than our constructor get here at their next
 * check-in. */
void sp_inside_watch_end(struct sp_thread *t);

/* Try-locks that are given back when their holder has left. */
typedef _Atomic(const void *) sp_inside_lock;

static inline bool sp_inside_hold(sp_inside_lock *lock)
{
	const void *nobody = NULL;

	return atomic_compare_exchange_strong(lock, &nobody, &sp_thread);
}

static inline void sp_inside_give(sp_inside_lock *lock)
{
	atomic_store(lock, NULL);
}

/* If this thread holds it, by a call that was left. */
static inline void sp_inside_give_left(sp_inside_lock *lock)
{
	const void *left = &sp_thread;

	atomic_compare_exchange_strong(lock, &left, NULL);
}
