/* SPDX-License-Identifier: MIT */
/*
 * left alarm|fault|nested TIMES: a signal handler leaves malloc and free by
 * siglongjmp so often in each thread, a thousand times a second, then the
 * threads go on without.  For an allocator that bears it.
 *
 *   alarm   from the stack of the thread
 *   fault   from a handler of SIGSEGV on an alternate stack, which is a
 *           variable of main: further out than what it interrupts
 *   nested  to further out than the frames of the loop, by far
 *
 * Prints how often it was left, bytes and objects that it has counted itself,
 * and by how many bytes that may be wrong.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define SIZE  64
#define AFTER 6000

static sigjmp_buf surface;
static volatile int armed;
static const char *mode;

static volatile unsigned long bytes, objects, jumps;

static void leave(int number)
{
	(void)number;
	if (armed)
		siglongjmp(surface, 1);
}

static void fault(int number)
{
	(void)number;
	if (armed)
		*(volatile int *)8 = 1;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = SA_ONSTACK | SA_NODEFER;
	if (sigaction(number, &action, NULL) != 0)
		abort();
}

/* Volatile: what a register holds is lost by the jump. */
static void __attribute__((noinline)) allocate(void)
{
	void *volatile p = malloc(SIZE);

	bytes += SIZE;
	objects++;
	free(p);
}

static void __attribute__((noinline)) sink(int depth)
{
	volatile char frame[200];

	frame[0] = (char)depth;
	if (depth > 0)
		sink(depth - 1);
	while (armed)
		allocate();
	frame[1] = frame[0];
}

static void __attribute__((noinline)) be_left(unsigned long times)
{
	struct itimerval often = {{0, 1000}, {0, 1000}};
	const struct itimerval never = {{0, 0}, {0, 0}};
	const unsigned long last = jumps + times;

	if (sigsetjmp(surface, 1))
		jumps++;
	else if (times > 0)
		setitimer(ITIMER_REAL, &often, NULL);
	armed = jumps < last;
	if (armed)
		sink(strcmp(mode, "nested") == 0 ? 40 : 0);
	setitimer(ITIMER_REAL, &never, NULL);
}

static void __attribute__((noinline)) go_on(void)
{
	for (int i = 0; i < AFTER; i++)
		allocate();
}

/* Alarms are for the thread that calls. */
static void let_alarms(int how)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	if (pthread_sigmask(how, &alarms, NULL) != 0)
		abort();
}

static void *live(void *arg)
{
	let_alarms(SIG_UNBLOCK);
	be_left(*(const unsigned long *)arg);
	go_on();
	return NULL;
}

int main(int argc, char **argv)
{
	char alternate[65536];
	const stack_t stack = {.ss_sp = alternate,
			       .ss_size = sizeof(alternate)};
	unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	pthread_t thread;

	mode = argc > 1 ? argv[1] : "alarm";
	if (strcmp(mode, "fault") == 0) {
		if (sigaltstack(&stack, NULL) != 0)
			return 2;
		handle(SIGALRM, fault);
		handle(SIGSEGV, leave);
	} else {
		handle(SIGALRM, leave);
	}
	live(&times);
	/* The stack for alternates is main's. */
	if (strcmp(mode, "fault") != 0) {
		let_alarms(SIG_BLOCK);
		if (pthread_create(&thread, NULL, live, &times) != 0)
			return 2;
		pthread_join(thread, NULL);
	}
	printf("%lu %lu %lu\n", jumps, bytes, objects);
	return 0;
}
