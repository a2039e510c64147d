/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/spans.h"

/*
 * Changes of the table of mappings (livemaps.h) that wait.  A thread that finds
 * the table taken puts its change here and goes on; the holder of the table
 * applies it.
 *
 * Order: a change is applied before every change that any thread puts after
 * sp_mapqueue_put() of the first has returned.
 */
#define SP_MAPQUEUE_MAX 16384u

enum sp_mapchange_kind {
	SP_MAPCHANGE_CUT,   /* [start, end) of what is older than `number` */
	SP_MAPCHANGE_PUT,   /* the span */
	SP_MAPCHANGE_MOVE,  /* as CUT, and the span if something was cut */
	SP_MAPCHANGE_OPEN,  /* what the span covers of what has no access */
	SP_MAPCHANGE_PLACE, /* where the record of the span is */
};

struct sp_mapchange {
	enum sp_mapchange_kind kind;
	uint32_t epoch; /* its owner's affair */
	uint64_t start, end, number;
	struct sp_span span;
};

/* False: too many wait.  Context: any. */
bool sp_mapqueue_put(const struct sp_mapchange *change);

/* May any change wait?  True, if one was put before the last sp_mapqueue_take()
 * began and was not taken.  Context: any. */
bool sp_mapqueue_any(void);

/* By the holder of the table: `fn` is told of those that wait, in order, up to
 * 256.  True: it was told of all that were there when it began. */
typedef void sp_mapqueue_fn(const struct sp_mapchange *change);
bool sp_mapqueue_take(sp_mapqueue_fn *fn);

/* In a forked child, by its only thread: drops all changes but those that this
 * thread was putting here when a signal handler on it forked. */
void sp_mapqueue_reset(void);

/* The calling thread has left one of these in the middle (inside.h): the number
 * of changes that it did not get to put. */
unsigned int sp_mapqueue_give_left(void);
