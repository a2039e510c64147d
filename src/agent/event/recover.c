/* SPDX-License-Identifier: MIT */
#include "agent/event/recover.h"

#include "agent/event/marks.h"
#include "agent/event/remote.h"
#include "agent/file/livemaps.h"
#include "agent/file/liveset.h"
#include "agent/file/names.h"
#include "agent/file/rewrite_live.h"
#include "agent/file/ring.h"
#include "agent/file/slots.h"
#include "agent/file/writer.h"
#include "agent/process/checkin.h"
#include "agent/process/period.h"
#include "agent/sys/diag.h"
#include "agent/thread/inside.h"
#include "agent/thread/size_counts.h"
#include "agent/unwind/framewalk.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"

#include "agent/sys/poison.h"

/* From the size counts, if they are valid; else from the countdown, if its
 * value is plausible. */
static void recover_counts(struct sp_thread *t)
{
	struct sp_slots_own own;
	uint64_t used = sp_thread_take_used();

	if (sp_slots_own(t->slot, &own)) {
		t->counts = own.counts;
		t->bytes = own.bytes;
		t->objects = own.objects;
		t->published_bytes = own.added_bytes;
		t->published_objects = own.added_objects;
	} else if (used <= SP_CHECKIN_BYTES_MAX) {
		t->bytes += used;
	}
	sp_sampler_change(&t->sampler, t->sampler.law);
	if (t->slot)
		sp_slots_set_sampling(t->slot,
				      t->sampler.law != &sp_period_off);
}

static void give_left_locks(struct sp_thread *t, bool is_of_process)
{
	sp_rewrite_live_give_left();
	sp_lane_give_left();
	sp_livemaps_give_left();
	sp_liveset_give_left();
	sp_marks_give_left();
	sp_modules_give_left();
	sp_names_give_left();
	sp_remote_give_left();
	sp_ring_give_left();
	sp_slots_give_left(is_of_process ? t->slot : 0);
	sp_writer_give_left();
}

void sp_recover_left(bool is_of_process)
{
	volatile uint32_t mark = SP_INSIDE_MARK;
	struct sp_thread *t = &sp_thread;

	t->inside = &mark;
	t->suspended = 1;
	sp_diag_lose(SP_LOSS_LEFT, 1);
	t->writing = 0;
	t->looks = 0;
	/* Of a slot whose claim was left another may be the owner now. */
	if (!is_of_process)
		t->counts = sp_size_counts_void(t);
	give_left_locks(t, is_of_process);
	if (!t->paused) {
		sp_thread_set_countdown(SP_THREAD_ROOM);
		if (is_of_process)
			recover_counts(t);
		else
			sp_thread_take_used();
	}
	t->suspended = 0;
	t->inside = NULL;
}

/*
 * The mark of what was left stays as it was where nobody writes: in this call's
 * own frames, which are from `here` up to `from`, or in the middle of a large
 * variable of a function that goes on, and calls.
 */
static bool has_passed(const volatile uint32_t *here,
		       const struct sp_call_frame *from)
{
	const uintptr_t mark = (uintptr_t)sp_thread.inside;
	struct sp_lane *lane;
	bool has;

	if (!from || mark < (uintptr_t)here)
		return false;
	if (mark < (uintptr_t)from)
		return true;
	lane = sp_lane_take(&sp_thread.lane_hint);
	if (!lane)
		return false;
	has = sp_framewalk_passes(lane, from, mark);
	sp_lane_give(lane);
	return has;
}

bool sp_recover_is_in_event(volatile uint32_t *mark,
			    const struct sp_call_frame *from,
			    bool is_of_process)
{
	if (!sp_thread.inside || sp_inside_was_left(mark) ||
	    has_passed(mark, from))
		sp_recover_left(is_of_process);
	return sp_thread.suspended;
}
