/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/* A bounded set of numbers: what is in it was put there; what was put there may
 * have been forgotten.  Zero-initialise. */
struct sp_fleet_known {
	uint64_t *numbers;
	size_t n, room;
	struct sp_index index;
};

bool sp_fleet_knows(const struct sp_fleet_known *known, uint64_t number);
void sp_fleet_learn(struct sp_fleet_known *known, uint64_t number);
/* All of it. */
void sp_fleet_forget(struct sp_fleet_known *known);
