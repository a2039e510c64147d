/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdwfl.h>
#include <stdbool.h>

#include "attach/image.h"

/* What image.c and image_stack.c share. */

#define SP_IMAGE_FRAMES  4096
#define SP_IMAGE_STACK   65536u /* bytes, read at once */
#define SP_IMAGE_WAITING 64

enum sp_image_kind { OTHER, LIBC, LOADER, ALLOCATOR, OURS, UNKNOWN };

struct sp_image_range {
	uint64_t start, end;
};

struct sp_image {
	pid_t pid;
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	Dwfl_Module *executable, *loader, *ours;
	Dwfl_Module *libc[3]; /* before glibc 2.34 it was three */
	size_t n_libc;
	struct sp_image_range waiting[SP_IMAGE_WAITING];
	size_t n_waiting;
	/* The thread that is looked at, and its stack from the stack pointer
	 * on. */
	const struct sp_tracee *thread;
	unsigned char stack[SP_IMAGE_STACK];
	size_t stack_bytes;
	struct frame {
		uint64_t pc;
		bool is_signals; /* a handler has interrupted it */
	} frames[SP_IMAGE_FRAMES];
	size_t n_frames;
	bool has_allocator;
};

/* Where the process has a function that the module exports. */
bool sp_image_function(Dwfl_Module *mod, const char *name,
		       struct sp_image_range *ret);

/* The functions that waiting threads are in, and the way to read stacks; false:
 * libdw cannot. */
bool sp_image_prepare_stacks(struct sp_image *image);
