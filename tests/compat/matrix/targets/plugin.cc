/* SPDX-License-Identifier: MIT */
/* The plug-in of plugins.cc. */
#include <cstdlib>

#define NOINLINE __attribute__((noinline))

static void *volatile sink;

static NOINLINE void leaf(unsigned int n)
{
	sink = std::malloc(n);
	std::free(sink);
}

/* Bytes that leaf() was given. */
extern "C" unsigned long long plugin_allocate(unsigned int round)
{
	leaf(100 + round);
	__asm__ volatile("");
	return 100 + round;
}
