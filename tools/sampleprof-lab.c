/* SPDX-License-Identifier: MIT */
/* The sampling lab: the place that prints its errors, and exit codes. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/options.h"
#include "lab/recorded.h"
#include "lab/workload.h"
#include "lab/write.h"
#include "text/text.h"

#define PROGRAM "sampleprof-lab"

enum exit_code {
	EXIT_FINE = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
};

static int fail(const struct sp_error *err, int code)
{
	char line[4096];

	sp_error_describe(err, line, sizeof(line));
	fputs(PROGRAM ": ", stderr);
	sp_text_print(stderr, line);
	putc('\n', stderr);
	return code;
}

/* What was written reached its reader, or that is the error. */
static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_FINE;
	fprintf(stderr, PROGRAM ": standard output: %s\n", strerror(errno));
	return EXIT_ERROR;
}

static int no_memory(struct sp_error *err)
{
	return sp_error_set(err, -ENOMEM, NULL, "not enough memory");
}

/* ---- one trace ---- */

/* What was written so far. */
struct output {
	struct sp_json json;
	size_t n; /* traces */
};

static int check(const struct sp_lab_options *o, struct sp_lab_trace *trace,
		 struct sp_error *err)
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
	int r = check(o, trace, err);

	for (const struct sp_lab_strategy *s = sp_lab_strategies;
	     r >= 0 && s->name; s++) {
		if (o->strategy && strcmp(o->strategy, s->name) != 0)
			continue;
		if (sp_lab_try(&o->trial, trace, s, &results[n++]) < 0)
			r = no_memory(err);
	}
	if (r < 0)
		return r;
	if (o->json && !output->n)
		sp_json_open(&output->json, NULL, '[');
	else if (!o->json && output->n)
		putchar('\n');
	output->n++;
	if (o->json)
		sp_lab_write_json(&output->json, &o->trial, trace, results, n);
	else
		sp_lab_print(stdout, &o->trial, trace, results, n);
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
			return no_memory(err);
		r = try_all(o, &trace, output, err);
		sp_lab_trace_free(&trace);
	}
	return r;
}

static int run(const struct sp_lab_options *o)
{
	struct output output = {.json = {.out = stdout, .is_first = true}};
	struct sp_error err;
	int r = o->file ? try_recorded(o, &output, &err)
			: try_workloads(o, &output, &err);

	if (r < 0)
		return fail(&err, EXIT_ERROR);
	if (o->json) {
		sp_json_close(&output.json, ']');
		putchar('\n');
	}
	return finish_output();
}

int main(int argc, char **argv)
{
	struct sp_lab_options options;
	struct sp_error err;

	/* Only which characters can be drawn depends on the locale. */
	setlocale(LC_CTYPE, "");
	sp_text_set_ascii(strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
	if (sp_lab_options_parse(argc, argv, &options, &err) < 0) {
		fail(&err, EXIT_USAGE);
		fputs("try '" PROGRAM " --help'\n", stderr);
		return EXIT_USAGE;
	}
	if (options.help) {
		sp_lab_options_print_help(stdout);
		return finish_output();
	}
	if (options.version) {
		puts(PROGRAM " " SP_VERSION);
		return finish_output();
	}
	return run(&options);
}
