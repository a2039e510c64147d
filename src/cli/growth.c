/* SPDX-License-Identifier: MIT */
#include "cli/growth.h"

#include "report/answer.h"
#include "report/load.h"
#include "text/text.h"

#define LAST_NS 2000000000u

static void print_line(FILE *out, const struct sp_analysis *a,
		       const struct sp_aggregate *functions, uint64_t last_ns)
{
	const struct sp_class_sums *all = &a->view->all;

	fprintf(out,
		"  growth    %s of what is alive, allocated in the last %s",
		sp_text_estimate_cell(sp_estimate_bytes(&a->how, all),
				      all->all.samples)
			.text,
		sp_text_moment(last_ns).text);
	if (functions->n_functions) {
		fputs(", most by ", out);
		sp_text_print(out, functions->functions[0].name);
	}
	putc('\n', out);
}

static uint64_t last_ns_of(const struct sp_profile *p)
{
	const uint64_t fifth = p->duration_ns / 5;
	uint64_t last_ns = fifth < LAST_NS ? fifth : LAST_NS;

	/* The kernel takes its time: a process near the limit may stand still
	 * for a while before it is killed. */
	for (size_t i = p->n_rss; i--;) {
		const struct sp_rss *rss = &p->rss[i];

		if (rss->rss_bytes / 9 >= p->rss[p->n_rss - 1].rss_bytes / 10)
			continue;
		if (rss->time_ns < p->duration_ns - last_ns)
			last_ns = p->duration_ns - rss->time_ns;
		break;
	}
	return last_ns;
}

static int print_growth(FILE *out, struct sp_answer *answer, uint64_t last_ns,
			struct sp_error *err)
{
	struct sp_aggregate *functions;
	const int r = sp_answer_rows(answer, SP_VIEW_LIVE, SP_BY_FUNCTION,
				     &functions, err);

	if (r < 0)
		return r;
	print_line(out, answer->analysis, functions, last_ns);
	sp_aggregate_free(functions);
	return 0;
}

int sp_growth_print(FILE *out, const struct sp_options *options,
		    const struct sp_profile *profile, sp_progress_fn *progress,
		    void *progress_arg, struct sp_error *err)
{
	const uint64_t last_ns = last_ns_of(profile);
	const struct sp_load_needs needs = {0};
	struct sp_question question;
	struct sp_answer answer;
	struct sp_profile *again;
	int r;

	if (!sp_profile_is_killed_for_memory(profile) || !profile->has_frees ||
	    !last_ns)
		return 0;
	sp_question_init(&question);
	question.has_view = true;
	question.view = SP_VIEW_LIVE;
	question.confidence = options->question.confidence;
	question.from =
		(struct sp_moment){.kind = SP_MOMENT_LAST, .ns = last_ns};
	r = sp_load(options->files, options->n_files, &question, &needs,
		    progress, progress_arg, &again, err);
	if (r < 0)
		return r;
	answer = (struct sp_answer){.profile = again,
				    .question = &question,
				    .symbols = &options->symbols,
				    .progress = progress,
				    .progress_arg = progress_arg};
	r = print_growth(out, &answer, last_ns, err);
	sp_answer_done(&answer);
	sp_profile_free(again);
	return r;
}
