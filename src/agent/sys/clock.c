/* SPDX-License-Identifier: MIT */
#include "agent/sys/clock.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

/* As close as two readings are that nothing comes between; and how often a
 * closer pair is looked for, on a machine that is slow or busy. */
#define CLOSE_NS 500u
#define READINGS 20u

static int (*vdso_clock)(clockid_t, struct timespec *);

void sp_clock_find(void)
{
	const struct link_map *map = sp_linkmap_first();
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
	void *address = NULL;

	while (map && map->l_addr != vdso)
		map = map->l_next;
	if (vdso && map)
		address = sp_linkmap_find(map, SP_ARCH_VDSO_CLOCK);
	memcpy(&vdso_clock, &address, sizeof(address));
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t = {0, 0};

	if (!vdso_clock || vdso_clock(clock, &t) != 0)
		SP_SYS2(clock_gettime, clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sp_clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

struct sp_clock_both sp_clock_both(void)
{
	struct sp_clock_both both = {0, 0};
	uint64_t least = UINT64_MAX;

	/* A thread that has to wait for its processor between two readings may
	 * wait for long, and every time of the file would be off by that. */
	for (unsigned int i = 0; i < READINGS && least > CLOSE_NS; i++) {
		const uint64_t before = sp_clock_now_ns();
		const uint64_t wall = read_clock(CLOCK_REALTIME);
		const uint64_t apart = sp_clock_now_ns() - before;

		if (apart < least) {
			both.now_ns = before + apart / 2;
			both.wall_ns = wall;
			least = apart;
		}
	}
	return both;
}
