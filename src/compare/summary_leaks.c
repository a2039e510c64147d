/* SPDX-License-Identifier: MIT */
/* The verdicts of the command leaks, as a run of a check has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare/summary.h"
#include "report/answer.h"
#include "report/leak_sites.h"

static int take_sites(struct sp_summary *s, const struct sp_leak_sites *sites)
{
	s->has_leaks = true;
	s->leak_rates = calloc(sites->n_sites + 1, sizeof(*s->leak_rates));
	if (!s->leak_rates)
		return -ENOMEM;
	for (size_t i = 0; i < sites->n_sites; i++) {
		const struct sp_leak_site *site = &sites->sites[i];
		struct sp_leak_rate *rate = &s->leak_rates[s->n_leak_rates];
		struct sp_interval bytes = sp_growth_bytes(
			&site->leak->growth[SP_LEAK_BY_TIME], false, s->level);

		*rate = (struct sp_leak_rate){
			.name = strdup(site->function->name),
			.verdict = site->leak->verdict,
			.per_s = {bytes.value / sites->seconds,
				  bytes.lo / sites->seconds,
				  bytes.hi / sites->seconds},
			.p = site->leak->p,
			.longer_ns = site->longer_ns,
		};
		s->n_leak_rates++;
		if (!rate->name)
			return -ENOMEM;
	}
	return 0;
}

static int judge_functions(struct sp_summary *s, struct sp_answer *answer,
			   struct sp_error *err)
{
	struct sp_aggregate *aggregate;
	struct sp_leak_sites *sites;
	int r = sp_answer_rows(answer, SP_VIEW_ALLOC, SP_BY_FUNCTION,
			       &aggregate, err);

	if (r < 0)
		return r;
	r = sp_leak_sites_new(aggregate, SP_NEVER, SP_NEVER, &sites, err);
	if (r == -ENODATA) {
		s->why_no_leaks = "the run is too short to be judged";
		r = 0;
	} else if (r >= 0) {
		if (take_sites(s, sites) < 0)
			r = sp_error_memory(err, s->path);
		sp_leak_sites_free(sites);
	}
	sp_aggregate_free(aggregate);
	return r;
}

int sp_summary_take_leaks(struct sp_summary *s,
			  const struct sp_profile *profile,
			  const struct sp_symbolizer_options *symbols,
			  const struct sp_question *question,
			  struct sp_error *err)
{
	struct sp_question whole;
	struct sp_answer answer = {
		.profile = profile, .question = &whole, .symbols = symbols};
	int r;

	if (!sp_question_is_whole(question))
		s->why_no_leaks = "leaks are judged of whole runs";
	else if (!profile->has_frees)
		s->why_no_leaks =
			"the profile has no frees (SAMPLEPROF_FREES=off)";
	else if (profile->is_timeless || profile->n_parts != 1)
		s->why_no_leaks = "leaks are judged of one process, with times";
	if (s->why_no_leaks)
		return 0;
	sp_question_init(&whole);
	r = judge_functions(s, &answer, err);
	sp_answer_done(&answer);
	return r;
}
