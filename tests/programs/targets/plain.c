/* SPDX-License-Identifier: MIT */
/*
 * plain [OBJECTS [EXIT-CODE]]: allocates OBJECTS objects of 1000 bytes, says
 * hello, ends.  Without objects it allocates nothing at all.
 */
#include "truth.h"

static void *volatile sink;

static NOINLINE void allocate(void)
{
	sink = malloc(1000);
	free(sink);
	STAY();
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < n; i++)
		allocate();
	EXPECT(write(STDOUT_FILENO, "hello\n", 6) == 6);
	return argc > 2 ? atoi(argv[2]) : 0;
}
