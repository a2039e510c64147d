/* SPDX-License-Identifier: MIT */
/*
 * I1  Only the holder of `busy` reads the totals and appends the record, so
 *     that numbers, times and totals of marks have the same order.
 * I2  A thread waits for it for a bounded time, and never if it is in the agent
 *     already: a signal handler cannot wait for the code that it interrupted.
 */
#include "agent/event/marks.h"

#include <errno.h>
#include <stdatomic.h>

#include "agent/event/recorder.h"
#include "agent/event/stamp.h"
#include "agent/file/rewrite_live.h"
#include "agent/file/ring.h"
#include "agent/file/slots.h"
#include "agent/file/slots_copy.h"
#include "agent/file/slots_total.h"
#include "agent/file/writer.h"
#include "agent/process/checkin.h"
#include "agent/process/period.h"
#include "agent/sys/diag.h"
#include "agent/thread/inside.h"

#include "agent/sys/poison.h"

#define SPINS_MAX 1000000u /* some tens of ms */
#define LATE_NS   100000000u

static sp_inside_lock busy;
/* Under `busy`. */
static uint64_t last_number;
static struct sp_marks_name phase;

struct sp_marks_name sp_marks_name(const char *text)
{
	struct sp_marks_name name = {.bytes = 0};

	/* cppcheck-suppress arrayIndexOutOfBoundsCond ; ends at 0 */
	while (name.bytes < sizeof(name.text) && text[name.bytes]) {
		/* cppcheck-suppress arrayIndexOutOfBoundsCond ; ends at 0 */
		name.text[name.bytes] = text[name.bytes];
		name.bytes++;
	}
	return name;
}

void sp_marks_reset(void)
{
	const struct sp_law *law = sp_period_law();

	sp_period_reset();
	sp_period_use(law, law->period_bytes);
	last_number = 0;
	phase.bytes = 0;
	atomic_store(&busy, NULL);
}

static int take_lease(void)
{
	unsigned int spins = 0;

	while (!sp_inside_hold(&busy)) {
		if (++spins == SPINS_MAX) {
			sp_diag_lose(SP_LOSS_MARK_DROPPED, 1);
			return -EBUSY;
		}
		sp_arch_pause();
	}
	return 0;
}

static void give_lease(void)
{
	sp_inside_give(&busy);
}

void sp_marks_give_left(void)
{
	sp_inside_give_left(&busy);
}

/* Context: `busy` is ours. */
static int record_mark(struct sp_thread *t, enum sp_mark_kind kind,
		       const struct sp_marks_name *name, uint64_t period_bytes)
{
	struct sp_slots_totals totals;
	struct sp_record_mark mark = {
		.number = ++last_number,
		.kind = kind,
		.time_ns = sp_stamp_now(),
		.period_bytes = period_bytes,
		.name = name->text,
		.name_bytes = name->bytes,
	};

	sp_slots_total(&totals, SP_CHECKIN_BYTES_MAX);
	mark.alloc_bytes = totals.bytes;
	mark.alloc_objects = totals.objects;
	mark.unsampled_bytes = totals.unsampled_bytes;
	mark.unsampled_objects = totals.unsampled_objects;
	mark.slack_bytes = totals.slack_bytes;
	if (sp_recorder_mark(t, &mark))
		return 0;
	sp_diag_lose(SP_LOSS_MARK_DROPPED, 1);
	return -EIO;
}

/* Context: `busy` is ours, and the last mark was made. */
static void record_asked(uint64_t asked_ns)
{
	const struct sp_record_asked asked = {last_number, asked_ns};
	const uint64_t now_ns = sp_writer_time();

	if (asked_ns < now_ns && now_ns - asked_ns >= LATE_NS)
		sp_recorder_asked(&asked);
}

int sp_marks_phase(struct sp_thread *t, const struct sp_marks_name *name,
		   uint64_t asked_ns, struct sp_marks_name *ret_before)
{
	int err = take_lease();

	if (err)
		return err;
	if (ret_before)
		*ret_before = phase;
	err = record_mark(t, SP_MARK_PHASE, name, sp_period_ceiling());
	if (!err) {
		record_asked(asked_ns);
		phase = *name;
	}
	give_lease();
	return err;
}

int sp_marks_snapshot(struct sp_thread *t, const struct sp_marks_name *name,
		      uint64_t asked_ns)
{
	int err = take_lease();

	if (err)
		return err;
	err = record_mark(t, SP_MARK_SNAPSHOT, name, sp_period_ceiling());
	if (!err)
		record_asked(asked_ns);
	give_lease();
	sp_slots_copy_all_size_counts();
	return err;
}

/* Context: `busy` is ours. */
static bool is_to_sample(enum sp_marks_switch to)
{
	const bool is_sampling = sp_period_law() != &sp_period_off;

	switch (to) {
	case SP_MARKS_KEEP:
		return is_sampling;
	case SP_MARKS_TOGGLE:
		return !is_sampling;
	default:
		return to == SP_MARKS_ON;
	}
}

int sp_marks_sampling(struct sp_thread *t, enum sp_marks_switch to,
		      uint64_t period_bytes)
{
	static const struct sp_marks_name none;
	const struct sp_law *law;
	int err = take_lease();

	if (err)
		return err;
	law = sp_period_find(is_to_sample(to), period_bytes);
	if (!law) {
		err = -ENOMEM;
	} else if (law != sp_period_law()) {
		err = record_mark(t, SP_MARK_SAMPLING, &none,
				  law->period_bytes);
		sp_period_use(law, law->period_bytes);
		sp_slots_set_sampling(0, law != &sp_period_off);
	}
	give_lease();
	return err;
}

/* Context: `busy` is ours. */
static __attribute__((noinline)) void record_near_limit(struct sp_thread *t)
{
	const struct sp_marks_name near = sp_marks_name(SP_MARK_NEAR_LIMIT);

	record_mark(t, SP_MARK_SNAPSHOT, &near, sp_period_ceiling());
}

void sp_marks_adapt(struct sp_thread *t)
{
	static const struct sp_marks_name none;
	const struct sp_law *law;
	uint64_t ceiling_bytes;
	bool is_alarm;

	/* Not waited for: there will be another event. */
	if (!sp_period_is_due() || !sp_inside_hold(&busy))
		return;
	law = sp_period_adapt();
	if (law) {
		ceiling_bytes = sp_period_ceiling();
		if (law->period_bytes > ceiling_bytes) {
			ceiling_bytes = law->period_bytes;
			record_mark(t, SP_MARK_SAMPLING, &none, ceiling_bytes);
		}
		sp_period_use(law, ceiling_bytes);
	}
	is_alarm = sp_period_take_alarm();
	if (is_alarm)
		record_near_limit(t);
	give_lease();
	if (is_alarm)
		sp_slots_copy_all_size_counts();
}

void sp_marks_complete(void)
{
	struct sp_slots_totals totals;
	struct sp_window window;
	uint32_t segment;

	if (!sp_rewrite_live_finished() || !sp_inside_hold(&busy))
		return;
	segment = sp_rewrite_live_finished();
	if (segment) {
		window = (struct sp_window){.time_ns = sp_writer_time(),
					    .mark = last_number};
		sp_slots_total(&totals, SP_CHECKIN_BYTES_MAX);
		window.alloc_bytes = totals.bytes;
		window.alloc_objects = totals.objects;
		window.unsampled_bytes = totals.unsampled_bytes;
		window.unsampled_objects = totals.unsampled_objects;
		window.slack_bytes = totals.slack_bytes;
		sp_ring_set_complete(segment, &window);
		if (sp_period_fit(sp_ring_rewritten_percent()))
			sp_recorder_crowded();
	}
	give_lease();
}

void sp_marks_end(struct sp_thread *t)
{
	static const struct sp_marks_name none;

	if ((!last_number && sp_period_law() != &sp_period_off) || take_lease())
		return;
	record_mark(t, SP_MARK_END, &none, sp_period_ceiling());
	give_lease();
}
