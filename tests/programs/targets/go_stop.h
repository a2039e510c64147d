/* SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "truth.h"

/* Threads that work between "go" and "stop", and what they have allocated in
 * between. */

static atomic_int goes, still, ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct truth all;

static void nap(long us)
{
	const struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

/* A thread, when `goes` is false: until it is true, or the thread is to end. */
static void stand_still(struct truth *mine, const atomic_int *ends)
{
	pthread_mutex_lock(&lock);
	truth_add_all(&all, mine);
	pthread_mutex_unlock(&lock);
	*mine = (struct truth){0, 0};
	atomic_fetch_add(&still, 1);
	while (!atomic_load(&goes) && !atomic_load(ends))
		nap(200);
	atomic_fetch_sub(&still, 1);
}

static void go_all(void)
{
	atomic_store(&goes, 1);
	while (atomic_load(&still))
		nap(100);
	truth_print("going", &all);
}

/* With what n threads have allocated since the last time. */
static void stop_all(int n)
{
	atomic_store(&goes, 0);
	while (atomic_load(&still) < n)
		nap(100);
	truth_print("totals", &all);
	all = (struct truth){0, 0};
}
