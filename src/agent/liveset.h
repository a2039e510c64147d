/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_LIVESET_H
#define SP_AGENT_LIVESET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Which sampled objects are alive: address -> sample.  Exact, lock-free, for
 * any number of threads and from signal handlers; grows without a stop.
 *
 * In front of it stands a counting filter, an array of bytes indexed by a hash
 * of the address.  A zero byte proves that the address is not in the table,
 * which is all that the free of an unsampled object has to know.
 *
 * The caller owns the address that it inserts or takes, as the allocator does:
 * no two threads do so with one address at the same time, unless the program
 * frees twice, and then one of them gets the entry.
 */
struct sp_live {
	uint64_t id;          /* of the sample */
	uint64_t clock_bytes; /* of its thread, behind the object */
	uint32_t thread;      /* index of the thread that allocated it */
	uint32_t generation;  /* of the process that sampled it */
};

/*
 * The filter in one word: the address of its counters, whose low six bits are
 * also the shift that makes an index of a hash.  Size and counters change
 * together.  Never NULL.
 */
extern const uint8_t *sp_filter __attribute__((visibility("hidden")));

#define SP_FILTER_FACTOR 0x5851f42du
#define SP_FILTER_TERM   0x2545f491u

/* The hash is a quadratic polynomial, since the multiples of one constant are
 * as regular as the addresses of one size are, and may meet in few counters.
 * Context: hot. */
static inline const uint8_t *sp_filter_counter(const void *p)
{
	const uint8_t *counters = __atomic_load_n(&sp_filter, __ATOMIC_ACQUIRE);
	uint64_t a = (uintptr_t)p;
	uint64_t h = (a * SP_FILTER_FACTOR + SP_FILTER_TERM) * a;

	return &counters[h >> ((uintptr_t)counters & 63)];
}

/* May p be in the set?  Context: hot. */
static inline bool sp_filter_may_have(const void *p)
{
	bool is_set;

	/* As one instruction; others change the byte meanwhile. */
	__asm__("cmpb $0, %1" : "=@ccne"(is_set) : "m"(*sp_filter_counter(p)));
	return is_set;
}

/* Begin, once: false if there is no memory, or none that a forked child finds
 * empty (Linux 4.14), and then nothing is ever in the set.  Context: cold. */
bool sp_liveset_init(void);

enum sp_liveset_result {
	SP_LIVESET_ADDED,
	/* The address was there: *ret_old is what it was. */
	SP_LIVESET_REPLACED,
	/* No memory to grow: the address is not in the set. */
	SP_LIVESET_FULL,
};

/* An insert of p is coming: what it touches is far away.  Context: sampled. */
void sp_liveset_prefetch(const void *p);

/* Context: sampled. */
enum sp_liveset_result sp_liveset_insert(const void *p,
					 const struct sp_live *live,
					 struct sp_live *ret_old);

/* Take the address out of the set: true, and what it was, if it was there.
 * Context: sampled, but no system call (filter hits). */
bool sp_liveset_take(const void *p, struct sp_live *ret);

/* Is the object of that sample in the set?  It may have left it by the time of
 * the answer.  Context: sampled. */
bool sp_liveset_has(const void *p, uint64_t id);

/* The calling thread has left an insert or a take for good (inside.h). */
void sp_liveset_give_left(void);

/*
 * In a forked child: the set is empty.  The kernel has seen to the memory
 * before any code of the child runs (MADV_WIPEONFORK), so a child that does not
 * get here has an empty set too; an insert or take that a signal handler
 * interrupted to fork leaves nothing behind in the child.
 */
void sp_liveset_reset(void);

#endif
