/* SPDX-License-Identifier: MIT */
/* Inside of attach: what is to be done in a thread of the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "attach/attach.h"
#include "attach/choose.h"
#include "attach/hurry.h"
#include "attach/image.h"
#include "attach/library.h"
#include "attach/tracee.h"
#include "format/attach.h"

#define SP_ATTACH_GIVE_UP_NS 2000000000ull

/* And with what it needs of the process.  In memory that is shared with the
 * process that does it. */
struct sp_attach_job {
	pid_t pid;
	struct sp_image *image;
	struct sp_library library;
	struct sp_attach_request request;
	bool is_filtered; /* its system calls are */
	/* Functions of its C library, which the thread calls; the last two may
	 * be missing: 0. */
	uint64_t syscall, way_back, load, close, error, errno_location;
	uint64_t lock_probe;
	/* From errno to what dlerror has to say, in bytes; 0: not known. */
	uint64_t error_distance;
	uint64_t sums, allocator_probe;
	uint64_t until;    /* by then the thread is let go */
	uint64_t function; /* of ours, 0: not loaded yet */
	struct sp_attach_done done;
	struct sp_hurry hurry;
	/* Of the process that does the work. */
	uint64_t began_ns;
	unsigned int busy; /* so often a lock of the allocator was not free */
	struct sp_choice choice;
	struct sp_error err;
	int result;
};

/* In a thread that is at a good place: 0, and the answer is in the request;
 * -EAGAIN: in another thread, or later; -EINPROGRESS: later; or negative errno
 * and *err. */
int sp_attach_work(struct sp_attach_job *job, struct sp_tracee *t,
		   struct sp_error *err);
