/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"

/* What sp_profile_walk() says (model/walk.h), by reading the files of the
 * profile again. */
int sp_read_again(const struct sp_profile *profile, sp_sample_fn *fn, void *arg,
		  struct sp_error *err);
