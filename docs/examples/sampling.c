/* SPDX-License-Identifier: MIT */
/* Sample one part of a program only, and that part closely. */
/* In the checkout: cc -Iinclude -o sampling docs/examples/sampling.c */
#include <sampleprof/sampleprof.h>
#include <stdlib.h>

static void allocate(int n)
{
	while (n--) {
		void *volatile block = malloc(100);

		free(block);
	}
}

int main(void)
{
	sampleprof_stop();
	allocate(10000);
	sampleprof_set_period(4096);
	sampleprof_start();
	allocate(10000);
	sampleprof_stop();
	return 0;
}
