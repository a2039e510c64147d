/* SPDX-License-Identifier: MIT */
/*
 * Work behind the destructor of a preloaded library: that of the library which
 * this is linked with (the same source with LATE_LIBRARY) runs later.
 * Usage: late MODE
 *   alone    the thread that ends the process allocates
 *   threads  others allocate all the time
 *   shared   a process in the same memory allocates (CLONE_VM)
 *   forked   a child allocates, and ends after this process
 *   sandbox  system calls are about to be filtered
 */
#ifdef LATE_LIBRARY
void (*late_work)(void);

static void __attribute__((destructor)) destruct(void)
{
	if (late_work)
		late_work();
}
#else
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In samples at a period of 1 these are several chunks of the file. */
#define OBJECTS 20000u
#define THREADS 4

extern void (*late_work)(void);

static _Atomic unsigned long made[THREADS];

static void allocate(unsigned int objects)
{
	for (unsigned int i = 0; i < objects; i++) {
		void *volatile p = malloc(100 + i % 7);

		free(p);
	}
}

static void allocate_much(void)
{
	allocate(OBJECTS);
}

static void *allocate_on(void *arg)
{
	_Atomic unsigned long *n = arg;

	for (;;) {
		allocate(1);
		atomic_fetch_add(n, 1);
	}
	return NULL;
}

/* Until the threads have made that many more, each of them its part. */
static void wait_for_threads(void)
{
	for (int i = 0; i < THREADS; i++) {
		const unsigned long until =
			atomic_load(&made[i]) + OBJECTS / THREADS;

		while (atomic_load(&made[i]) < until)
			sched_yield();
	}
}

static int allocate_in_clone(void *arg)
{
	(void)arg;
	allocate(OBJECTS);
	_exit(0);
}

static void run_clone(void)
{
	static char stack[1 << 18] __attribute__((aligned(16)));
	int status;
	pid_t pid = clone(allocate_in_clone, stack + sizeof(stack),
			  CLONE_VM | SIGCHLD, NULL);

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		_exit(3);
}

/* Its end of the pipe says that the parent has ended. */
static void fork_child(void)
{
	int ends[2];
	char byte;

	if (pipe(ends))
		_exit(3);
	if (fork())
		return;
	late_work = NULL;
	close(ends[1]);
	allocate(OBJECTS);
	if (read(ends[0], &byte, 1) != 0)
		_exit(3);
	allocate(OBJECTS);
	exit(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	allocate(100);
	if (strcmp(mode, "alone") == 0) {
		late_work = allocate_much;
	} else if (strcmp(mode, "shared") == 0) {
		late_work = run_clone;
	} else if (strcmp(mode, "forked") == 0) {
		fork_child();
	} else if (strcmp(mode, "sandbox") == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	} else {
		late_work = wait_for_threads;
		for (int i = 0; i < THREADS; i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, allocate_on,
					   &made[i]))
				return 3;
		}
		wait_for_threads();
	}
	return 0;
}
#endif
