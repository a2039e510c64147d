/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "attach/image.h"

/* Can that process be attached to?  What speaks against it has its own words,
 * with the remedy. */

/* By what the kernel says.  0, and whether its system calls are filtered; or a
 * negative errno and *err. */
int sp_suitable_check(uint64_t pid, bool *ret_filtered, struct sp_error *err);

/* By what it has loaded.  0; -ENOEXEC; *err. */
int sp_suitable_check_image(pid_t pid, const struct sp_image *image,
			    struct sp_error *err);

/* The kernel has refused tracing: -EPERM and *err. */
int sp_suitable_explain_refusal(uint64_t pid, struct sp_error *err);

/* -EBUSY and *err: why no thread of it could be had. */
int sp_suitable_explain_silence(uint64_t pid, struct sp_error *err);

/* How long the process has run. */
uint64_t sp_suitable_age_ms(uint64_t pid);

/* Of the heap of glibc's malloc: its address space, or a little more; without
 * large blocks. */
uint64_t sp_suitable_heap_bytes(uint64_t pid);
