/* SPDX-License-Identifier: MIT */
/*
 * The main thread computes all the time, with all that it has in registers,
 * vector registers too, and looks whether that is right.  Another one answers a
 * line on standard input, once the main thread has been right again, with
 * "same 0 0".  "end" ends it, with "ok".
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "truth.h"

#define N     12
#define STEPS 200000

/* As wide as vectors are everywhere. */
typedef double vector __attribute__((vector_size(16)));

static atomic_int ended, rounds;

static void __attribute__((noinline)) compute(vector ret[N])
{
	vector v[N];

#pragma GCC unroll 12
	for (int i = 0; i < N; i++)
		v[i] = (vector){1.0 + i, 2.0 + i};
	for (int step = 1; step < STEPS; step++) {
		const vector by = {1.0 / step, 1.0 / (step + 1.0)};

#pragma GCC unroll 12
		for (int i = 0; i < N; i++)
			v[i] += by;
	}
	memcpy(ret, v, sizeof(v));
}

static void *answer(void *arg)
{
	const struct timespec nap = {0, 1000000};
	const struct truth none = {0, 0};
	char line[64];

	truth_print("going", &none);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		const int before = atomic_load(&rounds);

		/* One may have been under way. */
		while (atomic_load(&rounds) < before + 2)
			nanosleep(&nap, NULL);
		truth_print("same", &none);
	}
	atomic_store(&ended, 1);
	return arg;
}

int main(void)
{
	vector right[N], now[N];
	pthread_t t;

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	compute(right);
	EXPECT(pthread_create(&t, NULL, answer, NULL) == 0);
	while (!atomic_load(&ended)) {
		compute(now);
		EXPECT(memcmp(now, right, sizeof(right)) == 0);
		atomic_fetch_add(&rounds, 1);
	}
	pthread_join(t, NULL);
	puts("ok");
	return 0;
}
