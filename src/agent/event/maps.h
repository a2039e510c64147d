/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sys/arch.h"

/*
 * Anonymous memory that the program maps by itself, as records in its file:
 * every mapping of SP_FORMAT_MAP_BYTES_MIN and more, with its call stack, and
 * what of it is unmapped.  What the allocator maps is not the program's.
 *
 * Context of all: any, also a signal handler that interrupted the agent, which
 * records without a call stack.  Errno is preserved.
 */
struct sp_process;

/* The process whose file it is; borrowed for good.  Context: cold. */
void sp_maps_init(const struct sp_process *process);

/* A call that may end mappings: before it is made. */
struct sp_maps_call {
	uint64_t number; /* 0: there are none that it could end */
	uint64_t time_ns;
	int moves; /* sp_maps_begin_move() */
};

struct sp_maps_call sp_maps_begin(void);

/* The same of a call that may move [p, p + bytes).  Whether that has a record
 * is asked before the kernel can give the range to another thread. */
struct sp_maps_call sp_maps_begin_move(const void *p, size_t bytes);

/* It was made: of [p, p + bytes), in whole pages, nothing is mapped any more
 * that was before. */
void sp_maps_ended(const struct sp_maps_call *call, const void *p,
		   size_t bytes);

/* What had a record at `old` was moved: it is as if mapped at `made` by this
 * call. */
void sp_maps_moved(const struct sp_maps_call *call, const void *old,
		   size_t old_bytes, const void *made, size_t bytes,
		   const struct sp_call_frame *frame);

/* What waits is in the file now.  The thread is in the agent. */
void sp_maps_finish(void);

/* [p, p + bytes) can be accessed from now on: what had been mapped without
 * access is as if mapped by this call. */
void sp_maps_opened(const void *p, size_t bytes,
		    const struct sp_call_frame *frame);

/* The program has mapped so many bytes at p; flags: SP_MAP_*.  `frame` is that
 * of the function that it called. */
void sp_maps_made(const void *p, size_t bytes, uint32_t flags,
		  const struct sp_call_frame *frame);
