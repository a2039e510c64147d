/* SPDX-License-Identifier: MIT */
/* A library whose constructor runs before the profiler's, and whose destructor
 * runs after it: see lifetimes.c. */
#include "truth.h"

#include "allocate.h"

void in_early_main(void);

static int n;

static NOINLINE void in_early_constructor(void)
{
	allocate(21, n);
	STAY();
}

static NOINLINE void in_late_destructor(void)
{
	allocate(22, n);
	STAY();
}

NOINLINE void in_early_main(void)
{
	allocate(23, n);
	STAY();
}

static void __attribute__((constructor)) construct(int argc, char **argv)
{
	n = argc > 1 ? atoi(argv[1]) : 0;
	in_early_constructor();
	STAY();
}

static void __attribute__((destructor)) destruct(void)
{
	in_late_destructor();
	STAY();
}
