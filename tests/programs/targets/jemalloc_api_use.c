/* SPDX-License-Identifier: MIT */
/* Part of the program, or a shared library, which the loader relocates at
 * another time. */
#include <stddef.h>

#include "truth.h"

unsigned int jemalloc_present(void);
void jemalloc_use(struct truth *t);

/* jemalloc's own interface, which a program tests for. */
void *mallocx(size_t n, int flags) __attribute__((weak));
void *rallocx(void *p, size_t n, int flags) __attribute__((weak));
size_t xallocx(void *p, size_t n, size_t extra, int flags)
	__attribute__((weak));
size_t sallocx(const void *p, int flags) __attribute__((weak));
void dallocx(void *p, int flags) __attribute__((weak));
void sdallocx(void *p, size_t n, int flags) __attribute__((weak));
size_t nallocx(size_t n, int flags) __attribute__((weak));

#define ALIGN_64 6 /* lg of the alignment, in the low bits of the flags */

/* Which of the seven exist, one bit each. */
unsigned int jemalloc_present(void)
{
	return (mallocx != NULL) << 0 | (rallocx != NULL) << 1 |
	       (xallocx != NULL) << 2 | (sallocx != NULL) << 3 |
	       (dallocx != NULL) << 4 | (sdallocx != NULL) << 5 |
	       (nallocx != NULL) << 6;
}

/* Everything in a known pattern; only if all seven exist. */
void jemalloc_use(struct truth *t)
{
	void *p, *q;
	size_t old;

	for (size_t n = 1; n < 20000; n = n * 3 + 1) {
		p = mallocx(n, ALIGN_64);
		truth_add(t, p, n);
		EXPECT(p && (uintptr_t)p % 64 == 0);
		EXPECT(sallocx(p, ALIGN_64) >= n);
		EXPECT(nallocx(n, ALIGN_64) == sallocx(p, ALIGN_64));
		p = rallocx(p, 2 * n + 100, 0);
		truth_add(t, p, 2 * n + 100);
		EXPECT(p);
		EXPECT(!rallocx(p, HUGE_BYTES, 0));
		dallocx(p, 0);
		q = mallocx(n, 0);
		truth_add(t, q, n);
		sdallocx(q, n, 0);
	}
	EXPECT(!mallocx(HUGE_BYTES, 0));
	/* A resize in place counts if it happened. */
	p = mallocx(1 << 20, 0);
	truth_add(t, p, 1 << 20);
	old = sallocx(p, 0);
	if (xallocx(p, 256 << 10, 0, 0) != old)
		truth_add(t, p, 256 << 10);
	old = sallocx(p, 0);
	if (xallocx(p, old, 0, 0) != old)
		truth_add(t, p, old);
	dallocx(p, 0);
}
