/* SPDX-License-Identifier: MIT */
#include "report/answer.h"

static int need_symbols(struct sp_answer *a, struct sp_error *err)
{
	return a->symbolizer ? 0
			     : sp_symbolizer_new(a->profile, a->symbols,
						 &a->symbolizer, err);
}

int sp_answer_analyse(struct sp_answer *a, enum sp_view fallback,
		      struct sp_error *err)
{
	const struct sp_filter_patterns *patterns = &a->question->filter;
	int r = 0;

	if (sp_filter_is_given(patterns)) {
		r = need_symbols(a, err);
		if (r >= 0)
			r = sp_filter_new(a->profile, a->symbolizer, patterns,
					  a->progress, a->progress_arg,
					  &a->filter, err);
	}
	if (r < 0)
		return r;
	return sp_analysis_new_filtered(a->profile, a->question, a->filter,
					fallback, &a->analysis, err);
}

int sp_answer_aggregate(struct sp_answer *a, enum sp_granularity granularity,
			struct sp_aggregate **ret, struct sp_error *err)
{
	int r = need_symbols(a, err);

	return r < 0 ? r
		     : sp_aggregate_new_by(a->analysis, a->symbolizer,
					   granularity, a->progress,
					   a->progress_arg, ret, err);
}

int sp_answer_rows(struct sp_answer *a, enum sp_view fallback,
		   enum sp_granularity granularity, struct sp_aggregate **ret,
		   struct sp_error *err)
{
	const int r = sp_answer_analyse(a, fallback, err);

	*ret = NULL;
	return r < 0 ? r : sp_answer_aggregate(a, granularity, ret, err);
}

int sp_answer_whole(struct sp_answer *a, enum sp_granularity granularity,
		    struct sp_aggregate **ret, struct sp_error *err)
{
	sp_question_init(&a->all);
	a->question = &a->all;
	return sp_answer_rows(a, SP_VIEW_ALLOC, granularity, ret, err);
}

void sp_answer_done(struct sp_answer *a)
{
	sp_analysis_free(a->analysis);
	sp_filter_free(a->filter);
	if (a->symbolizer)
		sp_symbolizer_free(a->symbolizer);
}
