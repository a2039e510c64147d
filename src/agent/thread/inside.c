/* SPDX-License-Identifier: MIT */
#include "agent/thread/inside.h"

#include "agent/sys/hooks.h"
#include "agent/sys/sys.h"
#include "agent/thread/size_counts.h"

#include "agent/sys/poison.h"

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

void sp_inside_pass(uint64_t n)
{
	struct sp_thread *t = &sp_thread;

	if (t->paused) {
		t->remaining = SP_SUSPENDED;
		return;
	}
	sp_thread_set_countdown(SP_THREAD_ROOM);
	sp_thread_raise_limit(n ? n : 1);
	sp_thread_count_object();
	sp_size_counts_count(t->counts, n);
}

struct sp_inside_pause sp_inside_pause_counting(void)
{
	struct sp_thread *t = &sp_thread;
	struct sp_inside_pause pause = {t->remaining, t->limit, t->objects,
					t->counts};

	t->counts = sp_size_counts_void(t);
	return pause;
}

void sp_inside_resume_counting(const struct sp_inside_pause *pause)
{
	struct sp_thread *t = &sp_thread;

	t->counts = pause->counts;
	t->objects = pause->objects;
	t->limit = pause->limit;
	t->remaining = pause->word;
}

void sp_inside_watch_end(struct sp_thread *t)
{
	struct sp_inside_pause pause;

	if (t->watched || t->ended)
		return;
	/* Beyond the 32nd key the C library allocates for that. */
	pause = sp_inside_pause_counting();
	t->watched = sp_hooks_watch_thread(t);
	sp_inside_resume_counting(&pause);
}
