/* SPDX-License-Identifier: MIT */
/*
 * endless STACKS: that many call stacks, none of them twice, while what keep()
 * has allocated lives; then the period is changed and set back, and a thread
 * that is called "late" allocates.  Prints resident memory after a quarter of
 * them and at the end in KiB, what the change returned, and all allocations of
 * main and the thread.
 */
#include <fcntl.h>
#include <pthread.h>

#include "truth.h"

#define DEPTH 32
#define KEPT  100
#define LATE  50

static struct truth truth;
static void *kept[KEPT];

static void *go(uint64_t path, int depth);

static NOINLINE void *go_left(uint64_t path, int depth)
{
	void *p = go(path >> 1, depth - 1);

	STAY();
	return p;
}

static NOINLINE void *go_right(uint64_t path, int depth)
{
	void *p = go(path >> 1, depth - 1);

	STAY();
	return p;
}

static NOINLINE void *go(uint64_t path, int depth)
{
	void *p;

	if (depth == 0) {
		p = malloc(64);
		truth_add(&truth, p, 64);
	} else if (path & 1) {
		p = go_left(path, depth);
	} else {
		p = go_right(path, depth);
	}
	STAY();
	return p;
}

static NOINLINE void keep(void)
{
	for (int i = 0; i < KEPT; i++) {
		kept[i] = malloc(1000);
		truth_add(&truth, kept[i], 1000);
	}
}

static NOINLINE void *in_late(void *arg)
{
	EXPECT(!pthread_setname_np(pthread_self(), "late"));
	for (int i = 0; i < LATE; i++) {
		void *p = malloc(24);

		truth_add(&truth, p, 24);
		free(p);
	}
	return arg;
}

/* Without allocating. */
static unsigned long resident_kib(void)
{
	char text[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	unsigned long pages;

	EXPECT(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	EXPECT(sscanf(text, "%*u %lu", &pages) == 1);
	close(fd);
	return pages * 4;
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	unsigned long early = 0, late;
	pthread_t thread;
	char line[200];
	int changed, bytes;

	keep();
	for (uint64_t i = 0; i < n; i++) {
		free(go(i, DEPTH));
		if (i == n / 4)
			early = resident_kib();
	}
	late = resident_kib();
	changed = sampleprof_set_period(12345);
	changed |= sampleprof_set_period(1);
	EXPECT(!pthread_create(&thread, NULL, in_late, NULL));
	EXPECT(!pthread_join(thread, NULL));
	bytes = snprintf(line, sizeof(line),
			 "early %lu 0\nlate %lu 0\nchanged %d 0\n", early, late,
			 changed);
	EXPECT(write(STDOUT_FILENO, line, (size_t)bytes) == bytes);
	truth_print("all", &truth);
	return 0;
}
