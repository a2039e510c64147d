/* SPDX-License-Identifier: MIT */
#include "control/hurry.h"

#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE_FIRST (-20)

static_assert(SP_HURRY_CALM == (SCHED_OTHER | SCHED_RESET_ON_FORK) &&
		      SP_HURRY_POLICY == SCHED_OTHER,
	      "code and frames have these numbers");

static bool set_policy(pid_t tid, int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(tid, policy, &param) == 0;
}

/* Without it, SCHED_RESET_ON_FORK may be set, but not be taken back. */
static bool has_right(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3,
						  0};
	struct __user_cap_data_struct data[2];

	return syscall(SYS_capget, &header, data) == 0 &&
	       data[0].effective & 1u << CAP_SYS_NICE;
}

bool sp_hurry_begin(struct sp_hurry *h, pid_t tid)
{
	errno = 0;
	if (!has_right() ||
	    getpriority(PRIO_PROCESS, (id_t)tid) != SP_HURRY_NICE || errno ||
	    sched_getscheduler(tid) != SP_HURRY_POLICY)
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
	if (!set_policy(h->tid, SP_HURRY_CALM, 0)) {
		h->is_first = h->is_changed = false;
		return;
	}
	setpriority(PRIO_PROCESS, (id_t)h->tid, NICE_FIRST);
	if (!set_policy(h->tid, SCHED_RR | SCHED_RESET_ON_FORK, 1))
		h->is_first = false;
}

void sp_hurry_calm(struct sp_hurry *h)
{
	if (h->is_first)
		set_policy(h->tid, SP_HURRY_CALM, 0);
	h->is_first = false;
}

void sp_hurry_pause(struct sp_hurry *h)
{
	sp_hurry_calm(h);
	if (h->is_changed) {
		setpriority(PRIO_PROCESS, (id_t)h->tid, SP_HURRY_NICE);
		set_policy(h->tid, SP_HURRY_POLICY, 0);
	}
	h->is_changed = false;
}

void sp_hurry_end(struct sp_hurry *h)
{
	sp_hurry_pause(h);
	h->tid = 0;
}
