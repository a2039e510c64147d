/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_UNWINDER_IMPORTS_H
#define SP_AGENT_UNWINDER_IMPORTS_H

#include <link.h>
#include <stdbool.h>

#include "agent/modules.h"

/*
 * What libunwind may call while it works for us: see the list at the top of
 * unwinder_imports.c.  Replaces its imports, in its own tables.  Context: cold.
 */
void sp_unwinder_imports_replace(const struct link_map *library,
				 const struct sp_module_entry *entry);

/* It had to be left in the middle of something and must not be entered again.
 */
bool sp_unwinder_imports_broken(void);

/* In a forked child: locks that vanished threads held are gone; if one was
 * held, the library's state is unknown and it counts as broken. */
void sp_unwinder_imports_reset(void);

#endif
