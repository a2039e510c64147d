/* SPDX-License-Identifier: MIT */
#include "agent/process/suspend.h"

#include <stdatomic.h>

#include "agent/process/checkin.h"
#include "agent/sys/diag.h"
#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

uint64_t sp_suspend_begin(struct sp_thread *t, volatile uint32_t *mark)
{
	sp_inside_begin(mark);
	t->suspended = 1;
	atomic_signal_fence(memory_order_seq_cst);
	if (t->paused)
		return 0;
	sp_thread_set_countdown(SP_THREAD_ROOM);
	return sp_thread_take_used();
}

/*
 * A signal handler that interrupted the agent may have allocated.  Its
 * allocations were counted, but not sampled: the suspended countdown took their
 * bytes, which have no part in the sampling.  If a handler comes between the
 * new countdown and resuming, it leaves another value, and the loop sets the
 * countdown again.
 */
static void restore_countdown(struct sp_thread *t,
			      bool (*must_come_back)(const struct sp_thread *t))
{
	uint64_t pending, limit;

	do {
		t->suspended = 1;
		atomic_signal_fence(memory_order_seq_cst);
		limit = sp_checkin_left(t);
		if (t->sampler.gap < limit)
			limit = t->sampler.gap;
		if (must_come_back(t))
			limit = 0;
		sp_thread_set_countdown(limit);
		pending = sp_thread_take_used();
		if (pending) {
			t->bytes += pending;
			t->looks = 0;
			sp_diag_lose(SP_LOSS_NESTED, 1);
		}
		t->suspended = 0;
		atomic_signal_fence(memory_order_seq_cst);
	} while (*(volatile uint64_t *)&t->remaining > limit);
}

void sp_suspend_end(struct sp_thread *t, const volatile uint32_t *mark,
		    bool (*must_come_back)(const struct sp_thread *t))
{
	/* What passed in here while paused goes on passing. */
	if (!t->paused)
		restore_countdown(t, must_come_back);
	atomic_signal_fence(memory_order_seq_cst);
	t->suspended = 0;
	sp_inside_end(mark);
}
