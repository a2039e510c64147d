/* SPDX-License-Identifier: MIT */
/*
 * crowded OBJECTS [free]: that many objects of 48 bytes, all alive at the end;
 * with `free` all are freed in the end, and nothing is allocated meanwhile.
 * Prints the allocations.
 */

#include "truth.h"

#define BYTES 48

static struct truth truth;

struct object {
	struct object *next;
};

static NOINLINE struct object *hold(uint64_t n)
{
	struct object *all = NULL;

	while (n--) {
		struct object *o = malloc(BYTES);

		truth_add(&truth, o, BYTES);
		o->next = all;
		all = o;
	}
	return all;
}

int main(int argc, char **argv)
{
	struct object *all = hold(strtoull(argv[1], NULL, 10));

	while (argc > 2 && all) {
		struct object *next = all->next;

		free(all);
		all = next;
	}
	truth_print("all", &truth);
	return 0;
}
