/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_UNWINDER_IMPORTS_H
#define SP_AGENT_UNWINDER_IMPORTS_H

#include <link.h>
#include <stdbool.h>

#include "agent/modules.h"

/*
 * What libunwind may call while it works for us: see the list at the top of
 * unwinder_imports.c.  Replaces its imports, in its own tables; false: they are
 * not as expected, and the library is not to be used.  Context: cold.
 */
bool sp_unwinder_imports_replace(const struct link_map *library,
				 const struct sp_module_entry *entry);

/* Before each use: the loader may have put an original back.  Context: sampled.
 */
void sp_unwinder_imports_keep(void);

/* It had to be left in the middle of something and must not be entered again.
 */
bool sp_unwinder_imports_broken(void);

/* In a forked child: locks that vanished threads held for us are gone; if any
 * was held, the library's state is unknown and it counts as broken. */
void sp_unwinder_imports_reset(void);

#endif
