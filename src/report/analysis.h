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
 * The figures that answer a question, before functions have names.  Borrows the
 * profile, which must outlive it.
 */
struct sp_analysis {
	const struct sp_profile *profile; /* the filter's, if there is one */
	const struct sp_filter *filter;   /* NULL: none */
	struct sp_selection selection; /* of the view; at_ns of a peak is set */
	struct sp_population population;
	struct sp_estimation how; /* of every row; borrows `population` */
	struct sp_sums *view;     /* the selected samples */
	/* The whole for shares: the view's total, including what the filter
	 * drops.  `unfiltered` is NULL without a filter. */
	const struct sp_class_sums *whole;
	struct sp_sums *unfiltered;
	/* The samples of the selected births, sizes and threads: all, and those
	 * alive at live_at_ns (SP_NEVER: the end).  `live` is NULL without
	 * frees. */
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
 * The same for the stacks that the filter (borrowed; NULL: none) keeps.  The
 * moment of SP_VIEW_PEAK is that of the whole profile, so that a row has the
 * same value with and without the filter.
 */
int sp_analysis_new_filtered(const struct sp_profile *profile,
			     const struct sp_question *question,
			     const struct sp_filter *filter,
			     enum sp_view fallback,
			     struct sp_analysis **ret_analysis,
			     struct sp_error *err);

/*
 * How to estimate the total of allocated bytes: from the samples alone if the
 * exact total is printed beside it, so that the two can be compared.
 */
struct sp_estimation sp_analysis_total_how(const struct sp_analysis *analysis);

/* The value that a selected sample adds to its rows (E43, E46). */
struct sp_acc sp_analysis_part(const struct sp_analysis *analysis,
			       const struct sp_selection *selection,
			       const struct sp_sample *sample);

/* Share of `part` in `all`, of which its samples are a subset: in [0, 1]. */
struct sp_interval sp_analysis_share(const struct sp_acc *part,
				     const struct sp_acc *all,
				     double confidence);

/* Share of a row of the view in all of it, of which the exact total is used if
 * it is known (E63): it says the same as the row's bytes. */
struct sp_interval sp_analysis_row_share(const struct sp_analysis *analysis,
					 const struct sp_estimation *how,
					 const struct sp_class_sums *row);

/* The last RSS that was recorded at or before that time; false if there is
 * none. */
bool sp_analysis_rss_at(const struct sp_profile *profile, uint64_t time_ns,
			uint64_t *ret_bytes);

/*
 * The size that `share` of all objects, or of all bytes, do not exceed: the
 * upper end of a size class, so exact up to the width of the class.  UINT64_MAX
 * for the last class; 0 without totals.
 */
uint64_t sp_analysis_size_percentile(const struct sp_profile *profile,
				     bool of_bytes, double share);

/* Can the view have objects of that size class?  False if the selection
 * excludes them, or the exact totals have none of them. */
bool sp_analysis_may_have_size(const struct sp_analysis *analysis,
			       unsigned int class);

/*
 * The view's estimate for the size classes first..last, made as for a row.  If
 * rows use the exact totals of classes, it is at most those.
 */
struct sp_interval sp_analysis_size_bytes(const struct sp_analysis *analysis,
					  unsigned int first, unsigned int last,
					  uint64_t *ret_samples);

/*
 * The size that `share` in (0, 1) of the view's bytes do not exceed, estimated
 * (E20): limits are ends of size classes, or sizes selected; the value is the
 * mean size of the samples of a class.  A point if everything was recorded. hi
 * is INFINITY if nothing bounds it.  False if the view has no samples.
 */
bool sp_analysis_view_percentile(const struct sp_analysis *analysis,
				 double share, struct sp_interval *ret_size);

/* The largest RSS that was recorded; 0 if none was. */
uint64_t sp_analysis_peak_rss(const struct sp_profile *profile);

/* Are the samples of the view all objects that it has? */
bool sp_analysis_is_every(const struct sp_analysis *analysis);

void sp_analysis_free(struct sp_analysis *analysis);
