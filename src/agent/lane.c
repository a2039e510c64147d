/* SPDX-License-Identifier: MIT */
#include "agent/lane.h"

#include <string.h>

#include "agent/poison.h"

/* Touched lane by lane: an unused one costs address space only. */
static struct sp_lane lanes[SP_LANES];
static _Atomic unsigned int n_used; /* lanes [0, n_used) were ever taken */

struct sp_lane *sp_lane_take(uint8_t *hint)
{
	unsigned int first = *hint % SP_LANES;
	unsigned int used = atomic_load_explicit(&n_used, memory_order_relaxed);

	for (unsigned int i = 0; i < SP_LANES; i++) {
		/* Back to lane 0 first, so that few lanes are in use. */
		unsigned int n = i == 0 ? first : i - (i <= first);
		struct sp_lane *lane = &lanes[n];

		if (!atomic_load_explicit(&lane->busy, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&lane->busy, 1,
					      memory_order_acquire)) {
			while (used <= n && !atomic_compare_exchange_weak(
						    &n_used, &used, n + 1))
				;
			*hint = (uint8_t)n;
			return lane;
		}
	}
	return NULL;
}

void sp_lane_give(struct sp_lane *lane)
{
	atomic_store_explicit(&lane->busy, 0, memory_order_release);
}

void sp_lane_reset(const struct sp_lane *keep)
{
	unsigned int used = atomic_load_explicit(&n_used, memory_order_relaxed);

	for (unsigned int i = 0; i < used; i++) {
		struct sp_lane *lane = &lanes[i];

		if (lane == keep)
			continue;
		if (atomic_load_explicit(&lane->busy, memory_order_relaxed))
			lane->unwind_tls = NULL;
		lane->chunk = NULL;
		atomic_store_explicit(&lane->busy, 0, memory_order_relaxed);
	}
}
