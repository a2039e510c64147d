/* SPDX-License-Identifier: MIT */
/* A moment with a name: sampleprof-report --at warm FILE shows what was alive
 * then. */
/* In the checkout: cc -Iinclude -o snapshot docs/examples/snapshot.c */
#include <sampleprof/sampleprof.h>
#include <stdlib.h>

#define BLOCKS 1000

int main(void)
{
	static void *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(1000);
	sampleprof_snapshot("warm");
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return 0;
}
