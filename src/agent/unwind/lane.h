/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/unwind/cfi_program.h"
#include "agent/unwind/flow.h"
#include "agent/unwind/stack_bounds.h"
#include "base/hash.h"
#include "base/wide.h"
#include "format/encode.h"

/*
 * A lane is what one thread needs while it takes a sample: the chunk of the
 * file that it appends to, its last walk up the stack, and scratch memory that
 * would be too large for the host's stacks.  There are as many lanes in use as
 * threads sample at the same moment, so memory and file space grow neither with
 * the number of threads nor with their births.
 *
 * A lane is taken by try-lock and never waited for: a thread that finds none
 * drops its sample and counts it.  The last lane is for what is said once of
 * the process, also while all others are taken: `detach` has stopped their
 * threads then, perhaps in the middle of a sample.
 */
#define SP_LANES        65
#define SP_LANE_DEPTH   (SP_FORMAT_FRAMES_MAX)
#define SP_LANE_RETURNS 256 /* a power of two */

/* Where records go: a chunk of the file that one thread fills at a time. */
struct sp_tail {
	uint8_t *chunk;      /* NULL: none yet */
	uint64_t number;     /* of the chunk in the file */
	uint32_t generation; /* of the file that the chunk belongs to */
	uint32_t segment;    /* that it belongs to; 0: permanent (ring.h) */
	size_t at;
	size_t populated; /* bytes of the chunk backed by storage */
	struct sp_chunk_state state;
	bool is_writing; /* a thread is, or has left in the middle */
};

/* Of a return address and of all those outside it. */
struct sp_walk_hash {
	uint64_t low, high;
};

#define SP_WALK_HASH_OUTSIDE                                                   \
	((struct sp_walk_hash){SP_HASH_MULTIPLIER, SP_HASH_MULTIPLIER})

static inline struct sp_walk_hash sp_walk_hash_add(struct sp_walk_hash outside,
						   const void *pc)
{
	const sp_u128 product = (sp_u128)(outside.low ^ (uintptr_t)pc) *
				(outside.high + SP_HASH_MULTIPLIER);

	return (struct sp_walk_hash){(uint64_t)product,
				     (uint64_t)(product >> 64)};
}

/*
 * A walk up the stack (framewalk.c): return addresses, and the registers at
 * each, in [first, first + n) of the arrays, so that a walk with the same outer
 * frames finds room in front of them.  `at` is NULL if they are not known.
 */
struct sp_walk {
	unsigned int first;
	unsigned int n;       /* 0: none */
	unsigned int modules; /* objects known then */
	bool is_whole;        /* the last is the outermost frame */
	unsigned int room;    /* twice the longest walk; the arrays have one
				 more */
	void **pcs;
	struct sp_walk_registers {
		uintptr_t sp;
		uintptr_t bp;
		const uintptr_t *bp_at; /* where bp was found, or NULL */
		const uintptr_t *pc_at; /* where the address was found */
	} * at;
	struct sp_walk_hash *hashes; /* [i]: of pcs[i] */
};

/* All of it belongs to the holder. */
struct sp_lane {
	_Atomic uint32_t takes; /* so often was it taken */

	struct sp_tail tail;           /* writer.c */
	_Atomic uint64_t chunk_number; /* ring.c: which chunk that is */

	struct sp_cfi_run cfi; /* framewalk.c: for reading unwind tables */
	struct sp_flow flow;   /* untabled.c: for reading instructions */
	/* framewalk.c: addresses known to be behind a call, by their bits. */
	uintptr_t returns[SP_LANE_RETURNS];
	struct sp_walk walks[2]; /* the last one, and room for the next */
	unsigned int walk;       /* which is the last */
	struct sp_stack_bounds_known stacks[SP_STACK_BOUNDS_KNOWN];

	struct sp_python *python; /* python.c; NULL: not needed so far */
	void *caller; /* stack.c: of a stack that could not be walked */
	struct sp_record_frame frames[SP_LANE_DEPTH];
};

/* A free lane, preferably the one the caller last had (*hint), or NULL.
 * Context: sampled. */
struct sp_lane *sp_lane_take(uint8_t *hint);

/* The same for a fact of the process: the last lane, if no other is free. */
struct sp_lane *sp_lane_take_for_fact(uint8_t *hint);
void sp_lane_give(struct sp_lane *lane);

/* The calling thread has left those that it holds, in the middle of whatever:
 * they begin without a last walk. */
void sp_lane_give_left(void);

/* The sp_thread of the thread that took it, or NULL. */
const void *sp_lane_holder(const struct sp_lane *lane);

/* Lanes that were ever taken at the same time. */
unsigned int sp_lane_count(void);

/* A lane as a small number, never 0; 0 is no lane. */
uint8_t sp_lane_number(const struct sp_lane *lane);
struct sp_lane *sp_lane_of(uint8_t number);

/*
 * After fork, in the child: all lanes are free and write to no file, but for
 * those that the caller is in the middle of using, perhaps below a signal
 * handler.  What a vanished thread was doing to its last walk is not known, so
 * a lane that was busy starts without one.
 */
void sp_lane_reset(void);

/* Give no lane any more, until they are open again; false: a thread still has
 * one.  Context: cold. */
bool sp_lane_close(void);
void sp_lane_open(void);

/* Were they to be closed, and are not open again? */
bool sp_lane_is_closed(void);
