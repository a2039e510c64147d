/* SPDX-License-Identifier: MIT */
/* The signal that ends a command is seen by all that ask, however often. */
#include <signal.h>
#include <unistd.h>

#include "control/ending.h"
#include "support/test.h"

static void check_one(int number)
{
	sigset_t signals;

	assert_false(sp_ending_has_come());
	assert_false(sp_ending_wait(0));
	kill(getpid(), number);
	for (int i = 0; i < 3; i++) {
		assert_true(sp_ending_has_come());
		assert_true(sp_ending_wait(0));
	}
	sigemptyset(&signals);
	sigaddset(&signals, number);
	sigwait(&signals, &number);
}

TEST(stays)
{
	sp_ending_block();
	check_one(SIGTERM);
	check_one(SIGINT);
}

TEST_MAIN(NULL, NULL)
