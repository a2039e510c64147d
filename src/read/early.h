/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "read/order.h"

/*
 * Frees that came before their sample, or have none.  Memory is proportional to
 * their number.
 */
struct sp_early_free {
	uint64_t id;
	uint64_t age_bytes;
	uint32_t thread; /* as freed_by of struct sp_sample */
	bool missed;
	bool is_over; /* it found its sample */
};

/* Zero-initialise, but for `key`. */
struct sp_early {
	uint64_t key; /* random: no file can choose ids that collide */
	struct sp_early_free *frees;
	size_t n, room;
	size_t n_over;    /* of them */
	size_t n_indexed; /* so many were looked at for the index */
	struct sp_index index;
};

/* A free; 0 or -ENOMEM. */
int sp_early_add(struct sp_early *early, const struct sp_event *event);

/* Take the first free of a sample, by its birth, if there is one: 1 and *ret,
 * at the time of the birth.  0: none; or -ENOMEM. */
int sp_early_take(struct sp_early *early, const struct sp_event *birth,
		  struct sp_event *ret);

/* Frees without a sample. */
static inline size_t sp_early_left(const struct sp_early *early)
{
	return early->n - early->n_over;
}

void sp_early_done(struct sp_early *early);
