/* SPDX-License-Identifier: MIT */
/*
 * A semaphore is a word in this process.  The tracer of a probe increments it;
 * for uprobes the kernel does that.  The note names its address.
 */
#include "agent/event/probes.h"

#define _SDT_HAS_SEMAPHORES 1
/* No operand in a floating-point register: there are none. */
#define STAP_SDT_ARG_CONSTRAINT nor
#include <sys/sdt.h>

#include "agent/sys/poison.h"

#define SEMAPHORE                                                              \
	__attribute__((section(".probes"), used, visibility("hidden")))

volatile unsigned short otel_memory_alloc_semaphore SEMAPHORE;
volatile unsigned short otel_memory_free_semaphore SEMAPHORE;

/* The macros of sys/sdt.h leave a variable argument out. */
#pragma GCC diagnostic ignored "-Wpedantic"

void sp_probes_alloc(const void *p, uint64_t size_bytes,
		     const struct sp_law *law, uint64_t number)
{
	uint64_t weight_bytes;

	if (!otel_memory_alloc_semaphore)
		return;
	weight_bytes = sp_law_weight(law, size_bytes, sp_splitmix64(&number));
	STAP_PROBE3(otel_memory, alloc, p, size_bytes, weight_bytes);
}

void sp_probes_free(const void *p)
{
	if (otel_memory_free_semaphore)
		STAP_PROBE1(otel_memory, free, p);
}
