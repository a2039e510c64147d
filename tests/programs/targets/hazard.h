/* SPDX-License-Identifier: MIT */
#pragma once

#include <string.h>

#include "truth.h"

/* A scenario that takes so long has hung, however busy the machine is. */
#define HUNG_S 200

/*
 * Programs hazard_*.c SCENARIO [ARGUMENT...]: each scenario is a thing that has
 * broken profilers.  It checks itself: what it prints, and that it ends with 0,
 * is the same whether or not a profiler is there.
 */
struct scenario {
	const char *name;
	void (*run)(char **arguments);
};

static inline int hazard_run(const struct scenario *scenarios, char **argv)
{
	EXPECT(argv[1]);
	for (; scenarios->name; scenarios++)
		if (strcmp(scenarios->name, argv[1]) == 0) {
			scenarios->run(argv + 2);
			return 0;
		}
	EXPECT(!"a known scenario");
	return 70;
}

/* Some of everything: 4 allocations a round, of which one is freed by realloc,
 * and 3 frees. */
static NOINLINE __attribute__((unused)) void hazard_work(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		char *a = malloc(100), *b = calloc(3, 50);

		EXPECT(a && b);
		a[99] = 1;
		EXPECT(b[149] == 0);
		a = realloc(a, 3000);
		EXPECT(a && a[99] == 1);
		free(b);
		free(a);
		b = malloc(20000);
		EXPECT(b);
		b[19999] = 1;
		free(b);
	}
	STAY();
}
