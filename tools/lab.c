/* SPDX-License-Identifier: MIT */
/* The command lab: what its options ask for, written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/options.h"
#include "lab/recorded.h"
#include "lab/workload.h"
#include "lab/write.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

/* ---- one trace ---- */

/* What was written so far. */
struct output {
	struct sp_json json;
	size_t n; /* traces */
};

static int check_options(const struct sp_lab_options *o,
			 struct sp_lab_trace *trace, struct sp_error *err)
{
	if (o->site && sp_lab_trace_look_at(trace, o->site) < 0)
		return sp_error_set(err, -ENOENT, NULL,
				    "--site: no function of %.60s that "
				    "allocates itself is called %.80s",
				    trace->name, o->site);
	if (o->trial.samples > trace->n_allocs / 2)
		return sp_error_set(
			err, -ERANGE, NULL,
			"%.60s has %zu allocations: --samples takes "
			"at most half of that",
			trace->name, trace->n_allocs);
	return 0;
}

/* Nothing is written before something is known to be right. */
static int try_all(const struct sp_lab_options *o, struct sp_lab_trace *trace,
		   struct output *output, struct sp_error *err)
{
	struct sp_lab_result results[SP_LAB_STRATEGIES];
	size_t n = 0;
	int r = check_options(o, trace, err);

	for (const struct sp_lab_strategy *s = sp_lab_strategies;
	     r >= 0 && s->name; s++) {
		if (o->strategy && strcmp(o->strategy, s->name) != 0)
			continue;
		if (sp_lab_try(&o->trial, trace, s, &results[n++]) < 0)
			r = sp_error_memory(err, NULL);
	}
	if (r < 0)
		return r;
	if (o->json && !output->n)
		sp_json_open(&output->json, NULL, '[');
	else if (!o->json && output->n)
		putc('\n', output->json.out);
	output->n++;
	if (o->json)
		sp_lab_write_json(&output->json, &o->trial, trace, results, n);
	else
		sp_lab_print(output->json.out, &o->trial, trace, results, n);
	return 0;
}

static int try_recorded(const struct sp_lab_options *o, struct output *output,
			struct sp_error *err)
{
	struct sp_lab_trace trace;
	int r = sp_lab_recorded(o->file, &o->symbols, &trace, err);

	if (r < 0)
		return r;
	r = try_all(o, &trace, output, err);
	sp_lab_trace_free(&trace);
	return r;
}

static int try_workloads(const struct sp_lab_options *o, struct output *output,
			 struct sp_error *err)
{
	int r = 0;

	for (const struct sp_lab_workload *w = sp_lab_workloads;
	     r >= 0 && w->name; w++) {
		struct sp_lab_trace trace;

		if (o->workload && strcmp(o->workload, w->name) != 0)
			continue;
		if (sp_lab_workload_make(w, o->trial.samples, o->trial.seed,
					 &trace) < 0)
			return sp_error_memory(err, NULL);
		r = try_all(o, &trace, output, err);
		sp_lab_trace_free(&trace);
	}
	return r;
}

static int print_trials(const struct sp_lab_options *o)
{
	FILE *out = sp_console_open();
	struct output output = {.json = {.out = out, .is_first = true}};
	struct sp_error err;
	int r = o->file ? try_recorded(o, &output, &err)
			: try_workloads(o, &output, &err);

	if (r < 0)
		return sp_console_fail_with(&err);
	if (o->json) {
		sp_json_close(&output.json, ']');
		putc('\n', out);
	}
	return sp_console_close(out);
}

int run_lab(int argc, char **argv)
{
	struct sp_lab_options options;
	struct sp_error err;
	int code;

	sp_text_set_ascii(!sp_console_is_utf8());
	code = sp_console_parsed(
		sp_lab_options_parse(argc, argv, &options, &err), &err,
		&sp_lab_line, "lab");
	if (code >= 0)
		return code;
	return print_trials(&options);
}
