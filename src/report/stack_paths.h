/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "report/paths.h"
#include "model/profile.h"
#include "report/aggregate.h"

/*
 * The call paths of a profile's stacks.  A frame is named once, however many
 * stacks have it, and a stack has its path made once, however many views ask,
 * unless another function of it is flat.  Zero but for the first two, which are
 * borrowed.
 */
struct sp_stack_paths {
	const struct sp_profile *profile;
	struct sp_paths *paths;
	struct sp_index index; /* of `known` */
	struct sp_known_frame *known;
	size_t n_known, known_room;
	struct sp_known_symbol *symbols;
	size_t n_symbols, symbols_room;
	struct sp_intern identities;
	struct sp_intern built; /* functions that only an address identifies */
	struct sp_stack_path *made; /* of each stack */
	/* of the stack at hand */
	uint32_t *frames;
	size_t n_frames, frames_room;
	char *name;
	size_t name_room;
};

/*
 * The path of the stack, number `at` of the profile's, outwards from the
 * function that it is flat for; what is further in only passes the allocation
 * on.  All aggregates that are asked about have the same symbols.  0 and
 * *ret_path, or -ENOMEM.
 */
int sp_stack_paths_add(struct sp_stack_paths *s,
		       const struct sp_aggregate *aggregate,
		       const struct sp_aggregate_function *flat,
		       const struct sp_stack *stack, size_t at,
		       uint32_t *ret_path);

/* A path of one frame with that name, which is untrusted.  Likewise. */
int sp_stack_paths_label(struct sp_stack_paths *s, const char *name,
			 uint32_t *ret_path);

void sp_stack_paths_done(struct sp_stack_paths *s);
