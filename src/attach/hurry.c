/* SPDX-License-Identifier: MIT */
#include "attach/hurry.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

#define NICE_FIRST (-20)

static bool set_policy(pid_t tid, int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(tid, policy, &param) == 0;
}

bool sp_hurry_begin(struct sp_hurry *h, pid_t tid)
{
	errno = 0;
	h->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	if (errno || sched_getscheduler(tid) != SCHED_OTHER)
		return false;
	h->tid = tid;
	return true;
}

/* The policy can fail where the niceness does not: a control group may have no
 * real-time share. */
void sp_hurry_first(struct sp_hurry *h)
{
	if (h->is_first || !h->tid)
		return;
	/* Noted before the changes: if we are killed between them, the other
	 * process has to undo them. */
	h->is_first = h->is_changed = true;
	setpriority(PRIO_PROCESS, (id_t)h->tid, NICE_FIRST);
	if (!set_policy(h->tid, SCHED_RR, 1))
		h->is_first = false;
}

void sp_hurry_calm(struct sp_hurry *h)
{
	if (h->is_first)
		set_policy(h->tid, SCHED_OTHER, 0);
	h->is_first = false;
}

void sp_hurry_pause(struct sp_hurry *h)
{
	sp_hurry_calm(h);
	if (h->is_changed)
		setpriority(PRIO_PROCESS, (id_t)h->tid, h->nice);
	h->is_changed = false;
}

void sp_hurry_end(struct sp_hurry *h)
{
	sp_hurry_pause(h);
	h->tid = 0;
}
