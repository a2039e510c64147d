/* SPDX-License-Identifier: MIT */
#include "cli/leaks.h"

#include <errno.h>
#include <stddef.h>

#include "cli/near_function.h"
#include "cli/options.h"
#include "report/answer.h"
#include "text/lines.h"

#define DEFAULT_TOP 10

/* ---- the command line ---- */

static bool take_granularity(void *field, const char *text)
{
	return sp_granularity_parse(text, field);
}

static const struct sp_argument arguments[] = {
	{"from", 0, "TIME", "a time since the start: 2s, 500ms, 50%",
	 sp_options_take_moment,
	 offsetof(struct sp_leaks_options, question.from),
	 "judge the run from then on: leave out the time that the\n"
	 "program takes to start"},
	{"to", 0, "TIME", "a time since the start: 2s, 500ms, 50%, end",
	 sp_options_take_moment, offsetof(struct sp_leaks_options, question.to),
	 "judge it until then (default: the end, or the moment at\n"
	 "which it begins to free everything)"},
	{"granularity", 0, "WHAT", "function, file, line, module or address",
	 take_granularity, offsetof(struct sp_leaks_options, granularity),
	 "what a call site is: function (default), file, line,\n"
	 "module, address"},
	{"top", 0, "N", "a number", sp_argument_number,
	 offsetof(struct sp_leaks_options, top),
	 "sites of each verdict; 0 shows all (default 10)"},
	SP_ARGUMENT_FLAG(struct sp_leaks_options, "json", json,
			 "everything as JSON"),
	SP_ARGUMENT_FLAG(struct sp_leaks_options, "csv", csv,
			 "the sites as CSV"),
	{0},
};

static const struct sp_argument_values values[] = {
	{"granularity", sp_granularity_word}, {0}};

static const struct sp_argument_group group = {"What is judged", arguments,
					       values};
#define PART(group, member)                                                    \
	SP_ARGUMENT_PART(struct sp_leaks_options, group, member)

const struct sp_command_line sp_leaks_line = {
	.forms = "leaks [OPTION]... FILE",
	.brief = "Show which call sites leak, which fill a cache, and which "
		 "are steady, by how\n"
		 "their live bytes grow during the run. The process may still "
		 "run.\n"
		 "\n"
		 "  --from TIME        judge the run from then on: leave out "
		 "the time that the\n"
		 "                     program takes to start\n"
		 "  --to TIME          judge it until then (default: the end)\n"
		 "  --granularity WHAT what a call site is: function "
		 "(default), file, line,\n"
		 "                     module, address\n"
		 "  --focus, --ignore REGEX\n"
		 "                     only call stacks with a match, without "
		 "one\n"
		 "  --top N            sites of each verdict; 0 shows all "
		 "(default 10)\n"
		 "  --json, --csv      everything as JSON; the sites as CSV\n"
		 "  --debuginfod       fetch missing debug files from "
		 "$DEBUGINFOD_URLS\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Exit status: 0 fine, 1 error, 2 usage. For CI: check --limit "
		 "leak_rate=SIZE.\n",
	.about = "Show which call sites leak, which fill a cache, and which "
		 "are steady, by how\n"
		 "their live bytes grow during the run. The process may still "
		 "run. A site that\n"
		 "cannot be judged yet is undecided, with what would decide "
		 "it.\n",
	.parts =
		(const struct sp_argument_part[]){
			{&group, 0},
			PART(sp_options_filter, question),
			PART(sp_options_functions, symbols),
			PART(sp_options_symbols, symbols),
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage. For CI: check "
		  "--limit leak_rate=SIZE.\n",
};

int sp_leaks_parse(int argc, char **argv, struct sp_leaks_options *ret,
		   struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_leaks_options){.top = DEFAULT_TOP};
	sp_question_init(&ret->question);
	r = sp_arguments_parse(&sp_leaks_line, argc, argv, ret, &words, &n,
			       err);
	if (r)
		return r;
	if (ret->json && ret->csv)
		return sp_error_set(err, -EINVAL, NULL,
				    "--json or --csv, not both");
	r = sp_options_settle_functions(&ret->symbols, err);
	if (r < 0)
		return r;
	return sp_arguments_take_file(words, n, &ret->file, err);
}

/* ---- the verdicts ---- */

/* When the run begins and ends that is judged. */
static int find_span(const struct sp_profile *profile,
		     const struct sp_leaks_options *o, uint64_t *from_ns,
		     uint64_t *to_ns, struct sp_error *err)
{
	struct sp_selection births;
	int r = sp_question_needs_frees(profile, "leaks", err);

	if (r >= 0)
		r = sp_question_select(&o->question, profile, SP_VIEW_ALLOC,
				       &births, err);
	if (r < 0)
		return r;
	*from_ns = o->question.from.kind == SP_MOMENT_NONE ? SP_NEVER
							   : births.from_ns;
	*to_ns = births.to_ns;
	if (o->question.to.kind != SP_MOMENT_NONE && *to_ns == SP_NEVER)
		*to_ns = profile->duration_ns;
	return 0;
}

static int write_fitted(FILE *out, const struct sp_aggregate *aggregate,
			const struct sp_leak_sites *sites,
			const struct sp_leaks_options *options,
			struct sp_error *err)
{
	char *lines = NULL;
	size_t size;
	FILE *text;
	int r;

	if (options->json)
		sp_leaks_write_json(out, aggregate, sites);
	if (options->csv)
		sp_leaks_write_csv(out, sites);
	if (options->json || options->csv)
		return 0;
	text = open_memstream(&lines, &size);
	if (!text)
		return sp_error_memory(err, NULL);
	sp_lines_begin_page();
	sp_leaks_write_text(text, aggregate, sites, options);
	r = sp_lines_close_page(out, text, &lines);
	return r < 0 ? sp_error_memory(err, NULL) : 0;
}

static int write_verdicts(FILE *out, const struct sp_aggregate *aggregate,
			  const struct sp_leaks_options *options,
			  struct sp_error *err)
{
	struct sp_leak_sites *sites;
	uint64_t from_ns, to_ns;
	int r = find_span(aggregate->analysis->profile, options, &from_ns,
			  &to_ns, err);

	if (r >= 0)
		r = sp_leak_sites_new(aggregate, from_ns, to_ns, &sites, err);
	if (r < 0)
		return r;
	r = write_fitted(out, aggregate, sites, options, err);
	sp_leak_sites_free(sites);
	return r;
}

int sp_leaks_print(FILE *out, const struct sp_profile *profile,
		   const struct sp_leaks_options *options,
		   sp_progress_fn *progress, void *progress_arg,
		   struct sp_error *err)
{
	/* Of the question the times are the judgement's. */
	struct sp_question stacks;
	struct sp_answer answer = {
		.profile = profile,
		.question = &stacks,
		.symbols = &options->symbols,
		.progress = progress,
		.progress_arg = progress_arg,
	};
	struct sp_aggregate *aggregate;
	int r;

	sp_question_init(&stacks);
	stacks.filter = options->question.filter;
	r = sp_answer_rows(&answer, SP_VIEW_ALLOC, options->granularity,
			   &aggregate, err);
	if (r >= 0 && !options->json && !options->csv)
		r = sp_near_filter_error(&answer, SP_VIEW_ALLOC, err);
	if (r >= 0)
		r = write_verdicts(out, aggregate, options, err);
	sp_aggregate_free(aggregate);
	sp_answer_done(&answer);
	return r;
}
