/* SPDX-License-Identifier: MIT */
/*
 * Objects of distinct sizes, allocated in one place and freed in any order,
 * some never.  Says of each when it was allocated and freed (before and after
 * the call, of the monotonic clock) and what was allocated in between.
 */
#include "live.h"

#define OBJECTS 800u
#define SLOTS   64u
#define FIRST   20000u

static struct {
	void *p;
	uint64_t born[2], freed[2], clock, age;
} objects[OBJECTS];

static uint64_t allocated, state = 20261121;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

static NOINLINE void age_begin(unsigned int i)
{
	objects[i].born[0] = now_ns();
	objects[i].p = malloc(FIRST + i);
	objects[i].born[1] = now_ns();
	allocated += FIRST + i;
	objects[i].clock = allocated;
}

static void age_end(unsigned int i)
{
	objects[i].age = allocated - objects[i].clock;
	objects[i].freed[0] = now_ns();
	free(objects[i].p);
	objects[i].freed[1] = now_ns();
}

static void print_object(unsigned int i)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%u %llu %llu %llu %llu %llu\n",
			 FIRST + i, (unsigned long long)objects[i].born[0],
			 (unsigned long long)objects[i].born[1],
			 (unsigned long long)objects[i].freed[0],
			 (unsigned long long)objects[i].freed[1],
			 (unsigned long long)objects[i].age);

	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		_exit(70);
}

int main(void)
{
	unsigned int slot[SLOTS] = {0}, n = 0; /* 0: empty, else number + 1 */

	while (n < OBJECTS) {
		unsigned int at = draw(SLOTS);

		if (slot[at] && draw(3)) {
			age_end(slot[at] - 1);
			slot[at] = 0;
		}
		if (!draw(16))
			pause_ms(1);
		age_begin(n++);
		if (!slot[at])
			slot[at] = n;
	}
	for (unsigned int i = 0; i < OBJECTS; i++)
		print_object(i);
	return 0;
}
