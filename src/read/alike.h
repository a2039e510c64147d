/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"

/*
 * A file has a stack once in each of its segments, each time under another id.
 * Have all samples of a stack, and all groups of samples, name the one with the
 * smallest id.  0 or -ENOMEM.
 */
int sp_profile_join_stacks(struct sp_profile *profile);
