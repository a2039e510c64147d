/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Begins and ends a profile in a running process that was not started under the
 * library.  Both functions stop a thread of the process by ptrace, make it call
 * functions, and restore it.  Each can take some seconds.
 */

/*
 * Whether glibc's malloc was asked for the bytes that were allocated before.
 * mallinfo2 walks all free blocks and holds each arena's lock meanwhile, so no
 * other thread can allocate from that arena.
 */
enum sp_attach_before {
	SP_ATTACH_BEFORE_OTHER, /* no: another allocator, or no mallinfo2 */
	SP_ATTACH_BEFORE_ASKED, /* yes */
	SP_ATTACH_BEFORE_BUSY,  /* no: the locks were not free in time */
	SP_ATTACH_BEFORE_LARGE, /* no: more than SP_ATTACH_HEAP_BYTES of heap */
};
#define SP_ATTACH_HEAP_BYTES (128ull << 20)

/* What was done.  Valid if the function that filled it returned 0, except for
 * is_complete. */
struct sp_attach_done {
	uint64_t thread;     /* id of the thread that made the calls */
	uint64_t stopped_ns; /* the longest time for which it was stopped */
	uint64_t places;     /* pointers and symbols that were changed */
	enum sp_attach_before before;
	uint64_t heap_bytes; /* address space of glibc's heap; 0 after detach */
	bool is_complete;    /* after a failed detach: the profile has ended */
};

/*
 * Load the library into process `pid` and begin a profile with n settings
 * ("SAMPLEPROF_NAME=VALUE"; borrowed).  `ask_before`: call mallinfo2 even if
 * the heap has more than SP_ATTACH_HEAP_BYTES.
 *
 * 0, and *ret is filled.  On failure *err is filled, the process continues as
 * before, nothing is recorded, and the library may stay loaded in it.  -ESRCH:
 * there is no such process, or it has ended; -EPERM: it may not be traced;
 * -EEXIST: the library is there already, but not by attach; -EALREADY: another
 * command has attached meanwhile; -ENOEXEC: the library cannot be used in this
 * program; -EBUSY: no thread could be used, or the calls took too long;
 * -ENOMEM: its control group has no memory left; -EINTR: a signal came to end
 * this process; -EINVAL, -E2BIG: the settings; -EBADF: the process has
 * exchanged the library; -EIO, -EPROTO, or the errno of a system call of the
 * process.
 */
int sp_attach_begin(uint64_t pid, const char *const *settings, size_t n,
		    bool ask_before, struct sp_attach_done *ret,
		    struct sp_error *err);

/*
 * End the profile that sp_attach_begin began in process `pid`.  0, and *ret is
 * filled.  On failure *err is filled.  -ESRCH: nothing is attached there;
 * -EBUSY: no thread could be used, or the profile is complete and a thread may
 * still be in the library; or another negative errno as of sp_attach_begin.
 */
int sp_attach_end(uint64_t pid, struct sp_attach_done *ret,
		  struct sp_error *err);

/* 1: the process has our mount namespace and our root directory, so that an
 * absolute path names the same file for both; 0: it has not.  Negative: it
 * cannot be attached to, as *err says. */
int sp_attach_sees_our_files(uint64_t pid, struct sp_error *err);
