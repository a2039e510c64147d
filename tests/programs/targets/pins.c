/* SPDX-License-Identifier: MIT */
/*
 * A heap of glibc with holes between objects of four call sites, of which one
 * has few small objects among many that were freed.  It walks over its own
 * chunks and prints for each site "NAME OBJECTS PINNED TRIM": half of each hole
 * counts for either neighbour, TRIM is what malloc_trim(0) would give back of
 * that, PINNED the rest.  Then "free" with all that is free in holes, "pid",
 * "ready".  From then on it allocates now and then what changes no hole, until
 * standard input ends.
 *
 * program_pins [N [thread|busy]]: about N objects, 40000 by default; all in a
 * thread of its own; or other threads that make and free objects all the time.
 */
#include <malloc.h>
#include <stdio.h>

#include "heap_sites.h"

#define HEAP_ALIGN (64ull << 20)

static void make(unsigned int i)
{
	const uint32_t u = draw(100);
	struct object *o = &objects[i];

	if (i > n_objects / 4 * 3) {
		o->site = CACHE;
		o->at = (uintptr_t)cache(1000);
	} else if (u < 4) {
		o->site = PINNER;
		o->at = (uintptr_t)pinner(48);
	} else if (u < 70) {
		o->site = BULK;
		o->at = (uintptr_t)bulk(600 + draw(800));
	} else {
		o->site = CHURN;
		o->at = (uintptr_t)churn(100 + draw(200));
	}
}

static void make_heap(void)
{
	for (unsigned int i = 0; i < n_objects; i++)
		make(i);
	/* The first object is where the walk begins. */
	for (unsigned int i = 1; i < n_objects; i++) {
		struct object *o = &objects[i];

		if (o->site == BULK || (o->site == CHURN && draw(100) < 97)) {
			free((void *)o->at);
			o->at = 0;
		}
	}
}

/* ---- the walk ---- */

static size_t n_alive;

static void sort_alive(void)
{
	for (unsigned int i = 0; i < n_objects; i++)
		if (objects[i].at)
			objects[n_alive++] = objects[i];
	qsort(objects, n_alive, sizeof(*objects), compare_objects);
}

static unsigned int site_at(uintptr_t address)
{
	size_t low = 0, high = n_alive;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (objects[middle].at < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n_alive && objects[low].at == address ? objects[low].site
							   : SITES;
}

static size_t word_at(uintptr_t address)
{
	return *(const size_t *)address;
}

static uint64_t counts[SITES + 1], pinned[SITES + 1], trim[SITES + 1], all;

static void add_hole(uintptr_t start, size_t bytes, unsigned int before,
		     unsigned int behind)
{
	const uintptr_t first = (start + 48 + PAGE - 1) / PAGE * PAGE;
	size_t whole = 0;

	if (bytes > PAGE - 1 + 48 && start + bytes > first)
		whole = (start + bytes - first) / PAGE * PAGE;
	pinned[before] += (bytes - whole) / 2;
	pinned[behind] += (bytes - whole) / 2;
	trim[before] += whole / 2;
	trim[behind] += whole / 2;
	all += bytes;
}

/* From one chunk to the next, up to the end of the heap. */
static void walk(uintptr_t chunk, uintptr_t end)
{
	unsigned int before = SITES;
	uintptr_t hole = 0;

	while (chunk < end) {
		const size_t bytes = word_at(chunk + 8) & ~(size_t)7;
		const uintptr_t next = chunk + bytes;

		if (bytes < 32 || next >= end)
			return;
		if (word_at(next + 8) & 1) {
			const unsigned int site = site_at(chunk + 16);

			counts[site]++;
			if (hole)
				add_hole(hole, chunk - hole, before, site);
			hole = 0;
			before = site;
		} else {
			hole = chunk;
		}
		chunk = next;
	}
}

static uintptr_t end_of_heap(uintptr_t chunk, int is_thread)
{
	const uintptr_t heap = chunk / HEAP_ALIGN * HEAP_ALIGN;

	return is_thread ? heap + word_at(heap + 16) : (uintptr_t)sbrk(0);
}

static pthread_barrier_t barrier;

/* A thread stays: what it has in its cache goes back to the heap else. */
static void *lay_out(void *arg)
{
	make_heap();
	sort_alive();
	walk(objects[0].at - 16, end_of_heap(objects[0].at, arg != NULL));
	if (arg) {
		pthread_barrier_wait(&barrier);
		pause();
	}
	return NULL;
}

static void print_truth(void)
{
	for (unsigned int i = 0; i < SITES; i++)
		printf("%s %lu %lu %lu\n", names[i], (unsigned long)counts[i],
		       (unsigned long)pinned[i], (unsigned long)trim[i]);
	printf("other %lu %lu %lu\n", (unsigned long)counts[SITES],
	       (unsigned long)pinned[SITES], (unsigned long)trim[SITES]);
	printf("free %lu\npid %d\nready\n", (unsigned long)all, getpid());
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	pthread_t thread;

	setvbuf(stdout, NULL, _IONBF, 0);
	/* Larger ones have a mapping of their own. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (argc > 1)
		n_objects = (unsigned int)atoi(argv[1]);
	if (n_objects < 8 || n_objects > OBJECTS_MAX)
		return 70;
	if (strcmp(how, "thread") != 0)
		lay_out(NULL);
	else if (pthread_barrier_init(&barrier, NULL, 2) ||
		 pthread_create(&thread, NULL, lay_out, &n_objects) ||
		 pthread_barrier_wait(&barrier) > 0)
		return 73;
	print_truth();
	wait_for_end(how);
	return 0;
}
