/* SPDX-License-Identifier: MIT */
/*
 * I1  `last` only grows.  Each allocation takes its time from it in one step,
 * so that a thread which knows of that allocation finds at least this time. I2
 * A free has a time after `last` and before that of the next allocation, which
 * is at least 2 ns later.
 */
#include "agent/event/stamp.h"

#include <stdatomic.h>

#include "agent/file/writer.h"
#include "agent/sys/clock.h"

#include "agent/sys/poison.h"

#define STEP_NS 2u

static struct {
	_Alignas(64) _Atomic uint64_t last_ns; /* as sp_clock_now_ns() */
	_Atomic uint64_t ticks;                /* when the clock was read */
} now;

static void read_clock(uint64_t ticks)
{
	const uint64_t time_ns = sp_clock_now_ns();
	uint64_t last =
		atomic_load_explicit(&now.last_ns, memory_order_relaxed);

	atomic_store_explicit(&now.ticks, ticks, memory_order_relaxed);
	while (last < time_ns &&
	       !atomic_compare_exchange_weak(&now.last_ns, &last, time_ns))
		;
}

/* Only how old a time may be depends on the processor's counter. */
static inline void catch_up_clock(void)
{
	const uint64_t ticks = sp_clock_ticks();

	if (ticks - atomic_load_explicit(&now.ticks, memory_order_relaxed) >
	    sp_arch_microsecond())
		read_clock(ticks);
}

static uint64_t next_time(void)
{
	return sp_writer_time_of(STEP_NS +
				 atomic_fetch_add(&now.last_ns, STEP_NS));
}

uint64_t sp_stamp_allocation(void)
{
	catch_up_clock();
	return next_time();
}

uint64_t sp_stamp_free(void)
{
	catch_up_clock();
	return sp_writer_time_of(1 + atomic_load(&now.last_ns));
}

uint64_t sp_stamp_now(void)
{
	read_clock(sp_clock_ticks());
	return next_time();
}
