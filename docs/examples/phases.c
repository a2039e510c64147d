/* SPDX-License-Identifier: MIT */
/* Phases: exact totals for each, and samples that fall in one. */
/* In the checkout: cc -Iinclude -o phases docs/examples/phases.c */
#include <sampleprof/sampleprof.h>
#include <stdlib.h>

static void allocate(int n, size_t size)
{
	while (n--) {
		void *volatile block = malloc(size);

		free(block);
	}
}

static void query(void)
{
	/* Until the end of the block; then "serve" goes on. */
	SAMPLEPROF_PHASE("query");

	allocate(500, 200);
}

int main(void)
{
	sampleprof_mark("load");
	allocate(1000, 100);
	sampleprof_mark("serve");
	for (int i = 0; i < 3; i++) {
		allocate(10, 50);
		query();
	}
	return 0;
}
