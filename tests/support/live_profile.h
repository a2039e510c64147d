/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "model/profile.h"

/* A profile of nothing but samples, made in memory, with one stack and no
 * thread.  It belongs to the caller. */
struct live_profile {
	struct sp_profile profile;
	size_t room;
	struct sp_stack stack;
	struct sp_part part;
};

void live_profile_init(struct live_profile *live, uint64_t period_bytes,
		       uint64_t duration_ns);

/* An object that was sampled, its last byte hit; freed_ns may be SP_NEVER.
 * The caller may change it until the next is added. */
struct sp_sample *live_profile_add(struct live_profile *live, uint64_t born_ns,
				   uint64_t freed_ns, uint64_t size_bytes);

/* Forget the samples. */
void live_profile_clear(struct live_profile *live);

void live_profile_free(struct live_profile *live);
