/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/file/filter.h"
#include "agent/file/liveset.h"

/*
 * agent/file/liveset.c seen from inside, with livetable.c and filter.c.  Link
 * this library instead of having the file from sp_agent_core.  Nothing may
 * happen to the set during a call.
 */
struct liveset_check {
	uint64_t addresses;   /* words that are entries, in all tables */
	uint64_t busy;        /* words */
	uint64_t in_transit;  /* words that are MOVED or COPY */
	uint64_t live;        /* what the set thinks `addresses` is */
	uint64_t duplicates;  /* addresses that stand in more than one word */
	uint64_t misplaced;   /* where no look for the address comes by */
	uint64_t passed;      /* counts of all buckets in use, in sum */
	uint64_t wrong;       /* counters that a recount does not find */
	uint64_t sticky;      /* counters that have reached their maximum */
	uint64_t counters;    /* of the published generation */
	uint64_t nonzero;     /* of them */
	uint64_t unknown;     /* of them: they prove nothing */
	unsigned int table;   /* the current one */
	unsigned int tables;  /* current to newest */
	uint64_t table_bytes; /* of these */
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

/* What the set has done since it was zero. */
struct liveset_work {
	uint64_t maps;     /* of tables and counters */
	uint64_t claims;   /* of places: of what is inserted or moved */
	uint64_t buckets;  /* that a look has come by, one after the other */
	uint64_t settled;  /* pages of counters */
	uint64_t released; /* bytes of a table and counters that are left */
	const void *last_bucket;
};

extern struct liveset_work liveset_work;
