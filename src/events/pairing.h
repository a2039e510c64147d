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
	struct sp_open_sample sample; /* the owner's; its group is not 0 */
	uint64_t allocated_bytes;     /* by its thread, with it */
	uint32_t thread;              /* position, or UINT32_MAX */
};

/* Memory is looked at in pages of so many units of 16 bytes. */
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
	/* Pages with n > 0 open objects.  Hashed by number, a power of two, at
	 * most half full. */
	struct sp_pairing_page {
		uint64_t number;
		uint32_t block;
		uint32_t n;
	} * pages;
	size_t n_pages, pages_room;
	size_t n; /* open objects */
	uint64_t key;
	uint64_t *allocated; /* bytes so far, by position of the thread */
	size_t n_threads, threads_room;
	bool is_sampled; /* some objects are missing */
};

/* The end of an object. */
struct sp_pairing_end {
	struct sp_open_sample sample;
	uint64_t age_bytes; /* as of struct sp_sample */
};

void sp_pairing_init(struct sp_pairing *pairing);

/* An object of that size is born at the address, drawn with that period; its
 * allocated_bytes are filled in.  1: another was open there, and has ended by
 * now, *ret_missed; 0: none was; or -ENOMEM. */
int sp_pairing_birth(struct sp_pairing *pairing, uint64_t address,
		     const struct sp_open_object *born, uint64_t size_bytes,
		     uint64_t period_bytes, struct sp_pairing_end *ret_missed);

/* That thread (a position, or UINT32_MAX) has freed the address.  False: no
 * object is open there. */
bool sp_pairing_free(struct sp_pairing *pairing, uint64_t address,
		     uint32_t thread, struct sp_pairing_end *ret);

void sp_pairing_done(struct sp_pairing *pairing);

/*
 * Samples of a stream that are open, whether their frees come by id or by
 * address: `paired` is NULL in the first case, and counts alone in the other.
 */

/* The next one from position *i on, which moves behind it; NULL: there is
 * none. */
const struct sp_open_sample *sp_pairing_next_open(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *i);

/* All of them in the order of birth, *ret_n, for the caller to free.  NULL
 * without memory. */
const struct sp_open_sample **sp_pairing_list_open(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *ret_n);
