/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "rss/places.h"

/*
 * The sampled live objects with their addresses, and the freed objects that
 * were beside them before.  A profile in memory has no addresses, so they are
 * read from its file.
 */
struct sp_rss_object {
	struct sp_sample sample;
	uint64_t address; /* 0: unknown */
	struct sp_rss_taken taken;
	bool is_gone; /* it was freed meanwhile, or replaced */
	/* Free bytes that count for it: all; the resident ones that it and
	 * others pin; and those that a trim returns. */
	double hole, pinned, trim;
};

/* A freed object, the last one in a place beside a live object. */
struct sp_rss_freed {
	uint64_t address;
	uint64_t size_bytes, period_bytes;
	uint64_t born_ns;
	uint32_t stack; /* position in the profile's stacks */
};

struct sp_rss_alive {
	struct sp_rss_object *list; /* by ascending addresses */
	size_t n;
	size_t unknown; /* those of them without an address */
	struct sp_rss_freed
		*freed; /* by ascending addresses, without overlaps */
	size_t n_freed;
	bool is_cut; /* some freed objects were left out */
};

/* Find the objects of the profile that are alive.  `path` is the profile's
 * file. 0 or negative errno and *err.  Free *ret in any case. */
int sp_rss_alive_find(const char *path, const struct sp_profile *profile,
		      struct sp_rss_alive *ret, struct sp_error *err);
void sp_rss_alive_free(struct sp_rss_alive *alive);

/*
 * Read the file again: set is_gone of the objects that the process has freed
 * meanwhile, and find the objects that were freed in the places. 0 or negative
 * errno and *err.
 */
int sp_rss_alive_look_again(const char *path, const struct sp_profile *profile,
			    const struct sp_rss_places *places,
			    struct sp_rss_alive *alive, struct sp_error *err);
