/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "export/rows.h"
#include "model/profile.h"

/*
 * What a process has allocated since the last delta, by call stack.  The
 * estimate of a stack may decrease when more is known, but a server cannot take
 * back what was sent.  So each stack gets what its estimate has more than was
 * sent for it, and all of these are scaled to add up to the growth of the exact
 * total.  Then the sum of all deltas always is the exact total, and each stack
 * follows its estimate.
 */
struct sp_deltas;

struct sp_deltas *sp_deltas_new(void); /* NULL without memory */
void sp_deltas_free(struct sp_deltas *deltas);

/*
 * Make rows (one for each stack) into deltas: `alloc` becomes what is to be
 * sent, in whole numbers; `inuse` stays.  Rows that have neither are removed.
 * Returns how many are left, SIZE_MAX without memory.  A delta of an earlier
 * call that was not committed is forgotten.
 */
size_t sp_deltas_take(struct sp_deltas *deltas,
		      const struct sp_profile *profile, struct sp_row *rows,
		      size_t n);

/* Commit: the delta that was taken last was sent. */
void sp_deltas_commit(struct sp_deltas *deltas);

/* The bytes that were taken last, and of the exact total those that never were:
 * where there is no sample. */
uint64_t sp_deltas_bytes(const struct sp_deltas *deltas);
uint64_t sp_deltas_missing(const struct sp_deltas *deltas,
			   const struct sp_profile *profile);
