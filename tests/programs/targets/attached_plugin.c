/* SPDX-License-Identifier: MIT */
/* A library that allocates when it is loaded, when it is called, and in
 * between; pointers to the allocator among its data. */
#include <stdlib.h>
#include <string.h>

char *attached_make(int n);

static void *(*const allocate)(size_t) = malloc;
static char *held;

static void __attribute__((constructor)) begin(void)
{
	held = strdup("made");
}

static void __attribute__((destructor)) end(void)
{
	free(held);
}

char *attached_make(int n)
{
	char *p = n & 1 ? allocate(1000) : malloc(1000);

	return p && held ? strcpy(p, held) : NULL;
}
