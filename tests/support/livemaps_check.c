/* SPDX-License-Identifier: MIT */
#include "support/livemaps_check.h"

_Thread_local void (*livemaps_check_step)(void);

static void atomic_step(void)
{
	if (livemaps_check_step)
		livemaps_check_step();
}

#include "support/atomic_steps.h"
#include "agent/file/mapqueue.c"

#include "agent/file/livemaps.c"

const void *livemaps_check_holder(void)
{
	return RAW_LOAD(&busy, memory_order_seq_cst);
}

bool livemaps_check_unwritten(struct sp_span *ret)
{
	return copy_unwritten(ret);
}

unsigned int livemaps_check_filling(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < atomic_load(&n_cells); i++) {
		const uint64_t s = atomic_load(state_of(i));

		n += s != FREE && !(s & TICKET);
	}
	return n;
}

unsigned int livemaps_check_used(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < atomic_load(&n_cells); i++)
		n += atomic_load(state_of(i)) != FREE;
	return n;
}
