/* SPDX-License-Identifier: MIT */
#include "lab/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/answer.h"
#include "text/text.h"

/* Is every allocation there? */
static int check_profile(const struct sp_profile *profile, const char *path,
			 struct sp_error *err)
{
	const uint64_t lost = sp_profile_lost_samples(profile);

	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].period_bytes != 1)
			return sp_error_set(
				err, -EINVAL, path,
				"only some allocations are in it, but the lab "
				"needs all of them: record the program with "
				"SAMPLEPROF_PERIOD=1");
	if (profile->discarded_bytes)
		return sp_error_set(err, -EINVAL, path,
				    "the first allocations were discarded, "
				    "since the file was too small: record the "
				    "program with a larger "
				    "SAMPLEPROF_MAX_FILE");
	if (profile->damage[0] || profile->is_cut || lost)
		return sp_error_set(err, -EINVAL, path,
				    "some allocations are missing%s; record "
				    "the program again",
				    lost ? ", which did not fit" : "");
	if (profile->n_samples == 0)
		return sp_error_set(err, -EINVAL, path,
				    "the program allocated nothing");
	return 0;
}

/* Functions by their rows, with copies of their names: NULL without memory. */
static int name_sites(const struct sp_aggregate *aggregate,
		      struct sp_lab_trace *trace)
{
	const size_t n = aggregate->n_functions;

	trace->sites = calloc(n + 1, sizeof(*trace->sites));
	if (!trace->sites)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *name =
			sp_aggregate_at(aggregate, (uint32_t)i)->name;

		trace->sites[i] =
			sp_blocks_text(&trace->storage, name, strlen(name));
		if (!trace->sites[i])
			return -ENOMEM;
	}
	trace->n_sites = (uint32_t)n;
	/* The first has most bytes: the order is flat. */
	trace->focus = aggregate->functions[0].row;
	return 0;
}

static int add_samples(const struct sp_profile *profile,
		       const struct sp_aggregate *aggregate,
		       struct sp_lab_trace *trace)
{
	int r = 0;

	trace->n_threads = (uint32_t)profile->n_thread_infos + 1;
	trace->duration_ns = profile->duration_ns;
	for (size_t i = 0; r >= 0 && i < profile->n_samples; i++) {
		const struct sp_sample *s = &profile->samples[i];
		const uint32_t thread =
			s->thread < profile->n_thread_infos ? s->thread + 1 : 0;

		if (s->born_ns >= trace->duration_ns)
			trace->duration_ns = s->born_ns + 1;
		r = sp_lab_trace_add(trace,
				     &(struct sp_lab_alloc){
					     s->born_ns, s->size_bytes,
					     aggregate->row_of_stack[s->stack],
					     thread});
	}
	return r;
}

/* Ids of a thread ascend; those of several threads go side by side. */
SP_ORDER(by_time, struct sp_lab_alloc, SP_UP(time_ns) || SP_UP(thread));

static int make_trace(const struct sp_profile *profile,
		      const struct sp_symbolizer_options *symbols,
		      struct sp_lab_trace *ret, struct sp_error *err)
{
	struct sp_answer answer = {.profile = profile, .symbols = symbols};
	struct sp_aggregate *aggregate;
	int r = sp_answer_whole(&answer, SP_BY_FUNCTION, &aggregate, err);

	if (r >= 0 && (name_sites(aggregate, ret) < 0 ||
		       add_samples(profile, aggregate, ret) < 0))
		r = sp_error_memory(err, NULL);
	sp_aggregate_free(aggregate);
	sp_answer_done(&answer);
	return r;
}

int sp_lab_recorded(const char *path,
		    const struct sp_symbolizer_options *symbols,
		    struct sp_lab_trace *ret, struct sp_error *err)
{
	struct sp_profile *profile;
	const char *name;
	int r = sp_profile_load(path, NULL, NULL, &profile, err);

	*ret = (struct sp_lab_trace){.about = "as it was recorded"};
	if (r < 0)
		return r;
	r = check_profile(profile, path, err);
	if (r >= 0)
		r = make_trace(profile, symbols, ret, err);
	if (r >= 0) {
		name = sp_text_base_name(profile->program);
		ret->name = sp_blocks_text(&ret->storage, name, strlen(name));
		qsort(ret->allocs, ret->n_allocs, sizeof(*ret->allocs),
		      by_time);
		if (!ret->name || sp_lab_trace_finish(ret) < 0)
			r = sp_error_memory(err, NULL);
	}
	if (r < 0)
		sp_lab_trace_free(ret);
	sp_profile_free(profile);
	return r;
}
