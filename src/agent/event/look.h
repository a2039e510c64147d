/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "agent/process/process.h"
#include "format/look.h"

/*
 * Ask another process, which waits for that (format/look.h), to look at this
 * one, and put its answer into the file.  The thread waits for the answer, 10 s
 * at most, near a peak 2 s; no signal handler runs on it meanwhile.
 */

/* The process that listens on the socket of that name looks.  0; EBUSY: another
 * thread is waiting for a look; EPERM: the program filters its system calls; or
 * the errno of the kernel, ECONNREFUSED if no process listens.  Context:
 * sampled, in a thread that is in no allocator. */
int sp_look(const char *name, unsigned int name_bytes);

/* `sampleprof run` looks, if SAMPLEPROF_LEDGER asks for peaks: resident memory
 * has grown by a twentieth since the last look.  After a few failures it is not
 * asked again.  Context: as above. */
void sp_look_at_peak(const struct sp_process *process, uint64_t rss_bytes);

/*
 * `sampleprof run` looks because the process ends; if it `goes_on`, nothing is
 * done.  Works once.  `is_at_once`: the allocator is not asked (this may be a
 * signal handler), and a child of vfork is not looked at.  Context: any if
 * `is_at_once`; else as above.
 */
void sp_look_at_end(const struct sp_process *process, bool goes_on,
		    bool is_at_once);

/* `sampleprof run` opens the files that are mapped as code, because their
 * process ends or executes another program: they may be gone before it looks
 * the next time.  Works once.  Context: any. */
void sp_look_keep_files(const struct sp_process *process);

/* In a forked child, and where a profile ends. */
void sp_look_reset(void);
