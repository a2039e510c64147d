/* SPDX-License-Identifier: MIT */
#include "agent/sys/tid.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "agent/sys/linkmap.h"

#include "agent/sys/poison.h"

/* A mutex as glibc has it, whatever this is compiled with. */
struct glibc_mutex {
	int word;
	unsigned int count;
	int owner; /* thread id */
	unsigned int users;
	int kind;
	int rest[5];
};

static int (*lock_mutex)(struct glibc_mutex *);
static int (*cpu_clock)(pthread_t, clockid_t *);

void sp_tid_find(void)
{
	const struct link_map *libc = NULL;
	void *address = NULL;

	/* Another library's pthread_mutex_lock may hold a lock of its own
	 * around the allocation that brought us here. */
	if (sp_linkmap_global("gnu_get_libc_version", &libc))
		address = sp_linkmap_find(libc, "pthread_mutex_lock");
	memcpy(&lock_mutex, &address, sizeof(address));
	address = sp_linkmap_global("pthread_getcpuclockid", NULL);
	memcpy(&cpu_clock, &address, sizeof(address));
}

uint64_t sp_tid_own(void)
{
	/* A recursive mutex notes its owner; it is dropped as it is. */
	struct glibc_mutex m = {.kind = 1 /* PTHREAD_MUTEX_RECURSIVE */};

	if (!lock_mutex)
		return 0;
	lock_mutex(&m);
	return (uint64_t)m.owner;
}

/* The number of its processor clock has it, by the kernel's rule. */
uint64_t sp_tid_of(unsigned long pthread)
{
	clockid_t clock;

	if (!cpu_clock || cpu_clock((pthread_t)pthread, &clock))
		return 0;
	return (uint64_t) ~(clock >> 3);
}
