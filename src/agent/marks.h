/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_MARKS_H
#define SP_AGENT_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/thread.h"
#include "format/layout.h"

/*
 * Marks: moments of the process with its exact totals, in the file.  Phases
 * begin with one, changes of the sampling take effect with one.  They come one
 * after another, so that of two marks the later has the larger totals.
 *
 * All take a thread that is parked.  0, or a negative errno: -EBUSY if another
 * thread did not come to an end with its own in some milliseconds; -EIO if the
 * record could not be written.  Both are counted (SP_LOSS_MARK_DROPPED).
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

/* The phase `name` begins.  ret_before, unless NULL: the one that ends. */
int sp_marks_phase(struct sp_thread *t, const struct sp_marks_name *name,
		   struct sp_marks_name *ret_before);

/* A moment with that name, and all totals by size class in the file. */
int sp_marks_snapshot(struct sp_thread *t, const struct sp_marks_name *name);

/* Sampling is on or off from now on; period_bytes 0: with the period it had.
 * -ENOMEM if there is no memory for another period.  A change to what is
 * already so makes no mark. */
int sp_marks_sampling(struct sp_thread *t, bool is_on, uint64_t period_bytes);

/* The process ends: final totals, if there was any mark or sampling is off. */
void sp_marks_end(struct sp_thread *t);

#endif
