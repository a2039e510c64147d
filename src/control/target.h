/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/layout.h"

/*
 * A process that is being profiled: found by the profile that it has mapped,
 * and reached through that file's control block.  What is in /proc and in the
 * file is untrusted.
 */
#define SP_TARGET_PATH_MAX 4200

struct sp_target {
	uint64_t pid; /* here; the file may name another, of its namespace */
	int fd;       /* of the profile; -1: none */
	/* Of the profile, as it can be opened from here: below /proc/PID/root
	 * if the process has another root directory than we have. */
	char path[SP_TARGET_PATH_MAX];
	struct sp_file_header header;
};

/*
 * Open the profile that process `pid` writes, for reading and writing.  0;
 * -ESRCH: no such process; -EACCES: not ours to look at; -ENOENT: it writes no
 * profile; and *err.  Close it in any case.
 */
int sp_target_open(struct sp_target *target, uint64_t pid,
		   struct sp_error *err);
void sp_target_close(struct sp_target *target);

/* Calls found(arg, target) for every process with a profile that we may open,
 * by ascending process ids.  0; -ENOMEM, or -errno if /proc cannot be read,
 * and *err. */
typedef void sp_target_found(void *arg, const struct sp_target *target);
int sp_target_list(sp_target_found *found, void *arg, struct sp_error *err);

/* Has a process that we may look at this file mapped, to write to it? */
bool sp_target_is_written(const char *path);

/* The header of an open profile; false if it is none of a known version. */
bool sp_target_read_header(int fd, struct sp_file_header *ret);

/* What is asked of a process. */
struct sp_order {
	enum sp_control_command command;
	uint64_t period_bytes;
	const char *name; /* NULL: none */
};

/* Queue an order.  0 and its number; -EAGAIN if the queue is full, -ENOSYS if
 * the library in the process has none, -EIO; with *err. */
int sp_target_ask(const struct sp_target *target, const struct sp_order *order,
		  uint64_t *ret_number, struct sp_error *err);

/*
 * Wait at most timeout_ns until the order of that number was carried out.  0
 * and *ret_time_ns, when that was since the start of the process; -ETIMEDOUT,
 * without *err: it waits its turn.  With *err: what the process answered
 * instead, like -EINVAL; -ENODATA if the answer has made room for a later one;
 * -ESRCH if the process has ended.
 */
int sp_target_wait(const struct sp_target *target, uint64_t number,
		   uint64_t timeout_ns, uint64_t *ret_time_ns,
		   struct sp_error *err);

/* What the process answered to an order SP_CONTROL_MEMORY of that number, which
 * it has carried out, and where its allocator's size classes are (0: nowhere;
 * see struct sp_control_order); false: another order has its place by now. */
bool sp_target_read_memory(const struct sp_target *target, uint64_t number,
			   struct sp_control_memory *ret,
			   uint64_t *ret_classes);

/* Likewise to an order SP_CONTROL_SLABS. */
bool sp_target_read_slabs(const struct sp_target *target, uint64_t number,
			  struct sp_control_slabs *ret);

/* What is queued, and what was carried out; false if it cannot be read. */
bool sp_target_read_orders(const struct sp_target *target,
			   struct sp_control *ret);

/* Orders that wait. */
uint64_t sp_target_waiting(const struct sp_control *orders);

/* Is the process stopped, by a signal or a debugger? */
bool sp_target_is_stopped(const struct sp_target *target);

/* How long the process has written nothing to its profile but samples. */
uint64_t sp_target_silence_ns(const struct sp_target *target);
