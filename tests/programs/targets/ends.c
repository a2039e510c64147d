/* SPDX-License-Identifier: MIT */
/*
 * ends HOW THREADS OBJECTS: THREADS threads allocate OBJECTS of 48 to 3000
 * bytes each and then stand still, while the process ends in the way HOW; or
 * they go on.  Says first what all of them have allocated: "counted BYTES
 * OBJECTS".  With 0 objects nothing else of the program differs.
 *
 * HOW: return, exit_in_thread, detached, going_on (return; one thread has
 * noted what it allocated by then, and does not stop), _exit, _Exit,
 * quick_exit, exec, execl, vfork (a child of vfork that executes, then _exit),
 * signal (_exit in a handler), kill.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include "truth.h"

static int objects;
static _Atomic uint64_t bytes_counted, objects_counted;
static pthread_barrier_t all_there;
static bool goes_on;

static void allocate_one(unsigned int i)
{
	size_t n = 48 + i * 37 % 2953;
	void *p = malloc(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
	atomic_fetch_add(&bytes_counted, n);
	atomic_fetch_add(&objects_counted, 1);
}

static void stand_still(void)
{
	for (;;)
		pause();
}

static void *run(void *arg)
{
	unsigned int i = 0;

	for (; i < (unsigned int)objects; i++)
		allocate_one(i + (unsigned int)(uintptr_t)arg);
	pthread_barrier_wait(&all_there);
	while (goes_on && objects)
		allocate_one(i++);
	stand_still();
	return NULL;
}

/* In one call, and without a buffer, which would be allocated. */
static void say(void)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "counted %lu %lu\n",
			 (unsigned long)bytes_counted,
			 (unsigned long)objects_counted);

	EXPECT(write(STDOUT_FILENO, text, (size_t)n) == n);
}

static void *end_from_thread(void *arg)
{
	(void)arg;
	say();
	exit(0);
}

static void in_handler(int signal)
{
	(void)signal;
	_exit(0);
}

static char name[] = "true";
static char *const no_arguments[] = {name, NULL};
static char *const no_environment[] = {NULL};

static void end_by_vfork(void)
{
	pid_t child = vfork();
	int status;

	if (!child) {
		execve("/nonexistent", no_arguments, no_environment);
		execve("/bin/true", no_arguments, no_environment);
		_exit(9);
	}
	EXPECT(waitpid(child, &status, 0) == child && !status);
	_exit(0);
}

static void start_threads(int n, bool is_detached)
{
	EXPECT(!pthread_barrier_init(&all_there, NULL, (unsigned int)n + 1));
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		EXPECT(!pthread_create(&thread, NULL, run,
				       (void *)(uintptr_t)i));
		if (is_detached)
			EXPECT(!pthread_detach(thread));
	}
	pthread_barrier_wait(&all_there);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	const char *how;

	EXPECT(argc == 4);
	how = argv[1];
	objects = atoi(argv[3]);
	goes_on = strcmp(how, "going_on") == 0;
	start_threads(atoi(argv[2]), strcmp(how, "detached") == 0);
	if (strcmp(how, "exit_in_thread") == 0) {
		EXPECT(!pthread_create(&thread, NULL, end_from_thread, NULL));
		stand_still();
	}
	say();
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "_Exit") == 0)
		_Exit(0);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(0);
	if (strcmp(how, "exec") == 0)
		execve("/bin/true", no_arguments, no_environment);
	if (strcmp(how, "execl") == 0)
		execl("/bin/sh", "sh", "-c", "exit $(($# - 4))", "sh", "1", "2",
		      "3", "4", (char *)NULL);
	if (strcmp(how, "vfork") == 0)
		end_by_vfork();
	if (strcmp(how, "signal") == 0) {
		signal(SIGUSR1, in_handler);
		raise(SIGUSR1);
	}
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	return 0;
}
