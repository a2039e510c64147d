/* SPDX-License-Identifier: MIT */
/*
 * Allocations 3,000 bytes large from main, and 3,001 from a constructor.  The
 * functions in between are called by pointers and never return, so that only
 * tables say where their callers are.  With HOST: main calls that main in the
 * library that the argument names.
 */
#ifdef HOST
#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
	int (*run)(void) = library ? (int (*)(void))dlsym(library, "run") : 0;

	return run ? run() : 1;
}
#else
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ENTRY
#define ENTRY main
#endif
#define HERE __attribute__((noinline, noclone))

static void *volatile kept;
static volatile size_t n_bytes = 3000;
static jmp_buf back;

HERE static void jump(void)
{
	longjmp(back, 1);
}

static void (*volatile leave)(void) = jump;
static void (*volatile next)(char *);

HERE static void take(char *room)
{
	room[0] = 1;
	kept = malloc(n_bytes);
	free(kept);
	for (;;)
		leave();
}

HERE static void deeper(char *room)
{
	char own[200];

	memset(own, room[0], sizeof(own));
	next = take;
	for (;;)
		next(own);
}

HERE static void deep(int n)
{
	char own[400];

	memset(own, n, sizeof(own));
	next = deeper;
	for (;;)
		next(own);
}

HERE static void call_all(void)
{
	for (volatile int i = 0; i < 100; i++)
		if (!setjmp(back))
			deep(i);
}

__attribute__((constructor)) HERE static void before_main(void)
{
	n_bytes = 3001;
	call_all();
	n_bytes = 3000;
}

#ifdef __cplusplus
extern "C"
#endif
	int
	ENTRY(void)
{
	call_all();
	puts("done");
	return 0;
}
#endif
