/* SPDX-License-Identifier: MIT */
/*
 * A program whose call tree is known, in bytes of what it allocates:
 *
 *	load         10 x read_line, of 100 each
 *	render       20 x read_line
 *	parse        5 x parse_item(3), which calls itself down to 0, 64 in each
 *	             2 x grow, inlined, of 3000 by realloc
 *	work         4 x calloc of 500, in a thread called "worker"
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static void *volatile kept;

static void keep(void *p)
{
	if (!p)
		_exit(71);
	kept = p;
}

static NOINLINE void read_line(void)
{
	keep(malloc(100));
}

static NOINLINE void load(void)
{
	for (int i = 0; i < 10; i++)
		read_line();
}

static NOINLINE void render(void)
{
	for (int i = 0; i < 20; i++)
		read_line();
}

static NOINLINE void parse_item(int depth)
{
	keep(malloc(64));
	if (depth)
		parse_item(depth - 1);
	__asm__ volatile(""); /* no jump instead of the call */
}

static inline __attribute__((always_inline)) void grow(void)
{
	keep(realloc(NULL, 3000));
}

static NOINLINE void parse(void)
{
	for (int i = 0; i < 5; i++)
		parse_item(3);
	for (int i = 0; i < 2; i++)
		grow(); /* where the source says so */
}

static void *work(void *arg)
{
	pthread_setname_np(pthread_self(), "worker");
	for (int i = 0; i < 4; i++)
		keep(calloc(10, 50));
	return arg;
}

int main(void)
{
	pthread_t thread;

	load();
	parse();
	render();
	if (pthread_create(&thread, NULL, work, NULL))
		return 72;
	pthread_join(thread, NULL);
	return 0;
}
