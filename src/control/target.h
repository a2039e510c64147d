/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/proc.h"
#include "format/layout.h"

/*
 * A process that is being profiled.  It is found by the profile that it has
 * mapped, and reached through the control block of that file.  The names in
 * /proc and the contents of the file are untrusted: what is opened is what the
 * kernel says that is mapped, and the header has to be of that process.
 */
#define SP_TARGET_PATH_MAX 4200

struct sp_target {
	/* In our namespace; the file may have the id of another namespace. */
	uint64_t pid;
	/* Of the profile, for reading, or by O_PATH if a process serves it
	 * (base/patience.h); -1: none. */
	int fd, copy;
	/* The profile's name, to be said: below /proc/PID/root if the process
	 * has another root directory.  Who opens it may find another file. */
	char path[SP_TARGET_PATH_MAX];
	/* The profile itself, by its descriptor, after sp_target_read(). */
	char file[32];
	struct sp_proc_file mapped;
	struct sp_file_header header;
};

/*
 * Open the profile that process `pid` writes.  0; -ESRCH: no such process;
 * -EACCES: we may not look at it; -ENOENT: it writes no profile; -ETIMEDOUT:
 * who serves its file does not answer; and *err. Close the target in any case.
 */
int sp_target_open(struct sp_target *target, uint64_t pid,
		   struct sp_error *err);
void sp_target_close(struct sp_target *target);

/* Who serves a file of the process does not answer: -ETIMEDOUT. */
int sp_target_explain_silence(uint64_t pid, const char *path,
			      struct sp_error *err);

/* What a process serves is copied.  0; or -ETIMEDOUT and *err. */
int sp_target_read(struct sp_target *target, struct sp_error *err);

/* Calls found(arg, target) for every process with a profile that we may open,
 * by ascending process ids.  0; -ENOMEM, or -errno if /proc cannot be read,
 * and *err. */
typedef void sp_target_found(void *arg, const struct sp_target *target);
/* A process whose file was not answered. */
typedef void sp_target_silent(void *arg, const struct sp_error *why);
int sp_target_list(sp_target_found *found, sp_target_silent *silent, void *arg,
		   struct sp_error *err);

/* Does the process still write that profile? */
bool sp_target_is_there(const struct sp_target *target);

/* The process that writes this profile; *ret_pid is 0 if there is none that we
 * may look at.  0; -EINVAL: it is no profile; or -errno. */
int sp_target_writer(const char *path, uint64_t *ret_pid);

/* Is there one?  True also if that cannot be told. */
bool sp_target_is_written(const char *path);

/* The header of an open profile; false if it is none of a known version. */
bool sp_target_read_header(int fd, struct sp_file_header *ret);

/* A command for a process. */
struct sp_order {
	enum sp_control_command command;
	uint64_t period_bytes;
	const char *name; /* NULL: none */
};

/* Queue an order, after waiting some seconds at most for who gives another.  0
 * and its number; -EAGAIN if the queue is full, -EBUSY if its lock is held for
 * longer, -ENOSYS if the library in the process has none, -EACCES, -EIO; with
 * *err. */
int sp_target_ask(const struct sp_target *target, const struct sp_order *order,
		  uint64_t *ret_number, struct sp_error *err);

/*
 * Wait at most timeout_ns until the order of that number was carried out. 0 and
 * *ret_time_ns, the time since the start of the process; -ETIMEDOUT, without
 * *err: the order still waits.  With *err: the error that the process answered,
 * such as -EINVAL; -ENODATA if a later answer has overwritten this one; -ESRCH
 * if the process has ended.
 */
int sp_target_wait(const struct sp_target *target, uint64_t number,
		   uint64_t timeout_ns, uint64_t *ret_time_ns,
		   struct sp_error *err);

/* The answer to an order SP_CONTROL_MEMORY of that number, which was carried
 * out, and the address of the allocator's size classes (0: none; see struct
 * sp_control_order).  False: a later order has overwritten it. */
bool sp_target_read_memory(const struct sp_target *target, uint64_t number,
			   struct sp_control_memory *ret,
			   uint64_t *ret_classes);

/* Likewise for an order SP_CONTROL_SLABS. */
bool sp_target_read_slabs(const struct sp_target *target, uint64_t number,
			  struct sp_control_slabs *ret);

/* All orders, queued and carried out; false if they cannot be read. */
bool sp_target_read_orders(const struct sp_target *target,
			   struct sp_control *ret);

/* The number of orders that wait. */
uint64_t sp_target_waiting(const struct sp_control *orders);

/* Is the process stopped, by a signal or a debugger? */
bool sp_target_is_stopped(const struct sp_target *target);

/* How long the process has written nothing but samples to its profile. */
uint64_t sp_target_silence_ns(const struct sp_target *target);
