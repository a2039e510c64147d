/* SPDX-License-Identifier: MIT */
/* A library that gives and takes objects, and allocates for itself: see
 * hazard_loader.c. */
#include <string.h>

#include "truth.h"

char *plugin_make(size_t n);
void plugin_drop(void *p);
int plugin_use(int times);

NOINLINE char *plugin_make(size_t n)
{
	char *p = malloc(n);

	STAY();
	return p;
}

void plugin_drop(void *p)
{
	free(p);
}

NOINLINE int plugin_use(int times)
{
	int good = 0;

	for (int i = 1; i <= times; i++) {
		char *p = calloc((size_t)i, 3);

		EXPECT(p && p[0] == 0);
		p = realloc(p, (size_t)i * 9);
		memset(p, 'x', (size_t)i * 9);
		good += p[i] == 'x';
		free(p);
	}
	return good;
}
