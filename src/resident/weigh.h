/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"

/* --view resident: which pages of the process that writes this profile are
 * resident, for the weights of its live view.  0; -ESRCH and *err if none does;
 * other errors are those of looking at it. */
int sp_rss_weigh(const char *path, struct sp_profile *profile,
		 struct sp_error *err);
