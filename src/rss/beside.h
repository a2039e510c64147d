/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rss/alive.h"
#include "rss/pins.h"
#include "rss/places.h"

/*
 * Find the free memory beside each live object, by pins->rule: sets hole,
 * pinned, trim and extent of the objects, the counts of `pins`, and the places.
 * 0 or -ENOMEM.
 */
int sp_rss_beside_find(struct sp_rss_pins *pins,
		       const struct sp_rss_pins_process *process,
		       struct sp_rss_alive *alive,
		       struct sp_rss_places *places);

/* The free bytes at the ends of glibc's arenas; false if they cannot be read.
 */
bool sp_rss_beside_tops(const struct sp_rss_pins_process *process,
			uint64_t *ret_bytes);
