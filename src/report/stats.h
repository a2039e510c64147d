/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "report/analysis.h"

/* The last counts all entries that a newer writer added. */
#define SP_STATS_ENTRIES (SP_ENTRY_COUNT + 1)

/* The view by entry points: the functions that programs call to allocate. */
struct sp_stats {
	struct sp_class_sums entries[SP_STATS_ENTRIES];
	unsigned int order[SP_STATS_ENTRIES]; /* most samples first */
	unsigned int n_entries;               /* with samples */
};

/* 0, to be released; -ENOMEM and *err. */
int sp_stats_init(struct sp_stats *stats, const struct sp_analysis *analysis,
		  struct sp_error *err);

void sp_stats_done(struct sp_stats *stats);
