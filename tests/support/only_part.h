/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"

/* What a profile that is made by hand was read from: one process, which ran
 * until the end. */
static struct sp_part only_part = {.path = "in memory", .stop_ns = SP_NEVER};
