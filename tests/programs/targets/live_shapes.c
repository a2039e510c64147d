/* SPDX-License-Identifier: MIT */
/*
 * One thread whose live heap has a shape.
 *
 *     live_shapes leak|sawtooth|cache|arena|realloc
 */
#include <string.h>

#include "live.h"

#define STEPS 30

static NOINLINE void *hold(size_t n)
{
	void *p = malloc(n);

	if (!p)
		_exit(71);
	held_more(n);
	return p;
}

static NOINLINE void drop(void *p, size_t n)
{
	held_less(n);
	free(p);
}

static size_t some_size(void)
{
	uint32_t v = next_random();

	/* Mostly small, a few large. */
	return v % 64 ? 16 + v % 1000 : 8000 + v % 60000;
}

/* A steady leak beside what is given back. */
static void leak(void)
{
	void *volatile leaked;

	for (int step = 0; step < STEPS; step++) {
		note_point();
		for (int i = 0; i < 100; i++) {
			size_t n = some_size(), m = some_size();
			void *p = hold(n);

			leaked = hold(m);
			drop(p, n);
		}
	}
	(void)leaked;
}

static void sawtooth(void)
{
	static void *p[400];
	static size_t n[400];

	for (int tooth = 0; tooth < STEPS / 2; tooth++) {
		note_point();
		for (int i = 0; i < 400; i++) {
			n[i] = some_size();
			p[i] = hold(n[i]);
		}
		note_point();
		for (int i = 0; i < 400; i++)
			drop(p[i], n[i]);
	}
	note_point();
}

/* A thousand entries, replaced at random. */
static void cache(void)
{
	static void *p[1000];
	static size_t n[1000];

	for (int step = 0; step < STEPS; step++) {
		note_point();
		for (int i = 0; i < 800; i++) {
			uint32_t at = next_random() % 1000;

			if (p[at])
				drop(p[at], n[at]);
			n[at] = some_size();
			p[at] = hold(n[at]);
		}
	}
}

/* Small pieces of large blocks, none of which is given back. */
static void arena(void)
{
	const size_t block = 64 << 10;
	char *at = NULL;
	size_t left = 0;

	for (int step = 0; step < STEPS; step++) {
		note_point();
		for (int i = 0; i < 500; i++) {
			size_t n = 16 + next_random() % 500;

			if (n > left) {
				at = hold(block);
				left = block;
			}
			memset(at, 1, n);
			at += n;
			left -= n;
		}
	}
}

/* n becomes `to`; the object is what it is now. */
static void *resize(void *p, size_t *n, size_t to)
{
	void *q = realloc(p, to);

	if (!q && to)
		return p; /* it failed: nothing has changed */
	if (p)
		held_less(*n);
	if (q)
		held_more(to);
	*n = to;
	return q;
}

static void ladders(void)
{
	void *beside[STEPS], *p = NULL;
	size_t n = 0;

	for (int step = 0; step < STEPS; step++) {
		/* In place or moved: something stands behind it. */
		note_point();
		for (size_t to = 1; to < 300000; to += 1 + to / 3)
			p = resize(p, &n, to);
		beside[step] = hold(100);
		note_point();
		p = resize(p, &n, SIZE_MAX / 4);
		for (size_t to = 200000; to > 10; to -= to / 3)
			p = resize(p, &n, to);
		p = resize(p, &n, 5000000);
		p = resize(p, &n, 100);
		p = resize(p, &n, 0);
		if (step % 2)
			drop(beside[step], 100);
	}
	note_point();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} shapes[] = {
		{"leak", leak},   {"sawtooth", sawtooth}, {"cache", cache},
		{"arena", arena}, {"realloc", ladders},
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (argc != 2 || strcmp(argv[1], shapes[i].name) != 0)
			continue;
		shapes[i].run();
		print_points();
		return 0;
	}
	return 64;
}
