/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "agent/file/livemaps.h"
#include "agent/file/mapqueue.h"

/*
 * agent/file/livemaps.c seen from inside, with mapqueue.c.  Link this library
 * instead of having the files from sp_agent_core.
 */

/* Called by the calling thread between the atomic operations of both; NULL:
 * nothing is. */
extern _Thread_local void (*livemaps_check_step)(void);

/* The thread that has the table, or NULL. */
const void *livemaps_check_holder(void);

/* The first mapping without a record; false: there is none. */
bool livemaps_check_unwritten(struct sp_span *ret);

/* Cells that some thread is filling, and those that are not free. */
unsigned int livemaps_check_filling(void);
unsigned int livemaps_check_used(void);
