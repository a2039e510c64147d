/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "control/tracee.h"

/*
 * What a process has loaded: the addresses of functions, and the object that an
 * address belongs to.  It is read from outside, before any thread is stopped.
 * The files are those that the process has mapped, in its own mount namespace.
 * All addresses are of the process.
 */
struct sp_image;

/* Read it.  0, and *ret is to be closed; or a negative errno, *err and NULL in
 * *ret: no such process, no right to read it, or not an ELF program. */
int sp_image_open(pid_t pid, struct sp_image **ret, struct sp_error *err);
void sp_image_close(struct sp_image *image); /* may be NULL */

/* The address of the function `name` that the C library exports, or that our
 * library exports, if it is attached.  0: there is none. */
uint64_t sp_image_libc(const struct sp_image *image, const char *name);
uint64_t sp_image_ours(const struct sp_image *image, const char *name);

/* The address of an object of that name that our library exports. */
uint64_t sp_image_our_object(const struct sp_image *image, const char *name);

/* The distance in bytes, in every thread, from the thread-local variable `from`
 * of the C library to its thread-local variable `to`.  False: it has no such
 * variables. */
bool sp_image_libc_distance(const struct sp_image *image, const char *from,
			    const char *to, uint64_t *ret);

/* The address of these n bytes in the code of the C library, or of the vDSO.
 * 0: they are in neither. */
uint64_t sp_image_find_code(const struct sp_image *image, const void *bytes,
			    size_t n);

/* Has it a dynamic loader; is its C library glibc; does the executable itself
 * define malloc; has it loaded an allocator besides that of the C library? */
bool sp_image_has_loader(const struct sp_image *image);
bool sp_image_has_glibc(const struct sp_image *image);
bool sp_image_has_own_malloc(const struct sp_image *image);
bool sp_image_has_symbols(const struct sp_image *image); /* its own ones */
bool sp_image_has_allocator(const struct sp_image *image);

/*
 * May the stopped thread be made to load a library where it is?  True if every
 * frame of its stack is known, no frame is of the loader, of an allocator, of
 * our library or of a signal handler, and the C library is the innermost part
 * only where the thread waits.  So the thread holds no lock that the loader or
 * the allocator needs.
 *
 * Of an allocator in the executable nobody knows where its code ends.  There
 * the thread has to wait in the C library for what no allocator waits for.
 */
bool sp_image_may_call(struct sp_image *image, const struct sp_tracee *t);

/* Could the last stack be followed to its end? */
bool sp_image_knew_stack(const struct sp_image *image);
