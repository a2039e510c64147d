/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Raises the scheduling priority of a thread of another process for a moment,
 * because on a busy machine it would mostly wait for a processor.  Only root
 * may do that; without the right nothing changes.
 *
 * The struct may lie in memory that two processes share: if one is killed, the
 * other one restores the priority by sp_hurry_end.
 */
struct sp_hurry {
	pid_t tid;       /* 0: none */
	int nice;        /* its own niceness, to be restored */
	bool is_first;   /* it has the policy SCHED_RR */
	bool is_changed; /* its niceness, and maybe its policy, are ours */
};

/* Remember the thread and its niceness; its priority is not changed yet.
 * False: it has a policy other than SCHED_OTHER, which is left alone. */
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
