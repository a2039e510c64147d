/* SPDX-License-Identifier: MIT */
/* Exact counts: how much does a piece of code allocate? */
/* In the checkout: cc -Iinclude -o totals docs/examples/totals.c */
#include <sampleprof/sampleprof.h>
#include <stdio.h>
#include <stdlib.h>

static void work(void)
{
	for (int i = 0; i < 1000; i++) {
		void *volatile block = malloc(100);

		free(block);
	}
}

int main(void)
{
	struct sampleprof_totals before, after, all;

	if (sampleprof_thread_totals(&before) < 0) {
		puts("not being profiled");
		work();
		return 0;
	}
	work();
	sampleprof_thread_totals(&after);
	sampleprof_process_totals(&all);
	printf("%llu bytes in %llu allocations\n",
	       (unsigned long long)(after.alloc_bytes - before.alloc_bytes),
	       (unsigned long long)(after.alloc_objects -
				    before.alloc_objects));
	return all.alloc_bytes >= after.alloc_bytes ? 0 : 1;
}
