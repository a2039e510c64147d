/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdlib.h>

static inline void allocate(size_t size, int times)
{
	for (int i = 0; i < times; i++) {
		void *p = malloc(size);

		__asm__ volatile("" : : "r"(p) : "memory");
		free(p);
	}
}
