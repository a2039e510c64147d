/* SPDX-License-Identifier: MIT */
/*
 * Allocations as fast as they go, for timing and for counting instructions.
 *
 *   pairs pairs SIZE COUNT [DEPTH]   COUNT times malloc and free; DEPTH is the
 *                                    number of calls from main to the loop
 *   pairs lists SIZE COUNT           COUNT times malloc, then COUNT times free
 *   pairs zeroed SIZE COUNT          the same with calloc
 *   pairs resized SIZE COUNT         and a realloc of each in between
 *   pairs new SIZE COUNT             with operator new and delete
 *
 * Prints nanoseconds of processor time per malloc.  The loops are functions of
 * their own, so that instructions can be counted inside each of them only.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOP __attribute__((noinline))

/* All of an object that is ever used: the link of a list. */
struct object {
	struct object *next;
};

/* operator new and delete: m is size_t. */
void *_Znwm(size_t n);
void _ZdlPv(void *p);

static void *volatile sink;

static LOOP void make_pairs(size_t size, long count)
{
	for (long i = 0; i < count; i++) {
		sink = malloc(size);
		free(sink);
	}
}

static LOOP struct object *take_list(size_t size, long count)
{
	struct object *list = NULL;

	for (long i = 0; i < count; i++) {
		struct object *object = malloc(size);

		object->next = list;
		list = object;
	}
	return list;
}

static LOOP struct object *take_zeroed(size_t size, long count)
{
	struct object *list = NULL;

	for (long i = 0; i < count; i++) {
		struct object *object = calloc(1, size);

		object->next = list;
		list = object;
	}
	return list;
}

static LOOP struct object *take_new(size_t size, long count)
{
	struct object *list = NULL;

	for (long i = 0; i < count; i++) {
		struct object *object = _Znwm(size);

		object->next = list;
		list = object;
	}
	return list;
}

/* An allocator may move them, whatever glibc does. */
static LOOP struct object *resize_list(struct object *list, size_t size)
{
	for (struct object **at = &list; *at; at = &(*at)->next)
		*at = realloc(*at, size);
	return list;
}

static LOOP void delete_list(struct object *list)
{
	while (list) {
		struct object *next = list->next;

		_ZdlPv(list);
		list = next;
	}
}

static LOOP void free_list(struct object *list)
{
	while (list) {
		struct object *next = list->next;

		free(list);
		list = next;
	}
}

static LOOP void at_depth(int depth, size_t size, long count)
{
	if (depth > 0)
		at_depth(depth - 1, size, count);
	else
		make_pairs(size, count);
	sink = NULL; /* not a tail call: every level keeps its frame */
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool run_lists(const char *mode, size_t size, long count)
{
	struct object *list;

	/* The heap grows once: where it began plays no part then. */
	mallopt(M_TOP_PAD, 256 << 20);
	if (strcmp(mode, "lists") == 0) {
		free_list(take_list(size, count));
	} else if (strcmp(mode, "zeroed") == 0) {
		free_list(take_zeroed(size, count));
	} else if (strcmp(mode, "new") == 0) {
		delete_list(take_new(size, count));
	} else if (strcmp(mode, "resized") == 0) {
		list = take_list(size, count);
		/* Multiples of 16 leave 8 bytes: glibc does not move it. */
		free_list(resize_list(list, size + 4));
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	long count = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	int depth = argc > 4 ? atoi(argv[4]) : 0;
	double start = now_ns();
	bool known = size >= sizeof(struct object) && count >= 1;

	if (known && strcmp(argv[1], "pairs") == 0)
		at_depth(depth, size, count);
	else
		known = known && run_lists(argv[1], size, count);
	if (!known) {
		fputs("usage: pairs pairs|lists|zeroed|resized|new SIZE COUNT "
		      "[DEPTH]\n",
		      stderr);
		return 2;
	}
	printf("%.3f\n", (now_ns() - start) / (double)count);
	return 0;
}
