/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "agent/sys/arch.h"
#include "agent/unwind/lane.h"

/*
 * A second way up the stack: by libunwind, of which this library has a private
 * copy in a file beside it.  No other code of the process reaches the copy, and
 * it reaches nothing but the functions of ours that it is bound to: all memory
 * is read by these, so nothing takes a lock, allocates or asks the loader.
 */

/* Map the copy, if that takes at most so many bytes of address space.  NULL, or
 * why it cannot be used.  Context: cold. */
const char *sp_peer_init(const char *path, uint64_t most);

/* The same of the file beside this library; false: `why` says it, after the
 * file's name. */
#define SP_PEER_WHY_BYTES 512
bool sp_peer_init_beside(uint64_t most, char why[SP_PEER_WHY_BYTES]);

/*
 * The walk from `from` by libunwind, if that leads at least as far as `tables`,
 * the walk by tables from there; else that one.  Also that one where libunwind
 * cannot walk: on a stack that is not the thread's own, or has little room, and
 * beyond SP_PEERS threads at the same moment.
 *
 * It is about 100 times slower.  Context: sampled.
 */
#define SP_PEERS 16
const struct sp_walk *sp_peer_walk(struct sp_lane *lane,
				   const struct sp_call_frame *from,
				   unsigned int max,
				   const struct sp_walk *tables, bool *is_cut);
