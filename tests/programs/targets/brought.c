/* SPDX-License-Identifier: MIT */
/*
 * An allocator of its own that maps memory and has messages of jemalloc, beside
 * the C library's.  With an argument it waits for the end of standard input.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "truth.h"

#define ARENA_BYTES ((size_t)4 << 20)

__attribute__((noinline)) void *own_je_malloc(size_t n);
__attribute__((noinline)) void own_je_free(void *p);

static char *arena, *next;

void *own_je_malloc(size_t n)
{
	void *p;

	if (!arena) {
		arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		next = arena;
	}
	if (arena == MAP_FAILED || n > (size_t)(arena + ARENA_BYTES - next)) {
		fputs("<jemalloc>: Error in malloc(): out of memory\n", stderr);
		abort();
	}
	p = next;
	next += (n + 15) / 16 * 16;
	return p;
}

void own_je_free(void *p)
{
	memset(p, 0, 1);
}

int main(int argc, char **argv)
{
	(void)argv;
	for (size_t i = 0; i < 100; i++)
		own_je_free(own_je_malloc(1000));
	free(malloc(1000));
	if (argc > 1) {
		puts("ready");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	return 0;
}
