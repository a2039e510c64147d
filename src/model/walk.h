/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "model/profile.h"

/*
 * Samples one by one, as a stream of events in the order of time.  Each is
 * settled once: when it ends, and those that are alive at the end afterwards,
 * by ids.  Before, each that is alive for a nanosecond at least is born; at one
 * moment others end first.  Where no frees were recorded all are only settled.
 */
enum sp_sample_event {
	/* It is alive from now on: until it has ended freed_ns may be
	 * SP_NEVER. */
	SP_SAMPLE_BORN,
	/* All is known of it: it has ended, or the file does not tell more. */
	SP_SAMPLE_SETTLED,
};

/* 0 or negative errno, which ends the walk. */
typedef int sp_sample_fn(void *arg, enum sp_sample_event event,
			 const struct sp_sample *sample);

/* Is the walk to tell of it? */
typedef bool sp_sample_has_fn(const void *arg, const struct sp_sample *sample);

/*
 * Tell `fn` of the samples of a profile (struct sp_profile: groups have none)
 * that `has` wants (NULL: all).  0, -ENOMEM or what `fn` returned.
 */
int sp_samples_walk(const struct sp_profile *profile, sp_sample_has_fn *has,
		    const void *has_arg, sp_sample_fn *fn, void *arg);
