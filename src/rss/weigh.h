/* SPDX-License-Identifier: MIT */
#pragma once

#include "report/question.h"

/*
 * A sp_weigh_fn: which pages of the process that writes this profile are
 * resident, or, of another moment than now, what a ledger of the profile has
 * kept of that.
 */
int sp_resident_weigh(const char *path, const struct sp_question *question,
		      struct sp_profile *profile, struct sp_error *err);
