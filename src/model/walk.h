/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/profile.h"

/* Samples one by one. */

/* Is the walk to tell of it? */
typedef bool sp_sample_has_fn(const void *arg, const struct sp_sample *sample);

/*
 * Tell `fn` of the samples of a profile that `has` wants (NULL: all), in the
 * order of time (enum sp_sample_event), by reading its files again if it has
 * groups.  0, what `fn` returned, or negative errno and *err, which may come
 * after any number of calls: -ENOMEM; -ESTALE if another file is there by now,
 * or `fn` said so.
 */
int sp_profile_walk(const struct sp_profile *profile, sp_sample_has_fn *has,
		    const void *has_arg, sp_sample_fn *fn, void *arg,
		    struct sp_error *err);
