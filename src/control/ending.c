/* SPDX-License-Identifier: MIT */
#include "control/ending.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static void fill_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
}

void sp_ending_block(void)
{
	sigset_t signals;

	fill_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

bool sp_ending_has_come(void)
{
	sigset_t held;

	return sigpending(&held) == 0 &&
	       (sigismember(&held, SIGINT) || sigismember(&held, SIGTERM));
}

bool sp_ending_wait(uint64_t wait_ns)
{
	const struct timespec wait = {
		.tv_sec = (time_t)(wait_ns / 1000000000u),
		.tv_nsec = (long)(wait_ns % 1000000000u),
	};
	sigset_t signals;
	int number;

	fill_signals(&signals);
	number = sigtimedwait(&signals, NULL, &wait);
	/* Whoever asks next is told the same. */
	return number > 0 && kill(getpid(), number) == 0;
}
