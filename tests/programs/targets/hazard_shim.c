/* SPDX-License-Identifier: MIT */
/*
 * A preloaded library as others are: it puts itself before the clock and the
 * mutexes, and allocates under a lock of its own while it does so.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_flag busy = ATOMIC_FLAG_INIT;

static void allocate_under_lock(void)
{
	while (atomic_flag_test_and_set(&busy))
		;
	free(malloc(64));
	atomic_flag_clear(&busy);
}

/* A day ahead. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	long ret;

	allocate_under_lock();
	ret = syscall(SYS_clock_gettime, clock, t);
	t->tv_sec += 86400;
	return (int)ret;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	allocate_under_lock();
	while (pthread_mutex_trylock(m))
		;
	return 0;
}
