/* SPDX-License-Identifier: MIT */
#include "agent/process/checkin.h"

#include "agent/file/slots.h"

#include "agent/sys/poison.h"

void sp_checkin_begin(struct sp_thread *t)
{
	t->step = 0;
	sp_slots_set_step(t->slot, sp_checkin_step(t));
}

void sp_checkin_choose(struct sp_thread *t, uint64_t now_ns)
{
	uint64_t next = 2 * sp_checkin_step(t);

	if (sp_slots_check_in(t->slot, now_ns) > SP_CHECKIN_FAST_NS)
		t->step = 0;
	else if (next <= t->bytes && next <= SP_CHECKIN_BYTES_MAX)
		t->step++;
	sp_slots_set_step(t->slot, sp_checkin_step(t));
}
