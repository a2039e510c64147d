/* SPDX-License-Identifier: MIT */
/* Compilers keep frame pointers there, in all functions that call. */
#include "agent/unwind/flow.h"

#include "agent/sys/poison.h"

void sp_flow_onwards(struct sp_flow *flow, struct sp_slice code, uintptr_t at)
{
	(void)code;
	(void)at;
	flow->n = 0;
	flow->is_end = false;
}

bool sp_flow_from_start(struct sp_flow *flow, struct sp_slice code,
			uintptr_t start, uintptr_t at, bool is_return,
			struct sp_cfi_rule *ret)
{
	(void)flow;
	(void)code;
	(void)start;
	(void)at;
	(void)is_return;
	(void)ret;
	return false;
}

void sp_flow_leaves(struct sp_flow *flow, struct sp_slice code, uintptr_t start)
{
	(void)code;
	(void)start;
	flow->n_slots = 0;
}

uintptr_t sp_flow_called(uintptr_t pc, uintptr_t low, uintptr_t *slot)
{
	(void)pc;
	(void)low;
	*slot = 0;
	return 0;
}

uintptr_t sp_flow_jumped(uintptr_t at, uintptr_t end)
{
	(void)at;
	(void)end;
	return 0;
}
