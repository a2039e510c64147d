/* SPDX-License-Identifier: MIT */
#include "agent/sys/tid.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "agent/sys/linkmap.h"

#include "agent/sys/poison.h"

static int (*cpu_clock)(pthread_t, clockid_t *);

void sp_tid_find(void)
{
	void *address = sp_linkmap_libc("pthread_getcpuclockid");

	memcpy(&cpu_clock, &address, sizeof(address));
}

uint64_t sp_tid_own(void)
{
	return sp_tid_of((unsigned long)pthread_self());
}

/* The number of its processor clock has it, by the kernel's rule. */
uint64_t sp_tid_of(unsigned long pthread)
{
	clockid_t clock;

	if (!cpu_clock || cpu_clock((pthread_t)pthread, &clock))
		return 0;
	return (uint64_t) ~(clock >> 3);
}
