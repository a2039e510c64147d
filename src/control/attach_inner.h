/* SPDX-License-Identifier: MIT */
/* What attach.c, search.c and attach_work.c share: one attach or detach. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "control/attach.h"
#include "control/choose.h"
#include "control/hurry.h"
#include "control/image.h"
#include "control/library.h"
#include "control/suitable.h"
#include "control/tracee.h"
#include "control/worker.h"
#include "format/attach.h"

/* Limit of the search for a thread, and then of the calls in it. */
#define SP_ATTACH_GIVE_UP_NS 2000000000ull

/*
 * One attach or detach.  It lies in memory that the command shares with its
 * child, the worker.  The worker alone traces threads; it fills the request's
 * answer, `done`, `hurry`, `err` and `result`.
 */
struct sp_attach_job {
	pid_t pid;
	int lock; /* descriptor that keeps other commands away; -1: none */
	struct sp_worker worker;
	int signal; /* that came to end the command; 0: none */
	struct sp_suitable_program program; /* that `image` is of */
	struct sp_image *image;             /* owned */
	struct sp_library library;          /* owned; unused for a detach */
	struct sp_attach_request request;   /* and its answer */
	bool is_filtered; /* the process has a seccomp filter */
	/* Addresses in the process of what the thread is made to call: system
	 * call instruction, return from a signal handler, functions of the C
	 * library.  0: not found; only some of them are necessary. */
	uint64_t syscall, sigreturn, dlopen, libc_close, dlerror,
		errno_location;
	/* dlopen is glibc's inner function, since libdl is not loaded: it has
	 * to be, for the library. */
	bool needs_libdl;
	uint64_t
		lock_probe; /* waits for the loader's lock, then does nothing */
	uint64_t mallinfo2; /* 0 also: not to be called */
	uint64_t allocator_probe; /* waits for the main arena's lock likewise */
	/* Bytes from a thread's errno to its pointer to the text of dlerror;
	 * 0: not known. */
	uint64_t error_distance;
	uint64_t function; /* address of our library's; 0: not loaded yet */
	uint64_t entries;  /* and of its SP_ATTACH_LIST; 0: likewise */
	struct sp_attach_done done;
	struct sp_hurry hurry;
	/* Used by the worker. */
	uint64_t began_ns; /* start of the search for a thread */
	uint64_t search_until;
	uint64_t n_looked; /* stacks, and how many had no end that is known */
	uint64_t n_unknown;
	uint64_t until; /* end of the time for calls; CLOCK_MONOTONIC */
	/* Address of the loader's lock, a word that is 0 while nobody has it.
	 * 0: not known, because no call had to wait for it. */
	uint64_t loader_lock;
	uint64_t lock_limit_ns; /* for a call that waits for it */
	/* How often the allocator's lock was not free in time, or a detach
	 * found a thread in the library. */
	unsigned int busy;
	struct sp_choice choice;
	struct sp_error err; /* if result is negative */
	int result;          /* 0, or a negative errno */
};

/*
 * Make the stopped thread `t` do the job.  It stays stopped and may be
 * borrowed: call sp_tracee_return next.  0: the answer is in job->request;
 * -EINPROGRESS: a lock of the loader or of the allocator is not free, try
 * later; or another negative errno and *err.
 */
int sp_attach_work(struct sp_attach_job *job, struct sp_tracee *t,
		   struct sp_error *err);

/* The worker's part: search for a thread, and make it do the job.  `arg`:
 * struct sp_attach_job, which gets the result. */
void sp_attach_search(void *arg);

/* Wait before the next try.  Each may stop a thread in vain while the allocator
 * is busy, so the pause grows. */
void sp_attach_pause(const struct sp_attach_job *job);

/* Why the library has not done it: 0, or a negative errno and *err. */
int sp_attach_explain_answer(const struct sp_attach_job *job,
			     struct sp_error *err);
int sp_attach_explain_not_there(uint64_t pid, struct sp_error *err);
