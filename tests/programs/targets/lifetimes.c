/* SPDX-License-Identifier: MIT */
/*
 * lifetimes N: every function whose name begins with in_ allocates N objects
 * of its own size, before, around and after main.  The library that it is
 * linked with (early.c) starts before and ends after the profiler.
 */
#include <dlfcn.h>

#include "truth.h"

#include "allocate.h"

static int n;

void in_early_main(void);

static NOINLINE void in_constructor(void)
{
	allocate(11, n);
	STAY();
}

static NOINLINE void in_destructor(void)
{
	allocate(12, n);
	STAY();
}

static NOINLINE void in_atexit(void)
{
	allocate(13, n);
	STAY();
}

static NOINLINE void in_main(void)
{
	allocate(14, n);
	STAY();
}

static void __attribute__((constructor)) construct(int argc, char **argv)
{
	n = argc > 1 ? atoi(argv[1]) : 0;
	in_constructor();
	STAY();
}

static void __attribute__((destructor)) destruct(void)
{
	in_destructor();
	STAY();
}

int main(void)
{
	/* Looking up functions for ourselves left no error behind. */
	EXPECT(!dlerror());
	EXPECT(!atexit(in_atexit));
	in_main();
	in_early_main();
	return 0;
}
