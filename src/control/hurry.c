/* SPDX-License-Identifier: MIT */
#include "control/hurry.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

#define BEFORE_OTHERS (-20)

static bool set_policy(pid_t tid, int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(tid, policy, &param) == 0;
}

void sp_hurry_begin(struct sp_hurry *h, pid_t tid)
{
	errno = 0;
	h->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	if (errno)
		return;
	/* Before the change: whoever is left is to undo it. */
	h->tid = tid;
	if (setpriority(PRIO_PROCESS, (id_t)tid, BEFORE_OTHERS) != 0)
		h->tid = 0;
}

/* A control group may have no real time to give. */
void sp_hurry_first(struct sp_hurry *h)
{
	if (h->is_first || !h->tid || sched_getscheduler(h->tid) != SCHED_OTHER)
		return;
	h->is_first = true;
	if (!set_policy(h->tid, SCHED_RR, 1))
		h->is_first = false;
}

void sp_hurry_calm(struct sp_hurry *h)
{
	if (h->is_first)
		set_policy(h->tid, SCHED_OTHER, 0);
	h->is_first = false;
}

void sp_hurry_end(struct sp_hurry *h)
{
	sp_hurry_calm(h);
	if (h->tid)
		setpriority(PRIO_PROCESS, (id_t)h->tid, h->nice);
	h->tid = 0;
}
