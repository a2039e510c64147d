/* SPDX-License-Identifier: MIT */
/*
 * Allocates in three threads, and does to itself what is hard to attach to: it
 * executes itself, from any thread, has children by fork and vfork, and ends.
 * What it does is drawn, MS milliseconds apart on average.  A line on its
 * standard input: it prints "ok" and ends.
 *
 *   program_attached_restless MS SEED
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3

static unsigned int seed;
static unsigned int pause_ms;
static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;

static unsigned int draw(unsigned int n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

static void allocate(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char *object = malloc(100 + i);

		memset(object, (int)i, 100 + i);
		free(object);
	}
}

static void await_input(int ms)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	if (poll(&in, 1, ms) > 0) {
		puts("ok");
		fflush(stdout);
		_exit(0);
	}
}

static _Noreturn void execute_itself(void)
{
	char ms[20], next[20];

	snprintf(ms, sizeof(ms), "%u", pause_ms);
	snprintf(next, sizeof(next), "%u", seed);
	execl("/proc/self/exe", "program_attached_restless", ms, next,
	      (char *)NULL);
	_exit(3);
}

static void have_child(pid_t child)
{
	if (child == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(4);
	}
	waitpid(child, NULL, 0);
}

static void do_something(void)
{
	switch (draw(8)) {
	case 0:
	case 1:
	case 2:
		execute_itself();
	case 3:
		_exit(draw(2) ? 0 : 5);
	case 4:
	case 5:
		have_child(fork());
		return;
	default:
		have_child(vfork());
	}
}

static void *work(void *arg)
{
	const struct timespec nap = {0, 100000};

	for (;;) {
		allocate(200);
		if (arg)
			await_input((int)(1 + draw(2 * pause_ms)));
		else
			nanosleep(&nap, NULL);
		if (!arg && draw(500))
			continue;
		pthread_mutex_lock(&drawing);
		do_something();
		pthread_mutex_unlock(&drawing);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 2;
	pause_ms = (unsigned int)atoi(argv[1]);
	seed = (unsigned int)strtoul(argv[2], NULL, 10);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, work, NULL) != 0)
			return 2;
	work(&thread);
	return 0;
}
