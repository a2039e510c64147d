/* SPDX-License-Identifier: MIT */
/*
 * gated SPEC...: allocates what a gate is to find, and prints the truth.
 *
 * SPEC is SITE:SIZE:COUNT with SITE one of a to f, or "keep:SIZE:COUNT" for
 * objects that stay alive, "hold:SIZE:COUNT" until "drop=MS" frees them and
 * waits so long.  The last line is "total BYTES OBJECTS" of these.  "mark=NAME"
 * begins a phase.
 *
 * MOVED: a hundred lines and some kilobytes of code in front of the same code.
 * RENAMED: site_c is called site_renamed.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "truth.h"

#ifdef RENAMED
#define site_c site_renamed
#endif

static void *volatile sink;

#ifdef MOVED
#define LINE      moved_bytes++;
#define TEN_LINES LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE
static volatile int moved_bytes;
void moved(void);
void moved(void)
{
	TEN_LINES TEN_LINES TEN_LINES TEN_LINES TEN_LINES TEN_LINES TEN_LINES
		TEN_LINES TEN_LINES TEN_LINES
}
#line 500
#endif

static unsigned long total_bytes, total_objects;

#define SITE(name)                                                             \
	static NOINLINE void name(size_t size, unsigned long count)            \
	{                                                                      \
		for (unsigned long i = 0; i < count; i++) {                    \
			sink = malloc(size);                                   \
			free(sink);                                            \
		}                                                              \
		STAY();                                                        \
	}

SITE(site_a)
SITE(site_b)
SITE(site_c)
SITE(site_d)
SITE(site_e)
SITE(site_f)

static NOINLINE void keeper(size_t size, unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		sink = malloc(size);
	STAY();
}

static void *held;

static NOINLINE void holder(size_t size, unsigned long count)
{
	EXPECT(size >= sizeof(held));
	for (unsigned long i = 0; i < count; i++) {
		void **p = malloc(size);

		*p = held;
		held = p;
	}
	STAY();
}

static NOINLINE void drop(unsigned int ms)
{
	while (held) {
		void **p = held;

		held = *p;
		free(p);
	}
	usleep(1000 * ms);
}

static NOINLINE void work(const char *site, size_t size, unsigned long count)
{
	static void (*const sites[])(size_t, unsigned long) = {
		site_a, site_b, site_c, site_d, site_e, site_f};

	if (strcmp(site, "keep") == 0) {
		keeper(size, count);
	} else if (strcmp(site, "hold") == 0) {
		holder(size, count);
	} else {
		EXPECT(site[0] >= 'a' && site[0] <= 'f');
		sites[site[0] - 'a'](size, count);
	}
	total_bytes += size * count;
	total_objects += count;
	STAY();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char site[16];
		unsigned long size, count;

		if (strncmp(argv[i], "mark=", 5) == 0) {
			sampleprof_mark(argv[i] + 5);
			continue;
		}
		if (strncmp(argv[i], "drop=", 5) == 0) {
			drop((unsigned int)atoi(argv[i] + 5));
			continue;
		}
		EXPECT(sscanf(argv[i], "%15[a-z]:%lu:%lu", site, &size,
			      &count) == 3);
		work(site, size, count);
	}
	printf("total %lu %lu\n", total_bytes, total_objects);
	return 0;
}
