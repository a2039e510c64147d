/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "attach/tracee.h"

/*
 * What a process has loaded, read from outside, before any thread of it is
 * stopped: where functions are, and which code a thread is in.  The files are
 * those that the process has mapped, in whatever mount namespace it is.
 */
struct sp_image;

/* 0, or negative errno and *err: no such process, not ours to read. */
int sp_image_open(pid_t pid, struct sp_image **ret, struct sp_error *err);
void sp_image_close(struct sp_image *image);

/* Where the process has the function of that name that its C library exports;
 * or, of the library attached to it; 0: nowhere. */
uint64_t sp_image_libc(const struct sp_image *image, const char *name);
uint64_t sp_image_ours(const struct sp_image *image, const char *name);

/* Each thread has both of these variables of the C library: how far one is
 * behind the other.  False: there are none of these names. */
bool sp_image_libc_distance(const struct sp_image *image, const char *from,
			    const char *to, uint64_t *ret);

/* Bytes in the code of the C library, or of the vDSO: where, or 0. */
uint64_t sp_image_find_code(const struct sp_image *image, const void *bytes,
			    size_t n);

/* Is there a dynamic loader, is it glibc's, and does the executable itself
 * define malloc? */
bool sp_image_has_loader(const struct sp_image *image);
bool sp_image_has_glibc(const struct sp_image *image);
bool sp_image_has_own_malloc(const struct sp_image *image);

/* Has it loaded an allocator besides that of the C library? */
bool sp_image_has_allocator(const struct sp_image *image);

/*
 * May a stopped thread be made to load a library where it is?  Yes, if every
 * frame of its stack is known, none is of the loader, of an allocator or of a
 * signal handler, and it is in the C library only where it waits: so it holds
 * no lock that the loader or the allocator wants.
 */
bool sp_image_may_call(struct sp_image *image, const struct sp_tracee *t);
