/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/layout.h"
#include "model/profile.h"
#include "stats/estimator.h"

/*
 * The sums over a set of samples, in all and by size class (so that the exact
 * totals of the classes can be used).  Those of disjoint sets add up.  A
 * zeroed one is empty.
 */
struct sp_class_sums_class {
	uint32_t class; /* of sp_format_class() */
	struct sp_acc acc;
};

struct sp_class_sums {
	struct sp_acc all;
	struct sp_class_sums_class *classes; /* ascending; owned */
	uint32_t n_classes;
	uint32_t room;
	/* By a part of the samples (E43), as exact totals do not know them. */
	bool is_measured;
	/* Of what was alive when the profile knows no more (model/whole.h). */
	bool is_unknown;
	bool is_least; /* or more was (sp_whole_is_least_at()) */
};

/* Empty, for samples drawn with period_bytes. */
void sp_class_sums_init(struct sp_class_sums *sums, uint64_t period_bytes);

/* What those of the same samples, or of a part of them, are. */
void sp_class_sums_judge(struct sp_class_sums *sums,
			 const struct sp_class_sums *like);

/* 0 or -ENOMEM.  Arguments as for sp_acc_add(). */
int sp_class_sums_add(struct sp_class_sums *sums, const struct sp_law_used *law,
		      uint64_t size_bytes, uint64_t offset_bytes,
		      uint64_t period_bytes);

/* n samples, as for sp_acc_add_many(); 0 or -ENOMEM. */
int sp_class_sums_add_many(struct sp_class_sums *sums,
			   const struct sp_law_used *law, uint64_t size_bytes,
			   uint64_t n, uint64_t tail_bytes,
			   uint64_t period_bytes);

/* Samples of that size that were summed up already; 0 or -ENOMEM. */
int sp_class_sums_add_acc(struct sp_class_sums *sums, uint64_t size_bytes,
			  const struct sp_acc *acc);

/* dst += src; 0 or -ENOMEM. */
int sp_class_sums_merge(struct sp_class_sums *dst,
			const struct sp_class_sums *src);

void sp_class_sums_free(struct sp_class_sums *sums);
