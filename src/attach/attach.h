/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Profiling a process that was not started under the library, and letting it be
 * again. */

/* Whether glibc's malloc was asked how much is alive already: it walks its free
 * blocks for that, with a lock that all who allocate want. */
enum sp_attach_before {
	SP_ATTACH_BEFORE_OTHER, /* another allocator has been */
	SP_ATTACH_BEFORE_ASKED,
	SP_ATTACH_BEFORE_BUSY,  /* too many wanted that lock */
	SP_ATTACH_BEFORE_LARGE, /* its heap has more than this */
};
#define SP_ATTACH_HEAP_BYTES (128ull << 20)

struct sp_attach_done {
	uint64_t thread;     /* that was stopped */
	uint64_t stopped_ns; /* for how long */
	uint64_t places;     /* pointers and symbols that were written */
	enum sp_attach_before before;
	uint64_t heap_bytes; /* of glibc's malloc, if that is the allocator */
};

/*
 * Load the library into process `pid` and begin a profile with these settings
 * (SAMPLEPROF_NAME=VALUE, n of them).  0, or a negative errno and *err, and the
 * process is as it was, but may have the library loaded.  `ask_before`: glibc
 * is asked how much is alive even if it takes long.
 */
int sp_attach_begin(uint64_t pid, const char *const *settings, size_t n,
		    bool ask_before, struct sp_attach_done *ret,
		    struct sp_error *err);

/* End it.  0; -ESRCH: nothing is attached there; or another negative errno;
 * with *err. */
int sp_attach_end(uint64_t pid, struct sp_attach_done *ret,
		  struct sp_error *err);

/* Does the process see our files by the same names? */
bool sp_attach_sees_our_files(uint64_t pid);
