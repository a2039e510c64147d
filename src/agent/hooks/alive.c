/* SPDX-License-Identifier: MIT */
#include "agent/hooks/alive.h"

#include "agent/sys/allocator.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/next.h"

#include "agent/sys/poison.h"

bool sp_alive_bytes(bool knows_glibc, uint64_t glibc_bytes, uint64_t *ret)
{
	struct sp_control_memory memory;

	if (sp_allocator_ask_other(&memory)) {
		*ret = memory.alive_bytes;
		return true;
	}
	if (!knows_glibc ||
	    !sp_linkmap_find(sp_next_provider_map(), "gnu_get_libc_version"))
		return false;
	*ret = glibc_bytes;
	return true;
}
