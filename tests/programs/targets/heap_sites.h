/* SPDX-License-Identifier: MIT */
/* What program_pins and program_slabs begin and end with: objects of four call
 * sites, and threads that make and free others meanwhile. */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX 1000000u
#define PAGE        4096u
#define BUSY_BYTES  2000u /* also the sizes that the caches of threads have */

enum { PINNER, BULK, CACHE, CHURN, SITES };

static const char *const names[] = {"pinner", "bulk", "cache", "churn"};

static struct object {
	uintptr_t at; /* 0: freed */
	unsigned int site;
} objects[OBJECTS_MAX];
static unsigned int n_objects = 40000;
static uint32_t state = 12345;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

/* One call site each. */
#define SITE(name)                                                             \
	__attribute__((noinline)) void *name(size_t bytes);                    \
	void *name(size_t bytes)                                               \
	{                                                                      \
		void *p = malloc(bytes);                                       \
                                                                               \
		if (!p)                                                        \
			exit(71);                                              \
		memset(p, 1, bytes);                                           \
		return p;                                                      \
	}

SITE(pinner)
SITE(bulk)
SITE(cache)
SITE(churn)

static int compare_objects(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* ---- others meanwhile ---- */

#define BUSY_OBJECTS 20000u
#define BUSY_STEPS   500u /* between rests: profiles grow by samples */

static void *stay_busy(void *arg)
{
	static __thread void *mine[BUSY_OBJECTS];
	uint32_t x = (uint32_t)(uintptr_t)arg;

	for (unsigned int i = 1; n_objects; i++) {
		x = x * 1664525u + 1013904223u;
		free(mine[x % BUSY_OBJECTS]);
		mine[x % BUSY_OBJECTS] =
			malloc(x / BUSY_OBJECTS % BUSY_BYTES + 1);
		if (i % BUSY_STEPS == 0)
			usleep(1000);
	}
	return arg;
}

static void start_busy(void)
{
	pthread_t thread;

	for (uintptr_t i = 1; i <= 2; i++)
		if (pthread_create(&thread, NULL, stay_busy, (void *)i))
			exit(72);
}

/* Until standard input ends: now and then what changes no hole. */
static void wait_for_end(const char *how)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	if (strcmp(how, "busy") == 0)
		start_busy();
	while (poll(&input, 1, 5) == 0)
		free(malloc(256 << 10));
}
