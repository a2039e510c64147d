/* SPDX-License-Identifier: MIT */
#include "agent/inside.h"

#include "agent/agent.h"
#include "agent/carry.h"
#include "agent/classes.h"
#include "agent/diag.h"
#include "agent/lane.h"
#include "agent/liveset.h"
#include "agent/marks.h"
#include "agent/modules.h"
#include "agent/names.h"
#include "agent/orders.h"
#include "agent/rate.h"
#include "agent/ring.h"
#include "agent/slots.h"
#include "agent/sys.h"
#include "agent/writer.h"

#include "agent/poison.h"

/* A handler that goes on may run further out than what it interrupted, if its
 * alternate stack is a variable of some function.  So that alone is believed
 * only after some times in a row, which is 124 KiB of allocations. */
#define LOOKS_MAX 31u
#define OUTER_MAX (1u << 20) /* bytes */
/* Further in than that no mark is set by an event. */
#define REACH 1024

/* The word may be on a stack that is gone. */
static bool is_changed(const volatile uint32_t *mark)
{
	return sp_sys_compare(mark, SP_INSIDE_MARK) == 1;
}

bool __attribute__((noinline)) sp_inside_was_left(volatile uint32_t *here)
{
	struct sp_thread *t = &sp_thread;
	const uintptr_t mark = (uintptr_t)t->inside;
	const uintptr_t outer = (uintptr_t)here;
	volatile char reach[REACH];
	const uintptr_t inner = (uintptr_t)reach;

	reach[0] = 0;
	/* In our own frames, or our caller's (I2). */
	if (mark - inner <= outer - inner || is_changed(t->inside))
		return true;
	if (mark >= outer || outer - mark > OUTER_MAX)
		t->looks = 0;
	else
		t->looks++;
	return t->looks == LOOKS_MAX;
}

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
	} else if (used <= SP_AGENT_CHECK_IN_BYTES) {
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

void sp_inside_recover(bool is_of_process)
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

void sp_inside_pass(uint64_t n)
{
	struct sp_thread *t = &sp_thread;

	if (t->paused) {
		t->remaining = SP_WORD_PARKED;
		return;
	}
	sp_thread_set_word(SP_THREAD_ROOM);
	sp_thread_raise_limit(n ? n : 1);
	t->objects++;
	sp_classes_count(t->classes, n);
}

struct sp_inside_pause sp_inside_pause_counting(void)
{
	struct sp_thread *t = &sp_thread;
	struct sp_inside_pause pause = {t->remaining, t->limit, t->objects,
					t->classes};

	t->classes = sp_classes_void(t);
	return pause;
}

void sp_inside_resume_counting(const struct sp_inside_pause *pause)
{
	struct sp_thread *t = &sp_thread;

	t->classes = pause->classes;
	t->objects = pause->objects;
	t->limit = pause->limit;
	t->remaining = pause->word;
}
