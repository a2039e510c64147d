/* SPDX-License-Identifier: MIT */
/*
 * known main|threads N: allocations that the driver knows by heart.
 *
 * main: three functions allocate COUNT objects of SIZE bytes each, per round of
 * N: small 65536 x 48, medium 1024 x 5000, large 16 x 400000.
 * threads: N threads, one after the other, each allocate 16 x 64 bytes.
 */
#include <pthread.h>
#include <string.h>

#include "truth.h"

static void allocate(unsigned int count, size_t size)
{
	for (unsigned int i = 0; i < count; i++) {
		void *volatile object = malloc(size);

		free(object);
	}
}

static NOINLINE void small(void)
{
	allocate(65536, 48);
	STAY();
}

static NOINLINE void medium(void)
{
	allocate(1024, 5000);
	STAY();
}

static NOINLINE void large(void)
{
	allocate(16, 400000);
	STAY();
}

static NOINLINE void *short_thread(void *arg)
{
	(void)arg;
	allocate(16, 64);
	STAY();
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 1;

	for (int i = 0; i < n; i++) {
		pthread_t thread;

		if (strcmp(argv[1], "threads") == 0) {
			EXPECT(!pthread_create(&thread, NULL, short_thread,
					       NULL));
			EXPECT(!pthread_join(thread, NULL));
			continue;
		}
		small();
		medium();
		large();
	}
	return 0;
}
