/* SPDX-License-Identifier: MIT */
/*
 * Threads that allocate all the time while sampling is started, stopped and
 * changed: control_storm WINDOWS SEED [outside].  Each thread holds its own
 * count against the library's; each window is a phase of its own.  "outside":
 * nothing is switched from in here, for WINDOWS milliseconds.
 */
#include <pthread.h>
#include <sampleprof/sampleprof.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8

static _Atomic int stopping;

static unsigned long long next(unsigned long long *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct worker {
	unsigned long long state;
	unsigned long long bytes, objects;
	int wrong;
};

/* Mostly small objects, now and then one that is always sampled. */
static size_t random_size(unsigned long long *state)
{
	unsigned long long r = next(state);

	return r % 1024 == 0 ? 200000 : 1 + (r >> 20) % 300;
}

static void allocate(struct worker *w)
{
	size_t n = random_size(&w->state);
	void *volatile p = malloc(n);

	free(p);
	w->bytes += n;
	w->objects++;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct sampleprof_totals before, after;

	if (sampleprof_thread_totals(&before) < 0)
		w->wrong = 1;
	while (!atomic_load_explicit(&stopping, memory_order_relaxed))
		allocate(w);
	sampleprof_thread_totals(&after);
	if (after.alloc_bytes - before.alloc_bytes != w->bytes ||
	    after.alloc_objects - before.alloc_objects != w->objects)
		w->wrong = 1;
	return NULL;
}

static void sleep_us(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&t, &t) != 0)
		;
}

static void one_window(unsigned long long *state, int i)
{
	char name[32];

	snprintf(name, sizeof(name), "w%d", i);
	sampleprof_mark(name);
	sleep_us((long)(next(state) % 3000));
	switch (next(state) % 4) {
	case 0:
		sampleprof_stop();
		break;
	case 1:
		sampleprof_set_period(4096ull << next(state) % 6);
		break;
	default:
		sampleprof_start();
	}
	sleep_us((long)(next(state) % 3000));
}

int main(int argc, char **argv)
{
	int windows = argc > 1 ? atoi(argv[1]) : 100;
	unsigned long long state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct sampleprof_totals all;
	int wrong = 0;

	state = state * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < THREADS; i++) {
		workers[i].state = next(&state);
		if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
			return 2;
	}
	if (argc > 3)
		sleep_us(windows * 1000l);
	for (int i = 0; argc <= 3 && i < windows; i++)
		one_window(&state, i);
	sampleprof_mark("last");
	atomic_store(&stopping, 1);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		wrong |= workers[i].wrong;
	}
	if (sampleprof_process_totals(&all) < 0)
		wrong = 1;
	printf("%llu %llu\n", (unsigned long long)all.alloc_bytes,
	       (unsigned long long)all.alloc_objects);
	return wrong;
}
