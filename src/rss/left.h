/* SPDX-License-Identifier: MIT */
#pragma once

#include "rss/alive.h"
#include "rss/pins.h"
#include "rss/places.h"

/*
 * Which sites' freed objects were last in the holes beside the objects of each
 * site: these sites left the memory that the site pins.  A pair of a live and a
 * freed sample has the product of their weights, because they were drawn
 * independently (E73).  Fills `left` of pins->sites. 0 or -ENOMEM.
 */
int sp_rss_left_find(struct sp_rss_pins *pins, const struct sp_rss_alive *alive,
		     const struct sp_rss_places *places);
