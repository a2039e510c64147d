/* SPDX-License-Identifier: MIT */
/*
 * Allocation rates that have little in common: a burst, silence, threads that
 * all begin at once, and little in the end.  Each part is a function of its
 * own, counted by itself.
 */
#include <pthread.h>
#include <time.h>

#include "truth.h"

#define THREADS 16

static NOINLINE void burst(struct truth *truth)
{
	for (int i = 0; i < 400000; i++) {
		void *volatile p = malloc(700);

		truth_add(truth, p, 700);
		free(p);
	}
	STAY();
}

static NOINLINE void storm(struct truth *truth)
{
	for (int i = 0; i < 20000; i++) {
		/* Now and then one that may always be sampled. */
		size_t n = i % 500 ? 16 + (size_t)i % 400 : 300000;
		void *volatile p = malloc(n);

		truth_add(truth, p, n);
		free(p);
	}
	STAY();
}

static NOINLINE void quiet(struct truth *truth)
{
	for (int i = 0; i < 3000; i++) {
		void *volatile p = malloc(3000);

		truth_add(truth, p, 3000);
		free(p);
	}
	STAY();
}

static void *run_storm(void *arg)
{
	storm(arg);
	return NULL;
}

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	while (nanosleep(&t, &t) != 0)
		;
}

int main(void)
{
	struct truth truth[3] = {{0}}, stormed[THREADS] = {{0}};
	pthread_t threads[THREADS];

	burst(&truth[0]);
	pause_ms(200);
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, run_storm,
				      &stormed[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		EXPECT(pthread_join(threads[i], NULL) == 0);
		truth_add_all(&truth[1], &stormed[i]);
	}
	quiet(&truth[2]);
	pause_ms(100);
	quiet(&truth[2]);
	truth_print("burst", &truth[0]);
	truth_print("storm", &truth[1]);
	truth_print("quiet", &truth[2]);
	return 0;
}
