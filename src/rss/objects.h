/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "rss/absent.h"
#include "rss/pages.h"
#include "rss/parts.h"
#include "rss/rounding.h"
#include "stats/estimator.h"

/*
 * What the objects of a running process have of its memory, estimated from
 * those of its profile that are alive and from which of their pages are
 * resident.  In bytes as they were asked for.
 */

struct sp_rss_objects {
	bool is_known;           /* else the rest is zero: no frees recorded */
	struct sp_interval live; /* alive, as --view live says */
	/* That and the next two at the confidence of which two intervals
	 * together have what was asked for, if there is something untouched.
	 * Of these: in pages that are not resident, or zero in huge pages;
	 * everywhere, but for large objects, and what is resident where other
	 * anonymous memory is (E60). */
	struct sp_interval untouched, untouched_small, elsewhere;
	/* What they take beyond that, where it is resident, at the confidence
	 * that was asked for. */
	struct sp_interval rounding;
	bool has_rounding; /* the allocator's rule is known */
	/* All that is resident and not zero of the parts of other anonymous
	 * memory that have an object of the profile. */
	uint64_t around_bytes;
	uint64_t samples; /* alive, and their addresses known */
	uint64_t others;  /* alive, and their addresses are not known */
	/* Allocated while nothing was sampled, and alive before the process was
	 * attached to: it is not known what of it is alive. */
	uint64_t unsampled_bytes, before_bytes;
	enum sp_unseen before;
	/* Those that are not all resident; their addresses are known. */
	struct sp_absent_object *absent;
	size_t n_absent;
};

/* The profile in that file, of the process whose pages these are, and whose
 * allocator rounds like that.  0; negative errno and *err.  Free it in any
 * case. */
int sp_rss_objects_find(const char *path, struct sp_rss_pages *pages,
			const struct sp_rss_parts *parts,
			struct sp_rss_rounding *rounding, double confidence,
			struct sp_rss_objects *ret, struct sp_error *err);

void sp_rss_objects_free(struct sp_rss_objects *objects);

/* Weigh the live view of that profile, which was loaded from `path`, by what is
 * resident now (profile->resident).  As above. */
int sp_rss_objects_weigh(const char *path, struct sp_profile *profile,
			 struct sp_rss_pages *pages, struct sp_error *err);
