/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "pack/open_samples.h"

/*
 * Which object a free is of, in a file whose frees have addresses
 * (SP_HEADER_ADDRESSES).  Births and frees are told in the order of time, frees
 * first at one moment; memory is proportional to the objects that are open, and
 * to threads.
 */

/* An object that is open, or with group 0 a place for the next. */
struct sp_open_object {
	uint64_t id;              /* of its sample */
	uint64_t born_ns;         /* the owner's */
	uint64_t allocated_bytes; /* by its thread, with it */
	uint32_t group;           /* 1 + what the owner knows it by */
	union {
		uint32_t offset_bytes; /* the owner's, one of both */
		uint32_t position;
		uint32_t next; /* of a place: 1 + another, or 0 */
	};
};

/* Memory is looked at in areas of so many pages, of so many units of 16 bytes
 * each. */
#define SP_PAIRING_PAGES 4
#define SP_PAIRING_UNITS 64

struct sp_pairing {
	struct sp_open_object *objects;
	size_t n_objects, objects_room; /* with places that are free */
	uint32_t free_at;               /* 1 + one of these, or 0 */
	/* By unit of a page, 1 + the place of its object; 0: none.  A block
	 * that no page has is zero but for the first, which is 1 + the next
	 * such block, or 0. */
	struct sp_pairing_block {
		uint32_t at[SP_PAIRING_UNITS];
	} * blocks;
	size_t n_blocks, blocks_room;
	uint32_t free_block; /* 1 + one that no page has, or 0 */
	/* Areas with n > 0 open objects; of a page with objects, 1 + its block.
	 * What is free is all zero.  Hashed by number, a power of two, at most
	 * half full. */
	struct sp_pairing_area {
		uint64_t number;
		uint32_t n;
		uint32_t block[SP_PAIRING_PAGES];
		uint8_t objects[SP_PAIRING_PAGES];
	} * areas;
	size_t n_areas, areas_room;
	size_t n; /* open objects */
	uint64_t key;
	uint64_t *allocated; /* bytes so far, by position of the thread */
	size_t n_threads, threads_room;
	bool is_sampled; /* some objects are missing */
};

void sp_pairing_init(struct sp_pairing *pairing);

/*
 * An object of that size is born at the address, drawn with that period, of a
 * thread (a position, or UINT32_MAX): *ret, whose allocated_bytes are filled
 * in.  1: another was open there, and has ended by now, *ret_missed; 0: none
 * was; or -ENOMEM.
 */
int sp_pairing_birth(struct sp_pairing *pairing, uint64_t address,
		     uint32_t thread, uint64_t size_bytes,
		     uint64_t period_bytes, struct sp_open_object **ret,
		     struct sp_open_object *ret_missed);

/* Where an object is open, until the next birth. */
struct sp_pairing_place {
	struct sp_open_object *object; /* NULL: nowhere */
	struct sp_pairing_area *area;
	uint32_t *at;
	unsigned int page;
};

struct sp_pairing_place sp_pairing_find(const struct sp_pairing *pairing,
					uint64_t address);

/* An object of one thread is freed by another or the same: age_bytes of its
 * sample. */
static inline uint64_t sp_pairing_age(const struct sp_pairing *p,
				      const struct sp_open_object *object,
				      uint32_t thread, uint32_t freed_by)
{
	return thread == freed_by && thread != UINT32_MAX && !p->is_sampled
		       ? p->allocated[thread] - object->allocated_bytes
		       : SP_UNKNOWN;
}

/* It is freed: take it out. */
void sp_pairing_drop(struct sp_pairing *pairing,
		     const struct sp_pairing_place *place);

void sp_pairing_done(struct sp_pairing *pairing);

/*
 * Samples of a stream that are open, whether their frees come by id or by
 * address: `paired` is NULL in the first case, and counts alone in the other.
 * There `object` is 0, and the owner's to find.
 */

/* The next one from position *i on, which moves behind it; false: there is
 * none. */
bool sp_pairing_next_open(const struct sp_open_samples *open,
			  const struct sp_pairing *paired, size_t *i,
			  struct sp_open_sample *ret);

/* All of them in the order of birth, *ret_n, for the caller to free.  NULL
 * without memory. */
struct sp_open_sample *sp_pairing_list_open(const struct sp_open_samples *open,
					    const struct sp_pairing *paired,
					    size_t *ret_n);
