/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"
#include "format/layout.h"

/*
 * The Python functions that a thread is in, read from the frames of CPython: of
 * 3.9 to 3.12, and of 3.13 and later as far as the interpreter says where they
 * are.
 *
 * Each invocation of the interpreter's loop is a frame of the C stack, and runs
 * some Python frames.  Which ones a record in the C frame tells, and so it is
 * known that they are the thread's present ones.  Where that does not hold the
 * C frames stay as they are.
 */

#define SP_PYTHON_VERSION_MAX 8u
#define SP_PYTHON_PAGES       128u /* a power of two */

/* A function, and where it is. */
struct sp_python_frame {
	uintptr_t code;  /* the code object */
	uint64_t print;  /* a hash of what that says of itself */
	uint32_t unit;   /* the instruction, counted in 16-bit units */
	uint32_t run_by; /* the frame of the C stack that runs it */
};

#define SP_PYTHON_BEGIN   UINT32_MAX       /* the function has not begun */
#define SP_PYTHON_NOWHERE (UINT32_MAX - 1) /* where it is is not known */

struct sp_python_interpreter;

/* Of a lane: what a walk found, and room for the texts of one frame. */
struct sp_python {
	const struct sp_python_interpreter *in;
	bool is_lost; /* a function could not be read */
	unsigned int n;
	struct sp_python_frame frames[SP_LANE_DEPTH];
	/* Of what living frames hold, pages that the kernel was asked about. */
	uintptr_t pages[SP_PYTHON_PAGES];
	char function[SP_FORMAT_CODE_TEXT_MAX];
	char file[SP_FORMAT_CODE_TEXT_MAX];
};

/* What a frame is called. */
struct sp_python_name {
	const char *function; /* "py::Shop.pay" */
	size_t function_bytes;
	const char *file; /* as its code object has it; may be empty */
	size_t file_bytes;
	uint32_t line; /* 0: not known */
};

/* How many interpreters have been met that can be read. */
unsigned int sp_python_count(void);

/* Is the object one?  To be asked once of each object.  Context: sampled. */
void sp_python_meet(struct sp_module_entry *e);

/* In a forked child: no other thread is asking. */
void sp_python_reset(void);

/*
 * The Python frames that run in pcs[0..n) of the walk, innermost first, none
 * if there are none or no memory; *hash then depends on them.  They stay until
 * the next walk with this lane.  Reads only memory that living frames hold.
 * Context: sampled.
 */
const struct sp_python *sp_python_walk(struct sp_lane *lane,
				       const struct sp_walk *walk,
				       unsigned int n,
				       struct sp_walk_hash *hash);

/* The name of a frame of the last walk, in the lane's room.  False: it cannot
 * be read.  Context: as above. */
bool sp_python_name(struct sp_lane *lane, const struct sp_python_frame *frame,
		    struct sp_python_name *ret);

/* A version that was met and cannot be read, as text: "3.15"; false: none. */
bool sp_python_unread(char ret[SP_PYTHON_VERSION_MAX]);
