/* SPDX-License-Identifier: MIT */
/*
 * A program with something to record: named threads, many stacks, every kind of
 * entry point, objects that another thread frees.  Ends as it is told: "exit",
 * "kill" or, with its period left alone and with time to spare, "rest".
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sampleprof/sampleprof.h>

#define THREADS 3
#define ROUNDS  200

static void *volatile sink;
static void *kept[THREADS + 1][ROUNDS];

static void allocate(unsigned int path)
{
	void *p = NULL;

	switch (path % 5) {
	case 0:
		p = malloc(path + 1);
		break;
	case 1:
		p = calloc(3, path);
		break;
	case 2:
		p = realloc(malloc(10), 100 + path);
		break;
	case 3:
		p = aligned_alloc(64, 64);
		break;
	default:
		if (posix_memalign(&p, 128, path) != 0)
			p = NULL;
	}
	sink = p;
	free(p);
}

static void left(unsigned int path, int depth);

/* Each of the lowest bits of `path` chooses a caller. */
static void __attribute__((noinline)) right(unsigned int path, int depth)
{
	if (depth == 0)
		allocate(path);
	else if (path >> depth & 1)
		left(path, depth - 1);
	else
		right(path, depth - 1);
	sink = NULL;
}

static void __attribute__((noinline)) left(unsigned int path, int depth)
{
	right(path, depth);
	sink = NULL;
}

static void *work(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "worker %d", (int)(intptr_t)arg);
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned int path = 0; path < 64; path++)
			right(path, 6);
		kept[(intptr_t)arg][i] = malloc(48);
	}
	return NULL;
}

static void drop(int thread)
{
	for (int i = 0; i < ROUNDS; i++)
		free(kept[thread][i]);
}

static char *map(char *at, size_t bytes, int access, int flags)
{
	return mmap(at, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		    0);
}

/* Holes, mappings over others, moves, and address space without access. */
static void map_some(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int both = PROT_READ | PROT_WRITE;
	char *p = map(NULL, 64 * page, both, 0);
	char *reserved = map(NULL, 256 * page, PROT_NONE, 0);

	munmap(p + 8 * page, 4 * page);
	map(p + 16 * page, 32 * page, both, MAP_FIXED);
	munmap(p + 60 * page, 4 * page);
	mprotect(reserved + 32 * page, 32 * page, both);
	munmap(reserved + 128 * page, page);
	p = map(NULL, 32 * page, both, 0);
	p = mremap(p, 32 * page, 96 * page, MREMAP_MAYMOVE);
	p = mremap(p, 96 * page, 40 * page, 0);
	for (int i = 0; i < 20; i++)
		munmap(map(NULL, 32 * page, both, 0), 32 * page);
}

int main(int argc, char **argv)
{
	const char *end = argc > 1 ? argv[1] : "exit";
	pthread_t threads[THREADS];

	map_some();
	sampleprof_mark("workers");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work,
				   (void *)(intptr_t)i) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		drop(i);
	sampleprof_stop();
	sampleprof_mark("main");
	for (int i = 0; i < 10; i++)
		free(malloc(100));
	sampleprof_start();
	if (strcmp(end, "rest") != 0)
		sampleprof_set_period(64);
	sampleprof_snapshot("before the last");
	work((void *)(intptr_t)THREADS);
	drop(THREADS);
	if (strcmp(end, "rest") == 0)
		usleep(500000);
	if (strcmp(end, "kill") == 0)
		raise(SIGKILL);
	return 0;
}
