/* SPDX-License-Identifier: MIT */
/*
 * signals OBJECTS SIGNALS: allocate in a loop, and in a signal handler that
 * interrupts it every 50 us, anywhere, until both numbers are reached.
 * For an allocator that bears this (bump.c).
 */
#include <signal.h>
#include <sys/time.h>

#include "truth.h"

static volatile sig_atomic_t handled;
static struct truth truth_of_handler;
static void *volatile sink;

static NOINLINE void in_handler(int signal_number)
{
	void *p = malloc(77);

	(void)signal_number;
	truth_add(&truth_of_handler, p, 77);
	free(p);
	handled = handled + 1;
}

static NOINLINE void in_loop(struct truth *truth)
{
	sink = malloc(33);
	truth_add(truth, sink, 33);
	free(sink);
	STAY();
}

int main(int argc, char **argv)
{
	struct itimerval often = {{0, 50}, {0, 50}};
	struct truth truth = {0, 0};
	uint64_t objects = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	int signals = argc > 2 ? atoi(argv[2]) : 0;

	signal(SIGALRM, in_handler);
	if (signals)
		setitimer(ITIMER_REAL, &often, NULL);
	while (truth.objects < objects || handled < signals)
		in_loop(&truth);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	truth_print("in_loop", &truth);
	truth_print("in_handler", &truth_of_handler);
	return 0;
}
