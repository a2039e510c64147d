/* SPDX-License-Identifier: MIT */
/*
 * calls: 64 call paths of depth 8, taken in main and in a thread; each ends in
 * leaf(), which uses every C function that gives memory.  Prints what leaf()
 * was given, "leaf BYTES OBJECTS".  Needs no more than C and POSIX, so that
 * any C library will do.  With an argument it says "ready" before, and waits
 * for a byte.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* Keeps a caller in the stack: a call in tail position would replace it. */
#define STAY() __asm__ volatile("")

#define LEVELS 6

static unsigned long long bytes, objects;

static void count(void *p, size_t n)
{
	if (!p)
		_exit(70);
	bytes += n;
	objects++;
	__asm__ volatile("" : : "r"(p) : "memory");
	STAY();
}

static NOINLINE void leaf(void)
{
	void *aligned = NULL;
	void *p = malloc(100);

	count(p, 100);
	p = realloc(p, 300);
	count(p, 300);
	free(p);
	p = calloc(7, 50);
	count(p, 350);
	free(p);
	if (posix_memalign(&aligned, 64, 128))
		_exit(70);
	count(aligned, 128);
	free(aligned);
	p = aligned_alloc(64, 192);
	count(p, 192);
	free(p);
	p = memalign(32, 96);
	count(p, 96);
	free(p);
}

static NOINLINE void left(unsigned int path, unsigned int level);
static NOINLINE void right(unsigned int path, unsigned int level);

static void descend(unsigned int path, unsigned int level)
{
	if (level == LEVELS)
		leaf();
	else if (path >> level & 1)
		right(path, level + 1);
	else
		left(path, level + 1);
}

static NOINLINE void left(unsigned int path, unsigned int level)
{
	descend(path, level);
	STAY();
}

static NOINLINE void right(unsigned int path, unsigned int level)
{
	descend(path, level);
	STAY();
}

static NOINLINE void take_all_paths(void)
{
	for (unsigned int path = 0; path < 1 << LEVELS; path++)
		descend(path, 0);
	STAY();
}

static NOINLINE void *run_thread(void *arg)
{
	take_all_paths();
	STAY();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char line[80];
	int n;

	(void)argv;
	if (argc > 1 && (write(STDOUT_FILENO, "ready\n", 6) != 6 ||
			 read(STDIN_FILENO, line, 1) != 1))
		return 72;
	take_all_paths();
	if (pthread_create(&thread, NULL, run_thread, NULL) ||
	    pthread_join(thread, NULL))
		return 71;
	n = snprintf(line, sizeof(line), "leaf %llu %llu\n", bytes, objects);
	return write(STDOUT_FILENO, line, (size_t)n) != n;
}
