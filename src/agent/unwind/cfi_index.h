/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "agent/unwind/modules.h"

/*
 * Functions by address, with their entries in .eh_frame, of an object that has
 * no such table itself (linked with --no-eh-frame-hdr).  Section headers are
 * not loaded, so .eh_frame is searched for, once, when a walk first comes to
 * the object.
 */

/* The entry of the last function that begins at or before `at`, or 0.
 * Context: sampled, with a lane. */
uintptr_t sp_cfi_index_find(struct sp_module_entry *e, uintptr_t at);

/* Give back what an entry of an object that is gone has.  Context: as I3 of
 * modules.c. */
void sp_cfi_index_free(struct sp_cfi_index *index);

/* From now on none is made.  Context: cold. */
void sp_cfi_index_forbid(void);
