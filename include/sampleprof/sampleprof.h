/* SPDX-License-Identifier: MIT */
#ifndef SAMPLEPROF_SAMPLEPROF_H
#define SAMPLEPROF_SAMPLEPROF_H

#include <stdint.h>

/*
 * The public interface of sampleprof.  Nothing needs to be linked: the
 * functions are weak references, present when libsampleprof.so is preloaded.
 * Test one before the call, or use the SAMPLEPROF_* macros, which do:
 *
 *     struct sampleprof_totals before, after;
 *     if (SAMPLEPROF_THREAD_TOTALS(&before) == 0) { ... }
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Without noplt the linker of a program that is not position-independent
 * settles a weak reference as absent; clang (up to 14 at least) has no noplt,
 * so there such a program has to be built with -fPIE. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define SAMPLEPROF_OPTIONAL __attribute__((weak, noplt))
#endif
#endif
#ifndef SAMPLEPROF_OPTIONAL
#define SAMPLEPROF_OPTIONAL __attribute__((weak))
#endif

/* Exact counts, not estimates: what has been allocated (a realloc counts with
 * its new size, a request for 0 bytes as 1), whether or not it was freed. */
struct sampleprof_totals {
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
};

/* Of the calling thread since its first allocation.  0, or -1 if this process
 * is not being profiled. */
int sampleprof_thread_totals(struct sampleprof_totals *ret) SAMPLEPROF_OPTIONAL;

/* Of the process: exact for this thread and for threads that have ended; other
 * running threads are counted up to their last check-in, which is at most 1 MiB
 * of allocations ago.  0, or -1 if this process is not being profiled. */
int sampleprof_process_totals(struct sampleprof_totals *ret)
	SAMPLEPROF_OPTIONAL;

#define SAMPLEPROF_THREAD_TOTALS(ret)                                          \
	(sampleprof_thread_totals ? sampleprof_thread_totals(ret) : -1)
#define SAMPLEPROF_PROCESS_TOTALS(ret)                                         \
	(sampleprof_process_totals ? sampleprof_process_totals(ret) : -1)

#ifdef __cplusplus
}
#endif

#endif
