/* SPDX-License-Identifier: MIT */
/*
 * I1  While a thread is suspended its allocations pass through, unsampled. Only
 *     the agent's own calls and signal handlers that interrupt it can be meant,
 *     unless it has left the agent by siglongjmp: that is noticed (inside.h).
 */
#include "agent/event/agent.h"

#include <errno.h>

#include "agent/divert/divert.h"
#include "agent/event/lifecycle.h"
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/event/remote.h"
#include "agent/event/thread_life.h"
#include "agent/file/outfile.h"
#include "agent/file/writer.h"
#include "agent/process/checkin.h"
#include "agent/process/period.h"
#include "agent/process/suspend.h"
#include "agent/sys/allocator.h"
#include "agent/thread/inside.h"
#include "agent/thread/size_counts.h"

#include "agent/sys/poison.h"

/* Aligned: a program that calls with a stack that is not gets here, and what
 * others compiled (the loader) stores vectors on it. */
SP_ARCH_ALIGNED void sp_agent_count(void *p, uint64_t n, enum sp_entry entry,
				    const struct sp_call_frame *frame)
{
	struct sp_thread *t = &sp_thread;
	uint64_t size = n ? n : 1;
	struct sp_event event;
	volatile uint32_t mark;
	int saved_errno = errno;
	uint64_t used;

	if (sp_thread_life_is_in_event(t, &mark, frame)) {
		sp_inside_pass(n);
		return;
	}
	if (t->paused) {
		/* Only a request beyond 2^61 bytes gets here. */
		t->remaining = SP_SUSPENDED;
		return;
	}
	used = sp_suspend_begin(t, &mark);
	if (!sp_lifecycle_make_ready(t, &used)) {
		errno = saved_errno;
		return;
	}
	event = (struct sp_event){p, size, 0, entry, frame};
	t->bytes += used + size;
	if (sp_sampler_pass(&t->sampler, used, size, &event.offset_bytes)) {
		sp_recorder_sample(t, &event);
		sp_period_charge();
	}
	sp_thread_count_object();
	sp_size_counts_count(t->counts, n);
	if (!sp_checkin_left(t)) {
		sp_checkin_choose(t, sp_writer_time());
		sp_thread_life_publish(t);
	} else if (sp_thread_life_publishes_each_call(t)) {
		sp_thread_life_publish(t);
	}
	sp_remote_poll(t);
	sp_marks_adapt(t);
	sp_marks_complete();
	sp_thread_life_follow_period(t);
	sp_thread_life_resume(t, &mark);
	errno = saved_errno;
}

bool sp_agent_enter(volatile uint32_t *mark, const struct sp_call_frame *from)
{
	struct sp_thread *t = &sp_thread;

	return sp_process_is_running() &&
	       !sp_thread_life_is_in_event(t, mark, from) &&
	       sp_lifecycle_go_in(t, mark);
}

void sp_agent_publish(void)
{
	sp_thread_life_publish(&sp_thread);
}

void sp_agent_leave(const volatile uint32_t *mark)
{
	sp_remote_poll(&sp_thread);
	sp_thread_life_follow_period(&sp_thread);
	sp_thread_life_resume(&sp_thread, mark);
}

void sp_agent_enter_sandbox(void)
{
	volatile uint32_t mark;

	sp_process.is_sandboxed = true;
	sp_outfile_enter_sandbox();
	if (!sp_agent_enter(&mark, SP_FRAME_HERE))
		return;
	sp_recorder_open_file(&sp_thread);
	sp_agent_leave(&mark);
}

void sp_agent_look_at_loaded(const struct sp_call_frame *from)
{
	const int saved_errno = errno;
	volatile uint32_t mark;

	if (sp_divert_look()) {
		sp_allocator_note_other();
		if (sp_agent_enter(&mark, from)) {
			if (sp_process_explain_linked(&sp_process))
				sp_recorder_describe_late(&sp_thread);
			sp_agent_leave(&mark);
		}
	}
	errno = saved_errno;
}
