/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/thread/thread.h"
#include "format/layout.h"

/*
 * Marks: moments of the process with its exact totals, in the file.  Phases
 * begin with one, changes of the sampling take effect with one.  They come one
 * after another, so that of two marks the later has the larger totals.
 *
 * All take a thread that is suspended.  0, or a negative errno: -EBUSY if
 * another thread did not come to an end with its own in some milliseconds; -EIO
 * if the record could not be written.  Both are counted (SP_LOSS_MARK_DROPPED).
 * Context: sampled.
 */

struct sp_marks_name {
	char text[SP_FORMAT_MARK_NAME_MAX];
	size_t bytes;
};

/* A terminated text as a name, cut to what fits. */
struct sp_marks_name sp_marks_name(const char *text);

/* In a forked child: no mark was made, and the phase is the first one, without
 * a name. */
void sp_marks_reset(void);

/* The calling thread has left a mark that it was making: other threads may make
 * marks again. */
void sp_marks_give_left(void);

/* For asked_ns: the time at which the mark is made. */
#define SP_MARKS_NOW UINT64_MAX

/* The phase `name` begins, as was asked for at asked_ns.  ret_before, unless
 * NULL: the one that ends. */
int sp_marks_phase(struct sp_thread *t, const struct sp_marks_name *name,
		   uint64_t asked_ns, struct sp_marks_name *ret_before);

/* A moment with that name, and all totals by size class in the file. */
int sp_marks_snapshot(struct sp_thread *t, const struct sp_marks_name *name,
		      uint64_t asked_ns);

/* Whether to sample from now on.  KEEP and TOGGLE go by what is in force when
 * the change takes effect: another thread may change it until then. */
enum sp_marks_switch {
	SP_MARKS_OFF,
	SP_MARKS_ON,
	SP_MARKS_KEEP,
	SP_MARKS_TOGGLE,
};

/* Change what is sampled; period_bytes 0: with the period it had.  -ENOMEM if
 * there is no memory for another period.  A change to what is already so makes
 * no mark. */
int sp_marks_sampling(struct sp_thread *t, enum sp_marks_switch to,
		      uint64_t period_bytes);

/* The period that the target of samples per second, what is alive in a limited
 * file, and the limit of memory ask for now.  A mark is made where it is longer
 * than any before: 160 times at most for one base; and a snapshot where the
 * process has come near the limit. */
void sp_marks_adapt(struct sp_thread *t);

/* If everything was rewritten into the current segment of the file
 * (rewrite_live.h): the moment and the totals from which on it can do without
 * those before. */
void sp_marks_complete(void);

/* The process ends: final totals, if there was any mark or sampling is off. */
void sp_marks_end(struct sp_thread *t);
