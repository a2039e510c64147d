/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/thread/thread.h"

/*
 * When a thread checks in, which is to publish its totals and to look for
 * orders: after so many bytes.  It begins with few, so that little is missing
 * from a process that is killed early.  While check-ins follow one another
 * fast the step doubles, up to what the thread has published and to
 * SP_CHECKIN_BYTES_MAX, so that a busy thread pays little; when one took
 * long it is short again, so that a thread with little to do checks in, too.
 */
#define SP_CHECKIN_BYTES_MIN 4096u
#define SP_CHECKIN_BYTES_MAX (1ull << 20)
#define SP_CHECKIN_FAST_NS   10000000u

/* Bytes between the last check-in and the next. */
static inline uint64_t sp_checkin_step(const struct sp_thread *t)
{
	return (uint64_t)SP_CHECKIN_BYTES_MIN << t->step;
}

/* Bytes until the next one. */
static inline uint64_t sp_checkin_left(const struct sp_thread *t)
{
	const uint64_t step = sp_checkin_step(t);
	const uint64_t since = t->bytes - t->published_bytes;

	return since < step ? step - since : 0;
}

/* The thread is new; it has its slot. */
void sp_checkin_begin(struct sp_thread *t);

/* A check-in is due: choose the step after it.  To be called before the thread
 * publishes. */
void sp_checkin_choose(struct sp_thread *t, uint64_t now_ns);
