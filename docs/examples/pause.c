/* SPDX-License-Identifier: MIT */
/* A harness that is not in its own measurement. */
/* In the checkout: cc -Iinclude -o pause docs/examples/pause.c */
#include <sampleprof/sampleprof.h>
#include <stdio.h>
#include <stdlib.h>

static void *make_input(void)
{
	int paused = sampleprof_pause();
	void *input = malloc(1 << 20);

	if (paused == 0)
		sampleprof_resume();
	return input;
}

int main(void)
{
	struct sampleprof_totals before, after;
	void *volatile block;
	void *input;

	if (sampleprof_thread_totals(&before) < 0)
		return 0;
	input = make_input();
	block = malloc(100);
	sampleprof_thread_totals(&after);
	free(input);
	free(block);
	printf("%llu bytes\n",
	       (unsigned long long)(after.alloc_bytes - before.alloc_bytes));
	return after.alloc_bytes - before.alloc_bytes == 100 ? 0 : 1;
}
