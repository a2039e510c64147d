/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Which sampled objects are alive: address -> sample.  Exact, lock-free, for
 * any number of threads and from signal handlers; grows without a stop.
 *
 * In front of it stands a counting filter, an array of bytes indexed by a hash
 * of the address.  A byte with its highest bit proves that the address is not
 * in the table, which is all that the free of an unsampled object has to know.
 *
 * The caller owns the address that it inserts or takes, as the allocator does:
 * no two threads do so with one address at the same time, unless the program
 * frees twice, and then one of them gets the entry.
 */
#define SP_LIVESET_ID_BITS    43u
#define SP_LIVESET_CLOCK_BITS 48u

struct sp_live {
	uint64_t id;          /* of the sample: not 0, and of ID_BITS */
	uint64_t clock_bytes; /* of its thread, behind the object: the last
				 CLOCK_BITS of it */
	uint32_t thread;      /* index of the thread that allocated it */
	uint32_t generation;  /* of the process that sampled it */
};

/* Begin, once, for generation 1: false if there is no memory, or none that a
 * forked child finds empty (Linux 4.14), and then nothing is ever in the set.
 * Context: cold. */
bool sp_liveset_init(void);

enum sp_liveset_result {
	SP_LIVESET_ADDED,
	/* The address was there: *ret_old is what it was. */
	SP_LIVESET_REPLACED,
	/* No memory to grow, or no such address or id: it is not in the set. */
	SP_LIVESET_FULL,
};

/* A call that is about p is coming: what it touches is far away.  Context:
 * sampled. */
void sp_liveset_prefetch(const void *p);

/* What a process of another generation sampled (a signal handler has forked in
 * the middle) is none of this set's, and passes for ADDED.  Context: sampled.
 */
enum sp_liveset_result sp_liveset_insert(const void *p,
					 const struct sp_live *live,
					 struct sp_live *ret_old);

/* Can the address be in the set?  Most often false if it is not: ask it before
 * a take, which costs more.  Context: hot. */
bool sp_liveset_may_have(const void *p);

/* Take the address out of the set: true, and what it was, if it was there.
 * Context: sampled, but no system call (filter hits). */
bool sp_liveset_take(const void *p, struct sp_live *ret);

/* Where the set has a sample, and what it said of it. */
struct sp_liveset_place {
	void *word;
	uint64_t said;
};

/* Is the object of that sample in the set, and not known to be rewritten into
 * that segment (rewrite_live.c)?  It may have left it by the time of the
 * answer.  Segments are told apart within 31 that follow each other.
 * Context: sampled.
 */
bool sp_liveset_is_missing(const void *p, uint64_t id, uint32_t segment,
			   struct sp_liveset_place *ret);

/* The sample that was missing is in that segment now.  Nothing is said if the
 * object has left meanwhile, or has been moved: then it may be rewritten
 * once more.  Context: sampled. */
void sp_liveset_rewritten(const struct sp_liveset_place *place,
			  uint32_t segment);

/* The calling thread has left an insert or a take for good (inside.h). */
void sp_liveset_give_left(void);

/*
 * In a forked child of that generation: the set is empty.  The kernel has seen
 * to the memory before any code of the child runs (MADV_WIPEONFORK), so a child
 * that does not get here has an empty set too; an insert or take that a signal
 * handler interrupted to fork leaves nothing behind in the child.
 */
void sp_liveset_reset(uint32_t generation);
