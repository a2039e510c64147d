/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "export/rows.h"
#include "model/profile.h"

/*
 * What a process has allocated since it was sent last, by call stack. Estimates
 * of a stack may become less when more is known, and what was sent cannot be
 * taken back: a stack gets what it has more than was sent of it, and all of
 * these are scaled so that they add up to what the exact total has grown by.
 * So the sum of all that was sent is the exact total, always, and each stack
 * follows its estimate.
 */
struct sp_deltas;

struct sp_deltas *sp_deltas_new(void); /* NULL without memory */
void sp_deltas_free(struct sp_deltas *deltas);

/*
 * Make rows (one for each stack) into deltas: `alloc` becomes what is to be
 * sent, in whole numbers; `inuse` stays.  Rows without both go.  Returns how
 * many are left, SIZE_MAX without memory.  What an earlier call said and was
 * not committed is forgotten.
 */
size_t sp_deltas_take(struct sp_deltas *deltas,
		      const struct sp_profile *profile, struct sp_row *rows,
		      size_t n);

/* What was taken last was sent. */
void sp_deltas_commit(struct sp_deltas *deltas);

/* The bytes that were taken last, and of the exact total those that never were:
 * where there is no sample. */
uint64_t sp_deltas_bytes(const struct sp_deltas *deltas);
uint64_t sp_deltas_missing(const struct sp_deltas *deltas,
			   const struct sp_profile *profile);
