/* SPDX-License-Identifier: MIT */
#pragma once

#include "agent/process/process.h"
#include "agent/thread/thread.h"

/*
 * What is asked of the process from outside: by the control block of its file
 * (docs/format.md), or by a signal.  Any thread that has an event looks, and
 * the first to see an order carries it out.
 */

/* Look, and carry out.  t is suspended.  Context: sampled. */
void sp_remote_poll(struct sp_thread *t);

/* The calling thread has left the orders that it was carrying out: one of them
 * may be lost. */
void sp_remote_give_left(void);

/* In a forked child: its file has no orders yet. */
void sp_remote_reset(void);

/* Let SAMPLEPROF_SIGNAL, if there is one, switch sampling on and off; where the
 * program was started with something else for it, the diagnosis says so.
 * Context: cold. */
void sp_remote_listen(struct sp_process *process);
