/* SPDX-License-Identifier: MIT */
#ifndef SP_STATS_TALLY_H
#define SP_STATS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/layout.h"
#include "model/profile.h"
#include "stats/estimator.h"

/*
 * The sums over a set of samples, in all and by size class (so that the exact
 * totals of the classes can be used).  Tallies of disjoint sets add up.  A
 * zeroed tally is empty.
 */
struct sp_tally_class {
	uint32_t class; /* of sp_format_class() */
	struct sp_acc acc;
};

struct sp_tally {
	struct sp_acc all;
	struct sp_tally_class *classes; /* ascending; owned */
	uint32_t n_classes;
	uint32_t room;
	/* The mean of two moments (E43), which exact totals of what was
	 * allocated do not bound. */
	bool is_mean;
};

/* Empty, for samples drawn with period_bytes. */
void sp_tally_init(struct sp_tally *tally, uint64_t period_bytes);

/* 0 or -ENOMEM.  Arguments as for sp_acc_add(). */
int sp_tally_add(struct sp_tally *tally, const struct sp_law_used *law,
		 uint64_t size_bytes, uint64_t offset_bytes,
		 uint64_t period_bytes);

/* n samples, as for sp_acc_add_many(); 0 or -ENOMEM. */
int sp_tally_add_many(struct sp_tally *tally, const struct sp_law_used *law,
		      uint64_t size_bytes, uint64_t n, uint64_t tail_bytes,
		      uint64_t period_bytes);

/* All samples of a group (model/profile.h); 0 or -ENOMEM. */
int sp_tally_add_group(struct sp_tally *tally, const struct sp_law_used *law,
		       const struct sp_group *group);

/* Samples of that size that were summed up already; 0 or -ENOMEM. */
int sp_tally_add_acc(struct sp_tally *tally, uint64_t size_bytes,
		     const struct sp_acc *acc);

/* Twice a mean becomes one (sp_acc_halve()). */
void sp_tally_halve(struct sp_tally *tally);

/* dst += src; 0 or -ENOMEM. */
int sp_tally_merge(struct sp_tally *dst, const struct sp_tally *src);

void sp_tally_free(struct sp_tally *tally);

#endif
