/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdwfl.h>
#include <stdbool.h>

#include "control/image.h"

/* What image.c and image_stack.c share. */

#define SP_IMAGE_FRAMES  4096   /* a deeper stack is refused */
#define SP_IMAGE_STACK   65536u /* bytes of a stack that are read at once */
#define SP_IMAGE_WAITING 64

/* What an object is.  UNKNOWN: an address outside all objects. */
enum sp_image_kind { OTHER, LIBC, LOADER, ALLOCATOR, OURS, UNKNOWN };

/* Addresses of the process, without `end`. */
struct sp_image_range {
	uint64_t start, end;
};

struct sp_image {
	pid_t pid; /* or of a thread of it that lives */
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	Dwfl_Module *executable, *loader, *ours;
	Dwfl_Module *libc[3]; /* with libpthread and libdl before glibc 2.34 */
	size_t n_libc;
	/* Functions in which a thread only waits. */
	struct sp_image_range waiting[SP_IMAGE_WAITING];
	size_t n_waiting;
	/* The thread that is examined, a copy of its stack from the stack
	 * pointer upwards, and its frames, the innermost one first. */
	const struct sp_tracee *thread;
	unsigned char stack[SP_IMAGE_STACK];
	size_t stack_bytes;
	struct frame {
		uint64_t pc;
		bool is_interrupted; /* by a signal handler */
	} frames[SP_IMAGE_FRAMES];
	size_t n_frames;
	bool is_stack_known; /* of the last thread, to its end */
	bool has_allocator;
	bool has_own_malloc; /* the executable has it */
};

/* The addresses of the function `name` that the module (may be NULL) exports.
 * False: it exports none. */
bool sp_image_function(Dwfl_Module *mod, const char *name,
		       struct sp_image_range *ret);

/* Fill image->waiting, and attach libdw to the stacks of the process.  False:
 * libdw cannot read them; dwfl_errmsg(-1) says why. */
bool sp_image_prepare_stacks(struct sp_image *image);
