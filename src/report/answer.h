/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/aggregate.h"
#include "report/analysis.h"
#include "report/filter.h"
#include "report/question.h"
#include "symbols/symbolizer.h"

/*
 * A question, answered step by step: first symbols and a filter, if the
 * question has one; then the analysis; then any number of aggregates.  Borrows
 * its inputs.
 */
struct sp_answer {
	const struct sp_profile *profile;
	const struct sp_question *question;
	const struct sp_symbolizer_options *symbols;
	sp_progress_fn *progress; /* may be NULL */
	void *progress_arg;
	struct sp_symbolizer *symbolizer; /* NULL until it is needed */
	struct sp_filter *filter;         /* NULL: none */
	struct sp_analysis *analysis;
	struct sp_question all; /* of sp_answer_whole() */
};

/* The caller has set the first five fields of `answer`. 0; negative errno and
 * *err.  Release it in both cases. */
int sp_answer_analyse(struct sp_answer *answer, enum sp_view fallback,
		      struct sp_error *err);

/* After sp_answer_analyse().  0 and *ret, to be freed by the caller before the
 * answer is released; negative errno and *err. */
int sp_answer_aggregate(struct sp_answer *answer,
			enum sp_granularity granularity,
			struct sp_aggregate **ret, struct sp_error *err);

/* Both steps. *ret as from sp_answer_aggregate(), NULL on failure.  Release the
 * answer in both cases. */
int sp_answer_rows(struct sp_answer *answer, enum sp_view fallback,
		   enum sp_granularity granularity, struct sp_aggregate **ret,
		   struct sp_error *err);

/* The same for all allocations of the profile: `answer` has no question. */
int sp_answer_whole(struct sp_answer *answer, enum sp_granularity granularity,
		    struct sp_aggregate **ret, struct sp_error *err);

void sp_answer_done(struct sp_answer *answer);
