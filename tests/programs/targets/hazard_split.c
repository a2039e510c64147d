/* SPDX-License-Identifier: MIT */
/* Compiled with -fsplit-stack: a stack in pieces, which grows in functions
 * whose caller is in another piece. */
#include <stdio.h>
#include <stdlib.h>

static int __attribute__((noinline)) descend(int n)
{
	volatile char frame[2000];
	void *volatile p = malloc(100);
	int below;

	frame[n % 2000] = (char)n;
	free(p);
	below = n ? descend(n - 1) : 0;
	return below + frame[n % 2000];
}

int main(void)
{
	for (int i = 0; i < 20; i++)
		printf("%d\n", descend(200));
	return 0;
}
