/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/mman.h>

#include "support/test.h"

/* A stack of the program's own, between pages that cannot be read.
 * Pages have at most 64 KiB. */
#define STACK_BYTES (64ul << 10)
#define PAGE_BYTES  (64ul << 10)

static inline char *map_stack(void)
{
	char *p = mmap(NULL, STACK_BYTES + 2 * PAGE_BYTES, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(
		mprotect(p + PAGE_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE),
		0);
	return p + PAGE_BYTES;
}

static inline void unmap_stack(char *stack)
{
	munmap(stack - PAGE_BYTES, STACK_BYTES + 2 * PAGE_BYTES);
}
