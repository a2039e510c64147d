/* SPDX-License-Identifier: MIT */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sampleprof/sampleprof.h>

/*
 * What a target counts itself, by the rule of the profiler: successful requests
 * only, with the size asked for, 0 bytes as 1.  The targets are compiled with
 * -fno-builtin, so no call is left out.
 */
struct truth {
	uint64_t bytes;
	uint64_t objects;
};

#define NOINLINE __attribute__((noinline))

/* Keeps a caller in the stack: a call in tail position would replace it. */
#define STAY() __asm__ volatile("")

/* Larger than anything that an allocator gives. */
#define HUGE_BYTES ((size_t)PTRDIFF_MAX + 1)

static inline void truth_add(struct truth *truth, const void *p, size_t n)
{
	if (!p)
		return;
	truth->bytes += n ? n : 1;
	truth->objects++;
}

static inline void truth_add_all(struct truth *to, const struct truth *from)
{
	to->bytes += from->bytes;
	to->objects += from->objects;
}

/* "NAME BYTES OBJECTS", without allocating. */
static inline void truth_print(const char *name, const struct truth *truth)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%s %llu %llu\n", name,
			 (unsigned long long)truth->bytes,
			 (unsigned long long)truth->objects);

	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		_exit(70);
}

/* Totals by the library; none are zero. */
static inline struct truth measured_thread(void)
{
	struct sampleprof_totals totals = {0, 0};
	struct truth truth;

	sampleprof_thread_totals(&totals);
	truth.bytes = totals.alloc_bytes;
	truth.objects = totals.alloc_objects;
	return truth;
}

static inline struct truth measured_process(void)
{
	struct sampleprof_totals totals = {0, 0};
	struct truth truth;

	sampleprof_process_totals(&totals);
	truth.bytes = totals.alloc_bytes;
	truth.objects = totals.alloc_objects;
	return truth;
}

static inline struct truth truth_since(struct truth now, struct truth before)
{
	now.bytes -= before.bytes;
	now.objects -= before.objects;
	return now;
}

/* Ends the target: a check of its own failed. */
#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: expected %s (errno %d)\n",     \
				__FILE__, __LINE__, #condition, errno);        \
			_exit(70);                                             \
		}                                                              \
	} while (0)
