/* SPDX-License-Identifier: MIT */
/*
 * leaky [tidy]: a server for about 1.5 s.  It loads some data, then serves:
 * handle() loses one of a hundred objects, remember() keeps the last ones in a
 * cache of fixed size.  Says "served", and waits for the end of its input; then
 * it frees all that it has, if it is tidy.
 *
 * Prints what handle() has allocated and lost, in bytes, and what the whole
 * process has, each without the data.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS       1200
#define OBJECTS      100
#define OBJECT_BYTES 400
#define CACHED       500
#define CACHED_BYTES 300
#define LOADED       500
#define LOADED_BYTES 2000

/* What is lost, for one who is tidy; not on the heap. */
static void *lost[ROUNDS], *cache[CACHED], *loaded[LOADED];

__attribute__((noinline)) static void *handle(void)
{
	void *object = malloc(OBJECT_BYTES);

	memset(object, 1, OBJECT_BYTES);
	return object;
}

__attribute__((noinline)) static void *remember(void)
{
	void *entry = malloc(CACHED_BYTES);

	memset(entry, 1, CACHED_BYTES);
	return entry;
}

__attribute__((noinline)) static void *load(void)
{
	return calloc(1, LOADED_BYTES);
}

static void serve(unsigned int round)
{
	static size_t at;

	for (int i = 0; i < OBJECTS; i++) {
		void *object = handle();

		if (i)
			free(object);
		else
			lost[round] = object;
	}
	for (int i = 0; i < OBJECTS / 4; i++, at = (at + 1) % CACHED) {
		free(cache[at]);
		cache[at] = remember();
	}
}

int main(int argc, char **argv)
{
	const struct timespec pause = {0, 1000000};
	const uint64_t handled = (uint64_t)ROUNDS * OBJECTS * OBJECT_BYTES;
	char c;

	for (int i = 0; i < LOADED; i++)
		loaded[i] = load();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		serve(round);
		nanosleep(&pause, NULL);
	}
	printf("served %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", handled,
	       (uint64_t)ROUNDS * OBJECT_BYTES,
	       handled + (uint64_t)ROUNDS * (OBJECTS / 4) * CACHED_BYTES);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
	if (argc < 2 || strcmp(argv[1], "tidy") != 0)
		return 0;
	for (int i = 0; i < ROUNDS; i++)
		free(lost[i]);
	for (int i = 0; i < CACHED; i++)
		free(cache[i]);
	for (int i = 0; i < LOADED; i++)
		free(loaded[i]);
	return 0;
}
