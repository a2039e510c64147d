/* SPDX-License-Identifier: MIT */
/* The public interface, sampleprof/sampleprof.h. */
#define SAMPLEPROF_NO_CALLS /* only types and prototypes: they are here */
#include "sampleprof/sampleprof.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "agent/event/agent.h"
#include "agent/event/marks.h"
#include "agent/file/slots.h"
#include "agent/file/slots_total.h"
#include "agent/process/process.h"
#include "agent/process/checkin.h"
#include "agent/sys/diag.h"
#include "agent/sys/export.h"
#include "agent/thread/size_counts.h"
#include "agent/thread/thread.h"

#include "agent/sys/poison.h"

static_assert(sizeof(((struct sampleprof_phase *)0)->before) ==
		      sizeof(((struct sp_marks_name *)0)->text),
	      "room for any name");

/* ---- exact counts ---- */

SP_EXPORT int sampleprof_thread_totals(struct sampleprof_totals *ret)
{
	const struct sp_thread *t = &sp_thread;

	if (!sp_process_is_running() || t->suspended)
		return -1;
	ret->alloc_bytes = t->bytes;
	ret->alloc_objects = t->published_objects;
	if (t->paused)
		return 0;
	ret->alloc_bytes += t->limit - t->remaining;
	ret->alloc_objects = t->objects;
	return 0;
}

SP_EXPORT int sampleprof_process_totals(struct sampleprof_totals *ret)
{
	struct sp_slots_totals totals;

	if (!sp_process_is_running() || sp_thread.suspended)
		return -1;
	sp_slots_total(&totals, SP_CHECKIN_BYTES_MAX);
	ret->alloc_bytes = totals.bytes;
	ret->alloc_objects = totals.objects;
	return 0;
}

/* ---- phases and snapshots ---- */

static int begin_phase(const char *name, struct sp_marks_name *ret_before)
{
	const struct sp_marks_name wanted = sp_marks_name(name);
	volatile uint32_t mark;
	int saved_errno = errno, err;

	if (!sp_agent_enter(&mark, SP_FRAME_HERE))
		return -1;
	err = sp_marks_phase(&sp_thread, &wanted, SP_MARKS_NOW, ret_before);
	sp_agent_leave(&mark);
	errno = saved_errno;
	return err ? -1 : 0;
}

SP_EXPORT int sampleprof_mark(const char *name)
{
	return begin_phase(name, NULL);
}

SP_EXPORT int sampleprof_phase_begin(struct sampleprof_phase *ret,
				     const char *name)
{
	struct sp_marks_name before;

	ret->is_open = 0;
	if (begin_phase(name, &before))
		return -1;
	memcpy(ret->before, before.text, before.bytes);
	ret->before_bytes = (unsigned int)before.bytes;
	ret->is_open = 1;
	return 0;
}

SP_EXPORT int sampleprof_phase_end(struct sampleprof_phase *phase)
{
	struct sp_marks_name name = {.bytes = phase->before_bytes};
	volatile uint32_t mark;
	int saved_errno = errno, err;

	if (!phase->is_open || name.bytes > sizeof(name.text) ||
	    !sp_agent_enter(&mark, SP_FRAME_HERE))
		return -1;
	memcpy(name.text, phase->before, sizeof(name.text));
	phase->is_open = 0;
	err = sp_marks_phase(&sp_thread, &name, SP_MARKS_NOW, NULL);
	sp_agent_leave(&mark);
	errno = saved_errno;
	return err ? -1 : 0;
}

SP_EXPORT int sampleprof_snapshot(const char *name)
{
	const struct sp_marks_name wanted = sp_marks_name(name);
	volatile uint32_t mark;
	int saved_errno = errno, err;

	if (!sp_agent_enter(&mark, SP_FRAME_HERE))
		return -1;
	sp_agent_publish();
	err = sp_marks_snapshot(&sp_thread, &wanted, SP_MARKS_NOW);
	sp_agent_leave(&mark);
	errno = saved_errno;
	return err ? -1 : 0;
}

/* ---- what is sampled ---- */

static int set_sampling(enum sp_marks_switch to, uint64_t period_bytes)
{
	volatile uint32_t mark;
	int saved_errno = errno, err;

	if (!sp_agent_enter(&mark, SP_FRAME_HERE))
		return -1;
	err = sp_marks_sampling(&sp_thread, to, period_bytes);
	sp_agent_leave(&mark);
	errno = saved_errno;
	return err ? -1 : 0;
}

SP_EXPORT int sampleprof_start(void)
{
	return set_sampling(SP_MARKS_ON, 0);
}

SP_EXPORT int sampleprof_stop(void)
{
	return set_sampling(SP_MARKS_OFF, 0);
}

SP_EXPORT int sampleprof_set_period(uint64_t bytes)
{
	if (bytes < 1 || bytes > SP_FORMAT_PERIOD_MAX)
		return -1;
	return set_sampling(SP_MARKS_KEEP, bytes);
}

/* ---- this thread ---- */

SP_EXPORT int sampleprof_pause(void)
{
	struct sp_thread *t = &sp_thread;
	int saved_errno = errno;
	volatile uint32_t mark;

	if (!sp_agent_enter(&mark, SP_FRAME_HERE))
		return -1;
	if (t->paused) {
		sp_agent_leave(&mark);
		return 1;
	}
	/* In this order: what a signal handler allocates meanwhile is in the
	 * totals and in the size counts, or in neither. */
	t->counts = sp_size_counts_void(t);
	sp_thread_set_countdown(SP_SUSPENDED);
	sp_arch_add(&t->bytes, sp_thread_take_used());
	sp_agent_publish();
	t->paused = 1;
	sp_agent_leave(&mark);
	errno = saved_errno;
	return 0;
}

SP_EXPORT int sampleprof_resume(void)
{
	struct sp_thread *t = &sp_thread;
	struct sp_size_counts *counts;
	volatile uint32_t mark;

	if (!sp_agent_enter(&mark, SP_FRAME_HERE))
		return -1;
	if (!t->paused) {
		sp_agent_leave(&mark);
		return 1;
	}
	sp_thread_set_countdown(SP_THREAD_ROOM);
	sp_diag_lose(SP_LOSS_PAUSED, sp_thread_take_used());
	t->objects = t->published_objects;
	counts = sp_slots_size_counts(t->slot);
	if (counts)
		t->counts = counts;
	t->paused = 0;
	sp_agent_leave(&mark);
	return 0;
}

/* ---- what else leads in here ---- */

/* Set this thread up, so that it has an identity for its name; and carry out
 * orders that wait. */
static void pass_through(const struct sp_call_frame *from)
{
	volatile uint32_t mark;

	if (sp_agent_enter(&mark, from))
		sp_agent_leave(&mark);
}

void sp_agent_note_name(unsigned long thread, const char *name)
{
	struct sp_thread *t = &sp_thread;
	int saved_errno = errno;

	pass_through(SP_FRAME_HERE);
	sp_slots_set_name(thread, name);
	if (thread == (unsigned long)pthread_self() && t->recorded)
		t->recorded = SP_THREAD_RENAMED;
	errno = saved_errno;
}

void sp_agent_look(const struct sp_call_frame *from)
{
	int saved_errno = errno;

	pass_through(from);
	errno = saved_errno;
}
