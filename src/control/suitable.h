/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "control/image.h"

/* Can a process be attached to?  Each obstacle has a message of its own that
 * names the remedy. */

/* Check what the kernel says of the process.  0, and whether a seccomp filter
 * is in force; or *err and -ESRCH: no such process, or it has ended; -EPERM: it
 * may not be traced; -EBUSY: it is traced or stopped; -ENOEXEC: the library
 * cannot be loaded into it. */
int sp_suitable_check(uint64_t pid, bool *ret_filtered, struct sp_error *err);

/* Check what the process has loaded.  0; or -ENOEXEC and *err. */
int sp_suitable_check_image(pid_t pid, const struct sp_image *image,
			    struct sp_error *err);

/* Explain why the kernel refused to trace the process: -EPERM and *err. */
int sp_suitable_explain_refusal(uint64_t pid, struct sp_error *err);

/* Another command like this one is at work where `tracer` traces. */
bool sp_suitable_is_ours(pid_t tracer);

/* Explain that process `tracer` traces the process: -EBUSY and *err. */
int sp_suitable_explain_tracer(uint64_t pid, pid_t tracer,
			       struct sp_error *err);

bool sp_suitable_has_ended(uint64_t pid);

/* The program that a process runs.  It differs after each execve, also of the
 * same file. */
struct sp_suitable_program {
	uint64_t at; /* address of `random`; 0: not known */
	unsigned char random[16];
};

void sp_suitable_read_program(pid_t pid, struct sp_suitable_program *ret);

/* Is it known that the process runs another program now? */
bool sp_suitable_has_executed(pid_t pid,
			      const struct sp_suitable_program *before);

/* Explain why no thread of the process could be used in time; `has_stopped`: at
 * least one has stopped.  -EBUSY and *err. */
int sp_suitable_explain_silence(uint64_t pid, bool has_stopped,
				struct sp_error *err);

/* The number of its threads; 0: not known. */
uint64_t sp_suitable_threads(uint64_t pid);

/* Milliseconds since the process was started; 0: not known. */
uint64_t sp_suitable_age_ms(uint64_t pid);

/* Bytes of address space of the heap of glibc's malloc, without blocks that
 * have a mapping of their own.  Other mappings with the alignment of an arena
 * count too, so it may be too large. */
uint64_t sp_suitable_heap_bytes(uint64_t pid);
