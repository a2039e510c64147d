/* SPDX-License-Identifier: MIT */
/* hazard_start SCENARIO: what happens before main, and beside a shim. */
#include <pthread.h>
#include <time.h>

#include "hazard.h"

static void *resolved_with;

static int real_answer(void)
{
	return 42;
}

/* The loader asks while it relocates this program: no constructor has run. */
static int (*resolve_answer(void))(void)
{
	void *p = calloc(10, 10), *q = malloc(100);

	free(p);
	resolved_with = realloc(q, 200);
	return real_answer;
}

static int answer(void) __attribute__((ifunc("resolve_answer")));

static void do_indirect(char **arguments)
{
	(void)arguments;
	printf("answer %d\n", answer());
	free(resolved_with);
	hazard_work(100);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *tell_the_time(void *arg)
{
	struct timespec t;

	for (int i = 0; i < 200; i++) {
		EXPECT(!pthread_mutex_lock(&mutex));
		EXPECT(!clock_gettime(CLOCK_REALTIME, &t));
		hazard_work(1);
		EXPECT(!pthread_mutex_unlock(&mutex));
	}
	return arg;
}

static void do_clock(char **arguments)
{
	pthread_t threads[3];

	(void)arguments;
	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_create(&threads[i], NULL, tell_the_time, NULL));
	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	puts("told");
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{"indirect", do_indirect},
		{"clock", do_clock},
		{NULL, NULL},
	};

	(void)argc;
	return hazard_run(scenarios, argv);
}
