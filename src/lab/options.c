/* SPDX-License-Identifier: MIT */
#include "lab/options.h"

#include <errno.h>
#include <stddef.h>

#include "base/parse.h"
#include "cli/arguments.h"
#include "cli/options.h"
#include "lab/strategy.h"
#include "lab/workload.h"

#define DEFAULT_SAMPLES 300
#define DEFAULT_RUNS    1000
#define SAMPLES_MAX     100000000u
#define RUNS_MAX        10000000u

static bool take_workload(void *part, const char *text)
{
	struct sp_lab_options *o = part;

	o->workload = text;
	return sp_lab_workload_find(text) != NULL;
}

static bool take_strategy(void *part, const char *text)
{
	struct sp_lab_options *o = part;

	o->strategy = text;
	return sp_lab_strategy_find(text) != NULL;
}

static bool take_samples(void *part, const char *text)
{
	struct sp_lab_options *o = part;

	return sp_parse_u64(text, &o->trial.samples) && o->trial.samples &&
	       o->trial.samples <= SAMPLES_MAX;
}

static bool take_runs(void *part, const char *text)
{
	struct sp_lab_options *o = part;

	return sp_parse_u64(text, &o->trial.runs) && o->trial.runs >= 2 &&
	       o->trial.runs <= RUNS_MAX;
}

#define TEXT(name, meta, takes, field, help)                                   \
	{                                                                      \
		name, 0, meta, takes, NULL,                                    \
			offsetof(struct sp_lab_options, field), help           \
	}
#define FLAG(name, field, help) TEXT(name, NULL, NULL, field, help)

static const struct sp_argument arguments[] = {
	{"workload", 0, "NAME", "a workload of --help", take_workload, 0,
	 "only this one of those below (default all)"},
	{"strategy", 0, "NAME", "a strategy of --help", take_strategy, 0,
	 "only this one of those below (default all)"},
	TEXT("site", "NAME", "the name of a function", site,
	     "the function that tables are about (default the one\n"
	     "of the workload, or that which allocated most)"),
	{"samples", 0, "N", "a number from 1 to 100000000", take_samples, 0,
	 "samples that each strategy is to take in a run, on\n"
	 "average (default 300)"},
	{"runs", 0, "N", "a number from 2 to 10000000", take_runs, 0,
	 "runs of each strategy (default 1000)"},
	{"seed", 0, "N", "a number", sp_argument_number,
	 offsetof(struct sp_lab_options, trial.seed),
	 "another seed, other random numbers (default 1)"},
	FLAG("json", json, "everything as JSON"),
	{0},
};

static const char *workload_word(size_t i)
{
	return sp_lab_workloads[i].name;
}

static const char *strategy_word(size_t i)
{
	return sp_lab_strategies[i].name;
}

static const struct sp_argument_values values[] = {
	{"workload", workload_word}, {"strategy", strategy_word}, {0}};

static const struct sp_argument_group group = {"What to try", arguments,
					       values};
static void describe_options(FILE *out)
{
	fputs("\nWorkloads:\n", out);
	for (const struct sp_lab_workload *w = sp_lab_workloads; w->name; w++)
		fprintf(out, "  %-16s %s\n", w->name, w->about);
	fputs("\nStrategies:\n", out);
	for (const struct sp_lab_strategy *s = sp_lab_strategies; s->name; s++)
		fprintf(out, "  %-16s %s\n", s->name, s->about);
}

const struct sp_command_line sp_lab_line = {
	.forms = "lab [OPTION]... [FILE]",
	.brief = "Try ways to sample allocations on a program of which all are "
		 "known: one that\n"
		 "was recorded into FILE with SAMPLEPROF_PERIOD=1, or made-up "
		 "workloads.  Of each\n"
		 "way: bias, standard deviation, how often its 95 % interval "
		 "contains the truth.\n"
		 "\n"
		 "  --workload NAME    small, tail, large, bursts, ramp, "
		 "periodic or threads\n"
		 "  --strategy NAME    one way to sample (default all; "
		 "--help-all lists them)\n"
		 "  --site NAME        the function that tables are about\n"
		 "  --samples N        samples that each strategy is to take "
		 "in a run, on\n"
		 "                     average (default 300)\n"
		 "  --runs N           runs of each strategy (default 1000)\n"
		 "  --json             everything as JSON\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Exit status: 0 fine, 1 error, 2 usage.\n",
	.about = "Try ways to sample allocations on a program of which all are "
		 "known: one that\n"
		 "was recorded into FILE with SAMPLEPROF_PERIOD=1, or made-up "
		 "workloads.  Of each\n"
		 "way: bias, standard deviation, how often its 95 % interval "
		 "contains the truth.\n",
	.describe = describe_options,
	.parts =
		(const struct sp_argument_part[]){
			{&group, 0},
			{&sp_options_symbols,
			 offsetof(struct sp_lab_options, symbols)},
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

int sp_lab_options_parse(int argc, char **argv, struct sp_lab_options *ret,
			 struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_lab_options){
		.trial = {DEFAULT_SAMPLES, DEFAULT_RUNS, 1}};
	r = sp_arguments_parse(&sp_lab_line, argc, argv, ret, &words, &n, err);
	if (r)
		return r;
	if (n > 1)
		return sp_error_set(err, -EINVAL, NULL,
				    "one recording at a time: there is more "
				    "than one FILE");
	if (n && ret->workload)
		return sp_error_set(err, -EINVAL, NULL,
				    "FILE or --workload, not both");
	ret->file = n ? words[0] : NULL;
	return 0;
}
