/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/profile.h"
#include "report/question.h"
#include "stats/estimate.h"
#include "stats/peak.h"
#include "stats/sums.h"

/*
 * The figures that answer a question, before any function has a name.  Borrows
 * the profile, which has to outlive it.
 */
struct sp_analysis {
	const struct sp_profile *profile; /* the filter's, if there is one */
	const struct sp_filter *filter;   /* NULL: none */
	struct sp_selection selection; /* of the view; at_ns of a peak is set */
	struct sp_population population;
	struct sp_estimation how; /* of every row; borrows `population` */
	struct sp_sums *view;     /* the selected samples */
	/* What shares are shares of: the view's total, with what the filter
	 * drops.  `unfiltered` is NULL without a filter. */
	const struct sp_class_sums *whole;
	struct sp_sums *unfiltered;
	/* The same births, sizes and threads: all of them, and those alive at
	 * live_at_ns (SP_NEVER: the end).  `live` is NULL without frees. */
	struct sp_sums *alloc; /* may be `view` */
	struct sp_sums *live;  /* may be `view` */
	uint64_t live_at_ns;
	struct sp_peak peak; /* with frees only */
};

/* 0 and *ret_analysis, to be freed by the caller; negative errno and *err
 * (those of sp_question_select(), and -ENOMEM). */
int sp_analysis_new(const struct sp_profile *profile,
		    const struct sp_question *question, enum sp_view fallback,
		    struct sp_analysis **ret_analysis, struct sp_error *err);

/*
 * The same of the stacks that the filter (borrowed; NULL: none) of the profile
 * keeps.  The moment of SP_VIEW_PEAK is that of the whole, so that a row has
 * the same value with and without the filter.
 */
int sp_analysis_new_filtered(const struct sp_profile *profile,
			     const struct sp_question *question,
			     const struct sp_filter *filter,
			     enum sp_view fallback,
			     struct sp_analysis **ret_analysis,
			     struct sp_error *err);

/*
 * How the total of what was allocated is estimated: from the samples alone if
 * the exact total stands beside it, or there would be nothing to compare.
 */
struct sp_estimation sp_analysis_total_how(const struct sp_analysis *analysis);

/* What a sample that the selection has adds to the values of its rows (E43,
 * E46). */
struct sp_acc sp_analysis_part(const struct sp_analysis *analysis,
			       const struct sp_selection *selection,
			       const struct sp_sample *sample);

/* Share of `part` in `all`, of which its samples are a subset: in [0, 1]. */
struct sp_interval sp_analysis_share(const struct sp_acc *part,
				     const struct sp_acc *all,
				     double confidence);

/* RSS as it was last recorded at or before that time; false if it was not. */
bool sp_analysis_rss_at(const struct sp_profile *profile, uint64_t time_ns,
			uint64_t *ret_bytes);

/*
 * The size that `share` of all objects, or of all bytes, do not exceed: exact
 * but for the width of a size class, whose upper end it is.  UINT64_MAX if that
 * is the last class; 0 if there are no totals.
 */
uint64_t sp_analysis_size_percentile(const struct sp_profile *profile,
				     bool of_bytes, double share);

/* Can the view have objects of that size class?  Not if the selection leaves
 * them out or, by the exact totals, nothing of it was allocated. */
bool sp_analysis_may_have_size(const struct sp_analysis *analysis,
			       unsigned int class);

/*
 * What the view has of the size classes first..last, as a row is estimated; if
 * that uses the exact totals of the classes, it is no more than those.
 */
struct sp_interval sp_analysis_size_bytes(const struct sp_analysis *analysis,
					  unsigned int first, unsigned int last,
					  uint64_t *ret_samples);

/*
 * The size that `share` in (0, 1) of the view's bytes do not exceed, estimated
 * (E20): limits are ends of size classes, or sizes selected; the value is the
 * mean size of the samples of a class.  A point where everything was recorded.
 * hi is INFINITY where nothing bounds it.  False if the view has no samples.
 */
bool sp_analysis_view_percentile(const struct sp_analysis *analysis,
				 double share, struct sp_interval *ret_size);

/* The largest RSS that was recorded; 0 if none was. */
uint64_t sp_analysis_peak_rss(const struct sp_profile *profile);

void sp_analysis_free(struct sp_analysis *analysis);
