/* SPDX-License-Identifier: MIT */
#ifndef SP_TESTS_SUPPORT_LIVESET_CHECK_H
#define SP_TESTS_SUPPORT_LIVESET_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/file/filter.h"
#include "agent/file/liveset.h"

/*
 * agent/file/liveset.c seen from inside.  Link this library instead of having
 * the file from sp_agent_core.  Nothing may happen to the set during a call.
 */
struct liveset_check {
	uint64_t addresses; /* words that are addresses */
	uint64_t busy;
	uint64_t live;       /* what the set thinks `addresses` is */
	uint64_t duplicates; /* addresses that stand in more than one word */
	uint64_t misplaced;  /* not in a bucket of their address */
	uint64_t uncounted;  /* not counted up to the published generation */
	uint64_t wrong;      /* counters that a recount does not find */
	uint64_t sticky;     /* counters that have reached their maximum */
	uint64_t counters;   /* of the published generation */
	uint64_t nonzero;    /* of them */
	unsigned int generation; /* that is published */
	unsigned int levels;
	uint64_t entries;      /* places for addresses */
	uint64_t mapped_bytes; /* of levels and generations */
};

void liveset_check(struct liveset_check *ret);

/* The set as it was before sp_liveset_init. */
void liveset_check_clear(void);

/* How many more mappings the set can have; UINT32_MAX: as many as there are. */
void liveset_check_allow_maps(uint32_t n);

/* Called by the calling thread between the atomic operations of the set;
 * NULL: nothing is. */
extern _Thread_local void (*liveset_check_step)(void);

/* The index of an address among 2^bits counters. */
size_t liveset_check_index(uint64_t address, unsigned int bits);

#endif
