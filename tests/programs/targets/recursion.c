/* SPDX-License-Identifier: MIT */
/*
 * recursion THREADS BITS TIMES: each of 2^BITS distinct call stacks of `left`
 * and `right` allocates TIMES objects, whose size tells the stack.
 */
#include <pthread.h>

#include "truth.h"

static unsigned int bits, times;

static void descend(unsigned int path, unsigned int left_over);

static NOINLINE void leaf(unsigned int path)
{
	for (unsigned int i = 0; i < times; i++) {
		void *volatile object = malloc(100 + path);

		free(object);
	}
	STAY();
}

static NOINLINE void left(unsigned int path, unsigned int left_over)
{
	descend(path, left_over);
	STAY();
}

static NOINLINE void right(unsigned int path, unsigned int left_over)
{
	descend(path, left_over);
	STAY();
}

static NOINLINE void descend(unsigned int path, unsigned int left_over)
{
	if (!left_over)
		leaf(path);
	else if (path >> (left_over - 1) & 1)
		right(path, left_over - 1);
	else
		left(path, left_over - 1);
	STAY();
}

static NOINLINE void *walk(void *arg)
{
	(void)arg;
	for (unsigned int path = 0; path < 1u << bits; path++)
		descend(path, bits);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;

	bits = argc > 2 ? (unsigned int)atoi(argv[2]) : 6;
	times = argc > 3 ? (unsigned int)atoi(argv[3]) : 10;
	if (n == 1) {
		walk(NULL);
		return 0;
	}
	for (unsigned int i = 0; i < n; i++)
		EXPECT(!pthread_create(&threads[i], NULL, walk, NULL));
	for (unsigned int i = 0; i < n; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	return 0;
}
