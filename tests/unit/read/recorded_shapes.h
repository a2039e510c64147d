/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/memfile.h"

/* Profiles as processes of all sorts leave them. */
struct shape {
	const char *name;
	size_t objects;
	uint64_t step_ns; /* between two of them */
	uint64_t tick_ns; /* that this takes */
	bool has_marks, is_killed, has_window, has_unmatched, has_no_frees;
};

#define N_SHAPES 10

extern const struct shape shapes[N_SHAPES];
extern const struct shape *const many_events;

void record(const struct shape *shape, uint64_t seed, const struct memfile *to);
