/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "pins/places.h"

/*
 * The sampled objects that are alive, each with its address, and what was in
 * the places beside them before.  A profile in memory has no addresses: they
 * are read from its file.
 */
struct sp_rss_object {
	struct sp_sample sample;
	uint64_t address; /* 0: not known */
	struct sp_rss_taken taken;
	bool is_gone; /* it was freed meanwhile, or is not what it was */
	/* Free bytes that are charged to it: in all, and of these resident ones
	 * that only it and others hold, and such as a trim gives back. */
	double hole, pinned, trim;
};

/* An object that was freed and was in such a place last. */
struct sp_rss_freed {
	uint64_t address;
	uint64_t size_bytes, period_bytes;
	uint64_t born_ns;
	uint32_t stack; /* position in the profile's stacks */
};

struct sp_rss_alive {
	struct sp_rss_object *list; /* by ascending addresses */
	size_t n;
	size_t unknown; /* of these, whose addresses are not known */
	struct sp_rss_freed *freed; /* likewise; they do not overlap */
	size_t n_freed;
	bool is_cut; /* there were more of these than are kept */
};

/* Of the profile in that file at that time, SP_NEVER: the end of what was read.
 * 0 or negative errno and *err.  Free it in any case. */
int sp_rss_alive_find(const char *path, const struct sp_profile *profile,
		      uint64_t at_ns, struct sp_rss_alive *ret,
		      struct sp_error *err);
void sp_rss_alive_free(struct sp_rss_alive *alive);

/*
 * Read the file once more: which of them were freed meanwhile, if the process
 * goes on, and what was freed in the places before that time.  0 or negative
 * errno and *err.
 */
int sp_rss_alive_look_again(const char *path, const struct sp_profile *profile,
			    uint64_t at_ns, const struct sp_rss_places *places,
			    struct sp_rss_alive *alive, struct sp_error *err);
