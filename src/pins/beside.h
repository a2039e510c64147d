/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pins/alive.h"
#include "pins/pins.h"
#include "pins/places.h"

/*
 * What is free beside each object that is alive, by pins->rule: fills hole,
 * pinned and trim of the objects, their extents, the counts of `pins`, and the
 * places.  `process` is NULL if there are only addresses.  0 or -ENOMEM.
 */
int sp_rss_beside_find(struct sp_rss_pins *pins,
		       const struct sp_rss_pins_process *process,
		       struct sp_rss_alive *alive,
		       struct sp_rss_places *places);

/* What is free at the ends of glibc's arenas; false if that cannot be read. */
bool sp_rss_beside_tops(const struct sp_rss_pins_process *process,
			uint64_t *ret_bytes);
