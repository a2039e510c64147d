/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "report/aggregate.h"

/* The last is for all entries that only a later writer knows. */
#define SP_STATS_ENTRIES (SP_ENTRY_COUNT + 1)

/* What the view has by the functions that programs call to allocate. */
struct sp_stats {
	struct sp_class_sums entries[SP_STATS_ENTRIES];
	unsigned int order[SP_STATS_ENTRIES]; /* most samples first */
	unsigned int n_entries;               /* with samples */
};

/* 0, to be released; -ENOMEM and *err. */
int sp_stats_init(struct sp_stats *stats, const struct sp_analysis *analysis,
		  struct sp_error *err);

void sp_stats_done(struct sp_stats *stats);
