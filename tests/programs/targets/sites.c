/* SPDX-License-Identifier: MIT */
/*
 * Three functions that allocate and free, and that the driver knows by heart:
 * small 65536 x 48 bytes, medium 1024 x 5000, large 16 x 400000.
 */
#include "truth.h"

static NOINLINE void small(void)
{
	for (unsigned int i = 0; i < 65536; i++) {
		void *volatile object = malloc(48);

		free(object);
	}
}

static NOINLINE void medium(void)
{
	for (unsigned int i = 0; i < 1024; i++) {
		void *volatile object = malloc(5000);

		free(object);
	}
}

static NOINLINE void large(void)
{
	for (unsigned int i = 0; i < 16; i++) {
		void *volatile object = malloc(400000);

		free(object);
	}
}

int main(void)
{
	small();
	medium();
	large();
	return 0;
}
