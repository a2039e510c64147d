/* SPDX-License-Identifier: MIT */
#pragma once

#include "model/profile.h"

/* The sink that keeps every sample of a file, in its profile. */

/* The profile's samples have room for *room.  0 or -ENOMEM. */
int sp_every_sample_add(struct sp_profile *profile, size_t *room,
			const struct sp_sample *sample);

/* All were added: by ids, each once, and without those that ended before the
 * window, which is at that time. */
void sp_every_sample_end(struct sp_profile *profile, uint64_t window_ns);
