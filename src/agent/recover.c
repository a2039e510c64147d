/* SPDX-License-Identifier: MIT */
#include "agent/recover.h"

#include "agent/carry.h"
#include "agent/checkin.h"
#include "agent/classes.h"
#include "agent/diag.h"
#include "agent/inside.h"
#include "agent/lane.h"
#include "agent/liveset.h"
#include "agent/marks.h"
#include "agent/modules.h"
#include "agent/names.h"
#include "agent/orders.h"
#include "agent/rate.h"
#include "agent/ring.h"
#include "agent/slots.h"
#include "agent/writer.h"

#include "agent/poison.h"

/* From the slab, where they are right; without one what the word says, if that
 * makes sense. */
static void recover_counts(struct sp_thread *t)
{
	struct sp_slots_own own;
	uint64_t used = sp_thread_take_used();

	if (sp_slots_own(t->slot, &own)) {
		t->classes = own.classes;
		t->bytes = own.bytes;
		t->objects = own.objects;
		t->published_bytes = own.added_bytes;
		t->published_objects = own.added_objects;
	} else if (used <= SP_CHECKIN_BYTES_MAX) {
		t->bytes += used;
	}
	sp_sampler_change(&t->sampler, t->sampler.law);
	if (t->slot)
		sp_slots_set_sampling(t->slot, t->sampler.law != &sp_rate_off);
}

static void give_left_locks(struct sp_thread *t, bool is_of_process)
{
	sp_carry_give_left();
	sp_lane_give_left();
	sp_liveset_give_left();
	sp_marks_give_left();
	sp_modules_give_left();
	sp_names_give_left();
	sp_orders_give_left();
	sp_ring_give_left();
	sp_slots_give_left(is_of_process ? t->slot : 0);
	sp_writer_give_left();
}

void sp_recover_left(bool is_of_process)
{
	volatile uint32_t mark = SP_INSIDE_MARK;
	struct sp_thread *t = &sp_thread;

	t->inside = &mark;
	t->parked = 1;
	sp_diag_lose(SP_LOSS_LEFT, 1);
	t->writing = 0;
	t->looks = 0;
	/* Of a slot whose claim was left another may be the owner now. */
	if (!is_of_process)
		t->classes = sp_classes_void(t);
	give_left_locks(t, is_of_process);
	if (!t->paused) {
		sp_thread_set_word(SP_THREAD_ROOM);
		if (is_of_process)
			recover_counts(t);
		else
			sp_thread_take_used();
	}
	t->parked = 0;
	t->inside = NULL;
}
