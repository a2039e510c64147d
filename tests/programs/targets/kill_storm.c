/* SPDX-License-Identifier: MIT */
/*
 * kill_storm THREADS [HOW OBJECTS]: that many threads allocate, reallocate and
 * free, each other's objects too, until they are killed; "ready" is printed
 * when all of them do.  HOW: the last thread ends the process in that way after
 * OBJECTS rounds.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "truth.h"

#define SHARED  512
#define LARGEST 70000 /* of an object, but for "oom": see test_kills.py */

static _Atomic(void *) shared[SHARED];
static _Atomic int running;
static const char *how;
static long rounds;
static int threads;

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Mostly small, some of several pages, a few large. */
static size_t size_of(uint64_t r)
{
	if (r % 64 == 0)
		return r / 64 % LARGEST;
	return r % 8 ? r / 64 % 300 : r / 64 % 5000;
}

static NOINLINE void one_round(uint64_t *state)
{
	uint64_t r = next(state);
	size_t size = size_of(next(state));
	_Atomic(void *) *place = &shared[next(state) % SHARED];
	void *p;

	if (r % 8 == 0)
		p = realloc(atomic_exchange(place, NULL), size + 1);
	else if (r % 8 == 1)
		p = calloc(1, size);
	else
		p = malloc(size);
	EXPECT(p);
	free(atomic_exchange(place, p));
}

static void eat_memory(void)
{
	for (;;) {
		char *p = malloc(100000);

		EXPECT(p);
		memset(p, 1, 100000);
	}
}

static void end(void)
{
	static char name[] = "true";
	char *const arguments[] = {name, NULL};
	char *const environment[] = {NULL};
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "quick_exit"))
		quick_exit(3);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		*(volatile int *)16 = 1;
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "exec"))
		execve("/bin/true", arguments, environment);
	if (!strcmp(how, "oom"))
		eat_memory();
	EXPECT(!"an end");
}

static void *storm(void *arg)
{
	uint64_t state = (uintptr_t)arg * 0x9e3779b97f4a7c15u;
	long left = rounds && (uintptr_t)arg + 1 == (uintptr_t)threads ? rounds
								       : -1;

	if (atomic_fetch_add(&running, 1) + 1 == threads)
		EXPECT(write(STDOUT_FILENO, "ready\n", 6) == 6);
	while (left--)
		one_round(&state);
	if (strcmp(how, "return"))
		end();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	threads = argc > 1 ? atoi(argv[1]) : 8;
	how = argc > 2 ? argv[2] : "";
	rounds = argc > 3 ? atol(argv[3]) : 0;
	for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
		EXPECT(!pthread_create(&thread, NULL, storm, (void *)i));
	EXPECT(!pthread_join(thread, NULL));
	return 3;
}
