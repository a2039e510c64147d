/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "agent/event/process.h"
#include "format/look.h"

/*
 * Have somebody outside look at this process, who waits for that
 * (format/look.h), and put what is answered into the file.  The thread waits
 * meanwhile, 10 s at most, near a peak 2 s, and no signal handler runs on it.
 */

/* Whoever has a socket of that name.  0; EBUSY: another thread is being looked
 * at; the errno of the kernel, ECONNREFUSED where nobody waits; EPERM: the
 * program filters its system calls.  Context: sampled, in a thread that is in
 * no allocator. */
int sp_look(const char *name, unsigned int name_bytes);

/* `sampleprof run`, if SAMPLEPROF_LEDGER wants that: resident memory has grown
 * by a twentieth since it last looked.  After a few times in vain no more.
 * Context: as above. */
void sp_look_at_peak(const struct sp_process *process, uint64_t rss_bytes);

/*
 * Likewise: the process ends, unless it `goes_on`, and nothing is done.  Once.
 * `is_at_once`: without asking the allocator, and perhaps in a child of vfork,
 * at which nobody looks; so it is in a signal handler.  Context: any, if it is;
 * else as above.
 */
void sp_look_at_end(const struct sp_process *process, bool goes_on,
		    bool is_at_once);

/* In a forked child, and where a profile ends. */
void sp_look_reset(void);
