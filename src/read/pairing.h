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
struct sp_pairing {
	struct sp_open_samples open;
	uint64_t *allocated; /* bytes so far, by position of the thread */
	size_t n_threads, threads_room;
	bool is_sampled; /* some objects are missing */
};

/* The end of an object. */
struct sp_pairing_end {
	uint64_t id;        /* of its sample */
	uint64_t age_bytes; /* as of struct sp_sample */
};

void sp_pairing_init(struct sp_pairing *pairing);

/* `sample` is of the object at that address.  1: another was open there, and
 * has ended by now, *ret_missed; 0: none was; or -ENOMEM. */
int sp_pairing_birth(struct sp_pairing *pairing, const struct sp_sample *sample,
		     uint64_t address, struct sp_pairing_end *ret_missed);

/* That thread (a position, or UINT32_MAX) has freed the address.  False: no
 * object is open there. */
bool sp_pairing_free(struct sp_pairing *pairing, uint64_t address,
		     uint32_t thread, struct sp_pairing_end *ret);

void sp_pairing_done(struct sp_pairing *pairing);
