/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A child that makes calls, one of which may never end: then it is killed, and
 * left to it.  It is no thread, since a process does not end before its threads
 * do.  It has a copy of our memory, as after fork(), and shares `room` alone;
 * it has no descriptor of ours, so that no reader of a pipe waits for its end.
 * A child that has answered makes the next call, too; it ends with us, also if
 * it is stopped.  Offline code only.
 *
 * A call makes system calls alone: it may neither allocate nor lock, since
 * another thread may have been doing so when the child began.
 */
struct sp_deputy {
	void *room; /* SP_DEPUTY_BYTES */
	pid_t pid, owner;
	pid_t thread; /* of the owner, with which it ends */
	uid_t user;   /* whose rights it has */
	int to;
};

#define SP_DEPUTY_BYTES ((1u << 20) + 16384u)
#define SP_DEPUTY_NS    2000000000ull

struct sp_deputy_call {
	/* Its result, or -errno.  The child has a descriptor for each of ours,
	 * and closes it. */
	long (*call)(void *room, const int fds[2]);
	int fds[2];      /* negative: as it is */
	uint64_t device; /* that is asked; 0: not known */
	bool gives_descriptor;
};

/* 0; -ECHILD: there can be none; or -ENOMEM. */
int sp_deputy_take(struct sp_deputy *ret);

/* The result: a descriptor is one of ours then.  -EIO: the child has died;
 * -ETIMEDOUT: there is none in *ret_ns, 0 if too many children are left to that
 * device.  Call sp_deputy_release() in any case. */
long sp_deputy_ask(struct sp_deputy *d, const struct sp_deputy_call *call,
		   uint64_t *ret_ns);
void sp_deputy_release(struct sp_deputy *d);

/* Begins one that waits for the first call, if none does: before there is much
 * memory, of which it would keep what is changed.  Else the first call does. */
void sp_deputy_begin(void);

/* Ends the one that waits for the next call. */
void sp_deputy_rest(void);
