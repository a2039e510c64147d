/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "agent/sys/sys.h"

/* The memory that *slot points to.  The first thread that needs it maps it.  It
 * is zero, and zero again in a forked child (sp_sys_map_wiped).  NULL: no
 * memory. */
static inline void *sp_map_once(void *_Atomic *slot, size_t bytes)
{
	void *there = atomic_load(slot), *fresh;

	if (there)
		return there;
	fresh = sp_sys_map_wiped(bytes);
	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(slot, &there, fresh)) {
		sp_sys_note_wiped(fresh, bytes);
		return fresh;
	}
	sp_sys_unmap(fresh, bytes);
	return there;
}
