/* SPDX-License-Identifier: MIT */
/* Forgetting a profile: in a forked child, or in a program that goes on. */
#include <errno.h>

#include "agent/event/agent.h"
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/event/remote.h"
#include "agent/file/livemaps.h"
#include "agent/file/slots.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/sys/diag.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/thread.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"

#include "agent/sys/poison.h"

void sp_agent_reset_records(void)
{
	sp_writer_reset();
	sp_lane_reset();
	sp_recorder_reset();
	sp_livemaps_reset();
	sp_stacktab_reset();
	sp_modules_reset();
	sp_slots_reset();
	sp_diag_reset();
	sp_marks_reset();
	sp_remote_reset();
}

/* A thread that is in one of our calls has its word, or a lane. */
static bool is_inside(struct sp_thread *t)
{
	return t != &sp_thread && __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE);
}

/* Whatever it has counted, its next allocation is an event. */
static bool restart_thread(struct sp_thread *t)
{
	__atomic_store_n(&t->counts, sp_size_counts_void(t), __ATOMIC_RELAXED);
	__atomic_store_n(&t->limit, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->remaining, 0, __ATOMIC_RELEASE);
	return false;
}

/*
 * A thread that is about to come in when the profile ends either finds that it
 * has ended, or is inside by the time of the next call.  No thread records
 * without a lane.
 */
int sp_agent_end_attached(void)
{
	const bool ends_now = sp_agent_is_running();

	if (!sp_agent_stop())
		return -ESRCH;
	if (ends_now || sp_slots_any_owner(is_inside) || !sp_lane_close() ||
	    sp_slots_any_owner(is_inside))
		return -EAGAIN;
	sp_slots_any_owner(restart_thread);
	sp_agent_forget();
	return 0;
}
