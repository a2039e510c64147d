/* SPDX-License-Identifier: MIT */
/*
 * As many distinct call stacks as are asked for, and a function whose name is
 * markup.
 * Usage: page_stacks N
 *
 * Call number i goes through twelve functions of four, which its bits choose.
 * A third of the objects is freed at once, half at the end, a sixth never: the
 * peak is far above the end.
 * Prints "stacks N", "alloc BYTES OBJECTS", "leaked BYTES OBJECTS" of those.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LEVELS 12

static void *descend(uint32_t path, int level, size_t size);

static __attribute__((noinline)) void *north(uint32_t path, int level, size_t n)
{
	return descend(path, level, n);
}

static __attribute__((noinline)) void *east(uint32_t path, int level, size_t n)
{
	return descend(path, level, n);
}

static __attribute__((noinline)) void *south(uint32_t path, int level, size_t n)
{
	return descend(path, level, n);
}

static __attribute__((noinline)) void *west(uint32_t path, int level, size_t n)
{
	return descend(path, level, n);
}

static void *descend(uint32_t path, int level, size_t size)
{
	static void *(*const ways[])(uint32_t, int, size_t) = {north, east,
							       south, west};

	if (level == LEVELS)
		return malloc(size);
	return ways[path >> (2 * level) & 3](path, level + 1, size);
}

/* Quoted, because the assembler takes no such name otherwise. */
void *markup(size_t size) __asm__(
	"\"</script><img src=x onerror=document.title=1>\"");

__attribute__((noinline)) void *markup(size_t size)
{
	return malloc(size);
}

int main(int argc, char **argv)
{
	const uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	void **kept = calloc(n + 1, sizeof(*kept));
	uint64_t bytes = 0, leaked_bytes = 0, leaked = 0;

	if (!kept)
		return 1;
	for (uint32_t i = 0; i < n; i++) {
		const size_t size = 16 + (size_t)(i % 97) * 24;

		kept[i] = descend(i * 2654435761u >> 8, 0, size);
		bytes += size;
		if (i % 6 < 2) {
			free(kept[i]);
			kept[i] = NULL;
		} else if (i % 6 == 2) {
			leaked_bytes += size;
			leaked++;
			kept[i] = NULL;
		}
	}
	free(markup(100));
	for (uint32_t i = 0; i < n; i++)
		free(kept[i]);
	free(kept);
	printf("stacks %u\nalloc %llu %u\nleaked %llu %llu\n", n,
	       (unsigned long long)bytes, n, (unsigned long long)leaked_bytes,
	       (unsigned long long)leaked);
	return 0;
}
