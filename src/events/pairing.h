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
	uint64_t address;
	uint64_t allocated_bytes; /* by its thread, with it */
	uint32_t thread;          /* position, or UINT32_MAX */
};

struct sp_pairing {
	struct sp_open_object *objects;
	size_t n_objects, objects_room; /* with places that are free */
	uint32_t free_at;               /* 1 + one of these, or 0 */
	/* By address: part of its hash, and 1 + the place; 0: free.  A power
	 * of two, at most half full. */
	struct sp_pairing_cell {
		uint32_t hash, at;
	} * cells;
	size_t n_cells, n;
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

/* An object of that size is born, drawn with that period; its allocated_bytes
 * are filled in.  1: another was open there, and has ended by now, *ret_missed;
 * 0: none was; or -ENOMEM. */
int sp_pairing_birth(struct sp_pairing *pairing,
		     const struct sp_open_object *born, uint64_t size_bytes,
		     uint64_t period_bytes, struct sp_pairing_end *ret_missed);

/* That thread (a position, or UINT32_MAX) has freed the address.  False: no
 * object is open there. */
bool sp_pairing_free(struct sp_pairing *pairing, uint64_t address,
		     uint32_t thread, struct sp_pairing_end *ret);

/* Births and frees of the address are near: first its cell, then, when that is
 * there, its object. */
void sp_pairing_prefetch_cell(const struct sp_pairing *pairing,
			      uint64_t address);
void sp_pairing_prefetch_object(const struct sp_pairing *pairing,
				uint64_t address);

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
