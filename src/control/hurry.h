/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Raises the scheduling priority of a thread of another process for a moment,
 * because on a busy machine it would mostly wait for a processor.  Without the
 * right to that (CAP_SYS_NICE) nothing changes.
 *
 * Only a thread with SCHED_OTHER and niceness 0 is changed, and it has
 * SCHED_RESET_ON_FORK for that time: then a child or thread that it makes
 * meanwhile has what it would have had, whatever the thread is made to call.
 *
 * The struct may lie in memory that two processes share: if one is killed, the
 * other one restores the priority by sp_hurry_end.
 */
struct sp_hurry {
	pid_t tid;       /* 0: none */
	bool is_first;   /* it has the policy SCHED_RR */
	bool is_changed; /* its niceness, and maybe its policy, are ours */
};

/* What the thread itself has to set, in this order, to restore its priority;
 * the last one fails, and changes nothing that matters, without the right. */
#define SP_HURRY_CALM   0x40000000 /* SCHED_OTHER | SCHED_RESET_ON_FORK */
#define SP_HURRY_NICE   0
#define SP_HURRY_POLICY 0 /* SCHED_OTHER */

/* Remember the thread; its priority is not changed yet.  False: it cannot be
 * changed, or is left alone. */
bool sp_hurry_begin(struct sp_hurry *h, pid_t tid);

/*
 * Set niceness -20 and the policy SCHED_RR.  The policy lasts until
 * sp_hurry_calm, the niceness until sp_hurry_pause or sp_hurry_end.  The code
 * and the signal frames of a remote call undo both as well, in case that both
 * of our processes are killed.
 */
void sp_hurry_first(struct sp_hurry *h);

/* Restore the policy, but keep the niceness. */
void sp_hurry_calm(struct sp_hurry *h);

/* Restore policy and niceness, until the next sp_hurry_first. */
void sp_hurry_pause(struct sp_hurry *h);

/* Restore policy and niceness, and forget the thread. */
void sp_hurry_end(struct sp_hurry *h);
