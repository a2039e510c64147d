/* SPDX-License-Identifier: MIT */
/*
 * A heap of jemalloc of which most was freed, in the sizes of four call sites;
 * two of them have one size.  It counts what is free in its slabs by the
 * addresses of its objects, and prints for each site "NAME OBJECTS PINNED":
 * what is free in a slab is shared alike by the objects there.  Then "free"
 * with all of it, "pid", "ready".  From then on it allocates now and then in
 * other sizes, until standard input ends.
 *
 * program_slabs [N [other|busy]]: about N objects, 40000 by default; and one of
 * pvalloc, which jemalloc does not have; or other threads that make and free
 * objects all the time.
 */
#include <malloc.h>
#include <stdio.h>

#include "heap_sites.h"

/* Sizes that the C library and the profiler hardly ask for. */
static const size_t sizes[] = {112, 112, 448, 1280};

static void make(unsigned int i)
{
	static void *(*const makers[])(size_t) = {pinner, bulk, cache, churn};
	const uint32_t u = draw(100);
	struct object *o = &objects[i];

	o->site = u < 5 ? PINNER : u < 60 ? BULK : u < 80 ? CACHE : CHURN;
	o->at = (uintptr_t)makers[o->site](sizes[o->site]);
}

/* Of a site one in so many stays. */
static void make_heap(void)
{
	static const uint32_t stays[] = {1, 50, 2, 10};

	for (unsigned int i = 0; i < n_objects; i++)
		make(i);
	for (unsigned int i = 0; i < n_objects; i++) {
		struct object *o = &objects[i];

		if (draw(stays[o->site]) == 0)
			continue;
		free((void *)o->at);
		o->at = 0;
	}
}

/* ---- slabs ---- */

static unsigned long counts[SITES];
static double pinned[SITES], all;

/* Pages that objects of that size fill without a rest; a slab begins where one
 * of them would begin at a page. */
static uintptr_t slab_of(uintptr_t at, size_t size, size_t *ret_bytes)
{
	size_t n = 1;
	uintptr_t start = at;

	while (n * size % PAGE)
		n++;
	while (start % PAGE)
		start -= size;
	*ret_bytes = n * size;
	return start;
}

static void end_slab(const struct object *first, const struct object *end,
		     size_t bytes)
{
	const size_t used = (size_t)(end - first) * sizes[first->site];
	const double each = (double)(bytes - used) / (double)(end - first);

	all += (double)(bytes - used);
	for (; first < end; first++)
		pinned[first->site] += each;
}

static void count(void)
{
	struct object *first = objects, *const end = objects + n_objects;

	qsort(objects, n_objects, sizeof(*objects), compare_objects);
	while (first < end && !first->at)
		first++;
	while (first < end) {
		struct object *o = first;
		size_t bytes;
		const uintptr_t start =
			slab_of(first->at, sizes[first->site], &bytes);

		for (; o < end && o->at < start + bytes; o++)
			counts[o->site]++;
		end_slab(first, o, bytes);
		first = o;
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	int (*volatile control)(const char *, void *, size_t *, void *, size_t);
	extern int mallctl(const char *, void *, size_t *, void *, size_t)
		__attribute__((weak));

	control = mallctl;
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1)
		n_objects = (unsigned int)atoi(argv[1]);
	if (!control || n_objects < 8 || n_objects > OBJECTS_MAX)
		return 70;
	if (strcmp(how, "other") == 0)
		memset(pvalloc(1 << 20), 1, 1 << 20);
	make_heap();
	control("thread.tcache.flush", NULL, NULL, NULL, 0);
	count();
	for (unsigned int i = 0; i < SITES; i++)
		printf("%s %lu %.0f\n", names[i], counts[i], pinned[i]);
	printf("free %.0f\npid %d\nready\n", all, getpid());
	wait_for_end(how);
	return 0;
}
