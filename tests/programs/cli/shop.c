/* SPDX-License-Identifier: MIT */
/*
 * What shop.sprof.zst and shop-new.sprof.zst were recorded from: see record.
 *
 *	load     reads 2000 orders of 200 bytes, which stay
 *	parse    nested items, by a function that calls itself, freed at once
 *	serve    a cache, in which the new version forgets to look up, and a
 *	         thread that renders
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sampleprof/sampleprof.h>

#define NOINLINE __attribute__((noinline))
#define ORDERS   2000
#define REQUESTS 3000

#ifdef NEW_VERSION
#define KEYS REQUESTS
#else
#define KEYS 500
#endif

static char *orders[ORDERS];
static char *cache[KEYS];

static inline __attribute__((always_inline)) char *copy(size_t size)
{
	char *p = malloc(size);

	memset(p, 'x', size);
	return p;
}

static NOINLINE void load_orders(void)
{
	for (int i = 0; i < ORDERS; i++)
		orders[i] = copy(200);
}

static NOINLINE void parse_item(int depth)
{
	char *text = malloc(96);

	if (depth)
		parse_item(depth - 1);
	free(text);
}

static NOINLINE char *cache_get(int request)
{
	char **entry = &cache[request % KEYS];

	if (!*entry)
		*entry = calloc(1, 1024);
	return *entry;
}

static NOINLINE void *render(void *arg)
{
	pthread_setname_np(pthread_self(), "render");
	for (int i = 0; i < 200; i++)
		free(copy(16384));
	return arg;
}

int main(void)
{
	pthread_t thread;

	sampleprof_mark("load");
	load_orders();
	for (int i = 0; i < ORDERS; i++)
		parse_item(3);
	sampleprof_mark("serve");
	if (pthread_create(&thread, NULL, render, NULL))
		return 71;
	for (int i = 0; i < REQUESTS; i++)
		cache_get(i)[0]++;
	pthread_join(thread, NULL);
	return 0;
}
