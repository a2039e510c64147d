/* SPDX-License-Identifier: MIT */
/* A library whose constructor runs before the profiler's: it allocates around
 * each fork, and in a thread and a child before the profiler has started. */
#include <pthread.h>
#include <sys/wait.h>

#include "truth.h"

#include "allocate.h"

static void allocate_at_fork(void)
{
	allocate(60, 5);
}

static void *run(void *arg)
{
	allocate(70, 100);
	return arg;
}

static void __attribute__((constructor)) construct(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	EXPECT(!pthread_atfork(allocate_at_fork, allocate_at_fork,
			       allocate_at_fork));
	EXPECT(!pthread_create(&thread, NULL, run, NULL));
	pid = fork();
	EXPECT(pid >= 0);
	if (pid == 0) {
		run(NULL);
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(!pthread_join(thread, NULL));
}
