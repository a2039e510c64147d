/* SPDX-License-Identifier: MIT */
#include "compare/gate_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"
#include "cli/options.h"

#define DEFAULT_TOP 30

/* One more of the struct sp_words.  Without memory it is as if the word were
 * none. */
static bool add_word(void *field, const char *text)
{
	struct sp_words *words = field;
	void *array = words->at;

	if (!*text || sp_array_reserve(&array, &words->room, words->n,
				       sizeof(*words->at)) < 0)
		return false;
	words->at = array;
	words->at[words->n++] = text;
	return true;
}

static bool take_undecided(void *part, const char *text)
{
	struct sp_gate_options *o = part;

	for (int i = 0; i < SP_UNDECIDED_KINDS; i++)
		if (strcmp(text, sp_undecided_name((enum sp_undecided)i)) ==
		    0) {
			o->undecided = (enum sp_undecided)i;
			return true;
		}
	return false;
}

static bool take_stacks(void *part, const char *text)
{
	struct sp_gate_options *o = part;

	o->has_stacks = true;
	return sp_parse_u64(text, &o->stacks);
}

#define FLAG(name, field, help)                                                \
	SP_ARGUMENT_FLAG(struct sp_gate_options, name, field, help)

#define PART(group, field)                                                     \
	SP_ARGUMENT_PART(struct sp_gate_options, group, field)

static const struct sp_argument check_arguments[] = {
	{"baseline", 0, "BASE...", "a baseline or profiles", add_word,
	 offsetof(struct sp_gate_options, baselines),
	 "what to compare with: a .json that --update-baseline\n"
	 "wrote, or profiles; all words up to the next option"},
	{"limit", 0, "LIMIT", "a limit, such as alloc_bytes=+3%", add_word,
	 offsetof(struct sp_gate_options, limit_words),
	 "what may not change, or by how much at most: Limits"},
	{"limits", 0, "FILE", "a file of limits", add_word,
	 offsetof(struct sp_gate_options, limit_files),
	 "limits from a file, one on each line, # comments"},
	{"format", 0, "FORMAT[=FILE]", "a format", add_word,
	 offsetof(struct sp_gate_options, format_words),
	 "how to write the result, and where to (default text);\n"
	 "may be given several times"},
	{"evidence", 0, "DIR", "a directory", sp_argument_text,
	 offsetof(struct sp_gate_options, evidence),
	 "keep reports and profiles here unless all passed"},
	{"undecided", 0, "fail|warn|pass", "fail, warn or pass", take_undecided,
	 0,
	 "if a limit cannot be decided: exit status 4 (default),\n"
	 "or 0 with a warning, or 0 as if it passed"},
	FLAG("any-program", any_program, "compare programs of different names"),
	FLAG("update-baseline", update,
	     "write NEW to the .json of --baseline, and show what\n"
	     "changes"),
	{0},
};

static const struct sp_argument diff_arguments[] = {
	{"baseline", 0, "OLD...", "a baseline or profiles", add_word,
	 offsetof(struct sp_gate_options, baselines),
	 "several runs as old; all other files are new"},
	{"base-from", 0, "TIME", "a time since the start: 2s, 500ms, 50%",
	 sp_options_take_moment, offsetof(struct sp_gate_options, base_from),
	 "what --from is for the old side: with one FILE, two\n"
	 "parts of its run are compared"},
	{"base-to", 0, "TIME", "a time since the start: 2s, 500ms, 50%, end",
	 sp_options_take_moment, offsetof(struct sp_gate_options, base_to),
	 "what --to is for the old side; with either of them, the\n"
	 "other is that of the run"},
	{"base-at", 0, "TIME|NAME",
	 "a time since the start: 2s, 500ms, 50%, end", sp_options_take_at,
	 offsetof(struct sp_gate_options, base_at),
	 "what --at is for the old side: live bytes at two\n"
	 "moments"},
	{"top", 0, "N", "a number", sp_argument_number,
	 offsetof(struct sp_gate_options, top),
	 "functions; 0 shows all (default 30)"},
	{"stacks", 0, "N", "a number", take_stacks, 0,
	 "the N call paths with the largest changes; 0 all"},
	FLAG("json", json, "everything as JSON"),
	FLAG("csv", csv, "the functions as CSV"),
	FLAG("no-pager", no_pager,
	     "no pager for output longer than the screen"),
	{0},
};

static const char *format_word(size_t i)
{
	return sp_check_formats[i].name;
}

static const char *undecided_word(size_t i)
{
	return i < SP_UNDECIDED_KINDS ? sp_undecided_name((enum sp_undecided)i)
				      : NULL;
}

static const struct sp_argument_values check_values[] = {
	{"format", format_word}, {"undecided", undecided_word}, {0}};

static const struct sp_argument_group check_group = {
	"How to check", check_arguments, check_values};
static const struct sp_argument_group diff_group = {"What to show",
						    diff_arguments, NULL};
static void describe_formats(FILE *out)
{
	fputs("\nFormats:\n", out);
	for (const struct sp_check_format *f = sp_check_formats; f->name; f++)
		fprintf(out, "  %-18s %s\n", f->name, f->what);
}

const struct sp_command_line sp_check_line = {
	.forms = "check NEW... [--baseline BASE...] [OPTION]...",
	.brief = "Compare profiles of a program with limits. Several NEW or "
		 "BASE are runs that\n"
		 "show the noise of the program.\n"
		 "\n"
		 "  --baseline BASE... what to compare with: profiles, or a "
		 ".json that\n"
		 "                     --update-baseline wrote\n"
		 "  --limit LIMIT      alloc_bytes=+3%    exact: at most 3 % "
		 "above the baseline\n"
		 "                     peak_bytes=24M     at most that; needs "
		 "no baseline\n"
		 "                     leak_rate=10K      bytes a second that "
		 "a function leaks\n"
		 "                     sites=+10%&64K     each function by "
		 "itself, new ones too\n"
		 "                     site(^json_)=+5%   call paths through "
		 "functions that match\n"
		 "  --limits FILE      limits from a file, one on each line, # "
		 "comments\n"
		 "  --format FORMAT[=FILE]\n"
		 "                     text (default), json, junit, github, "
		 "summary\n"
		 "  --update-baseline  write NEW to the .json of --baseline\n"
		 "  --evidence DIR     keep reports and profiles here unless "
		 "all passed\n"
		 "  --help-all         all limits and options\n"
		 "\n"
		 "Exit status: 0 passed, 1 error, 2 usage, 3 a limit is "
		 "exceeded, 4 cannot tell.\n",
	.about = "Compare profiles of a program with limits. Most limits are "
		 "on the change since a\n"
		 "baseline. Each NEW, and each BASE, is a run of its own: "
		 "several runs show the\n"
		 "noise of the program.\n"
		 "\n"
		 "Limits:\n"
		 "  alloc_bytes=+3%         exact: at most 3 % above the "
		 "baseline\n"
		 "  alloc_objects=+3%&1000  exact: exceeded by more than 3 % "
		 "and more than 1000\n"
		 "  alloc_bytes=+-3%        either way: a decrease makes the "
		 "baseline stale\n"
		 "  peak_bytes=24M          at most that; needs no baseline\n"
		 "  live_bytes, temporary_bytes=+64K\n"
		 "  leak_rate=10K           bytes a second that a function "
		 "leaks (leaks);\n"
		 "                          leak_rate(REGEX): one whose name "
		 "matches\n"
		 "  sites=+10%&64K          each function by itself, new ones "
		 "too\n"
		 "  site(^json_)=+5%        call paths through functions that "
		 "match\n"
		 "  module(^libxml2)=+5%    call paths through modules that "
		 "match\n"
		 "  alloc_bytes@load=+1%    exact, in the phase \"load\"\n"
		 "  sites@load=+10%&64K     functions in that phase\n",
	.describe = describe_formats,
	.parts =
		(const struct sp_argument_part[]){
			{&check_group, 0},
			PART(sp_options_functions, symbols),
			PART(sp_options_symbols, symbols),
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 passed, 1 error, 2 usage, 3 a limit is "
		  "exceeded, 4 cannot tell.\n",
};

const struct sp_command_line sp_diff_line = {
	.forms = "diff [OPTION]... OLD NEW\n"
		 "diff [OPTION]... NEW... --baseline OLD...\n"
		 "diff [OPTION]... --base-to TIME --from TIME FILE",
	.brief = "Show what changed between two profiles, by function name and "
		 "module. ~ marks\n"
		 "changes that may be noise, ? rows that cannot be compared.\n"
		 "\n"
		 "  --baseline OLD...  several runs as old; all other files "
		 "are new\n"
		 "  --view VIEW        alloc (default), live, peak, leaks, "
		 "temporary, mapped\n"
		 "  --at TIME|NAME     the moment of live: 2s, 50%, end, a "
		 "snapshot\n"
		 "  --from, --to TIME  only what was allocated then\n"
		 "  --base-at, --base-from, --base-to TIME\n"
		 "                     the same for the old side, also of one "
		 "FILE\n"
		 "  --focus, --ignore REGEX\n"
		 "                     only call stacks with a match, or "
		 "without one\n"
		 "  --top N            functions; 0 shows all (default 30)\n"
		 "  --stacks N         the N call paths with the largest "
		 "changes; 0 all\n"
		 "  --json, --csv      everything as JSON; the functions as "
		 "CSV\n"
		 "  --debuginfod       fetch missing debug files from "
		 "$DEBUGINFOD_URLS\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Exit status: 0 fine, 1 error, 2 usage.\n",
	.about = "Show what changed between two profiles, by function name and "
		 "module: code that\n"
		 "only moved is the same code. ~ marks changes that may be "
		 "noise, ? rows that\n"
		 "cannot be compared.\n",
	.parts =
		(const struct sp_argument_part[]){
			PART(sp_options_question, question),
			PART(sp_options_filter, question),
			PART(sp_options_method, question),
			{&diff_group, 0},
			PART(sp_options_functions, symbols),
			PART(sp_options_symbols, symbols),
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n",
};

/* ---- what the words mean ---- */

static bool is_baseline_option(const char *word)
{
	return strcmp(word, "--baseline") == 0 ||
	       strcmp(word, "-baseline") == 0;
}

/* --baseline A B C as --baseline A --baseline B --baseline C.  *ret_argv has
 * *ret_argc words and a NULL, and is to be freed. */
static int spread_baselines(int argc, char **argv, int *ret_argc,
			    char ***ret_argv)
{
	char **words = calloc(2 * (size_t)argc + 1, sizeof(*words));
	char *option = NULL;
	int n = 0;

	if (!words)
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		if (i && argv[i][0] == '-' && argv[i][1])
			option = is_baseline_option(argv[i]) ? argv[i] : NULL;
		else if (option && !is_baseline_option(argv[i - 1]))
			words[n++] = option;
		words[n++] = argv[i];
	}
	*ret_argc = n;
	*ret_argv = words;
	return 0;
}

/* Fill `o`; its files are the words that are no options. */
static int parse_line(const struct sp_command_line *line, int argc, char **argv,
		      struct sp_gate_options *o, struct sp_error *err)
{
	char **spread;
	int n, r;

	*o = (struct sp_gate_options){.top = DEFAULT_TOP};
	sp_question_init(&o->question);
	if (spread_baselines(argc, argv, &n, &spread) < 0)
		return sp_error_memory(err, NULL);
	o->spread = spread;
	r = sp_arguments_parse(line, n, spread, o, &o->files, &o->n_files, err);
	if (r)
		return r;
	if (o->n_files)
		return sp_options_settle_functions(&o->symbols, err);
	return sp_error_set(err, -EINVAL, NULL, "which profile is new? %s",
			    o->baselines.n > 1
				    ? "all words after --baseline, up to the "
				      "next option, are baselines"
				    : "no file was given");
}

/* --base-from and --base-to replace both --from and --to. */
static int settle_old_question(struct sp_gate_options *o, struct sp_error *err)
{
	struct sp_question *q = &o->old_question;

	*q = o->question;
	o->has_base_part =
		o->base_from.kind || o->base_to.kind || o->base_at.kind;
	if (o->base_from.kind || o->base_to.kind) {
		q->from = o->base_from;
		q->to = o->base_to;
	}
	if (!o->base_at.kind)
		return 0;
	q->at = o->base_at;
	if (!o->question.has_view) {
		o->question.has_view = q->has_view = true;
		o->question.view = q->view = SP_VIEW_LIVE;
	}
	return sp_options_settle(q, err);
}

/* Without --baseline. */
static int choose_old_file(struct sp_gate_options *o, struct sp_error *err)
{
	const bool is_one = o->n_files == 1 && o->has_base_part;

	if (!is_one && o->n_files != 2)
		return sp_error_set(err, -EINVAL, NULL,
				    "diff takes OLD and NEW, or NEW... "
				    "--baseline OLD..., or one FILE of which "
				    "--base-from, --base-to or --base-at "
				    "choose another part");
	if (!add_word(&o->baselines, o->files[0]))
		return sp_error_set(err, -EINVAL, NULL, "OLD has no name");
	o->files += !is_one;
	o->n_files -= !is_one;
	return 0;
}

int sp_gate_options_parse_diff(int argc, char **argv,
			       struct sp_gate_options *ret,
			       struct sp_error *err)
{
	struct sp_gate_options *o = ret;
	int r = parse_line(&sp_diff_line, argc, argv, o, err);

	if (r)
		return r;
	r = sp_options_settle(&o->question, err);
	if (r < 0)
		return r;
	if (o->question.samples_of || o->question.of_objects)
		return sp_error_set(
			err, -EINVAL, NULL,
			"diff compares bytes of what was allocated: --view "
			"mapped and reserved are only for the report of one "
			"version, --metric objects is only for an export");
	if (o->json && o->csv)
		return sp_error_set(err, -EINVAL, NULL,
				    "--json or --csv, not both");
	if (o->question.method != SP_METHOD_P3T)
		return sp_error_set(err, -EINVAL, NULL,
				    "diff cannot be used with --estimator");
	r = settle_old_question(o, err);
	return r < 0 || o->baselines.n ? r : choose_old_file(o, err);
}

/* ---- check ---- */

/* Formats of 0.2.0 that jq now makes of the JSON. */
static bool is_recipe(const char *name)
{
	static const char *const names[] = {"gitlab", "bencher", "gobench"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* "junit=report.xml" */
static int take_output(struct sp_gate_options *o, const char *word,
		       struct sp_error *err)
{
	struct sp_check_output *output = &o->outputs[o->n_outputs++];
	char name[32], names[200] = "";
	const size_t n = strcspn(word, "=");

	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	output->format = sp_check_format_find(name);
	output->path = word[n] ? word + n + 1 : NULL;
	if (output->format && !(output->path && !*output->path))
		return 0;
	if (is_recipe(name))
		return sp_error_set(err, -EINVAL, NULL,
				    "--format %s is gone: write --format "
				    "json=FILE, and make it from that with "
				    "the jq recipe for %s in docs/ci.md",
				    name, name);
	for (const struct sp_check_format *f = sp_check_formats; f->name; f++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names),
			 "%s%s", *names ? ", " : "", f->name);
	return sp_error_set(err, -EINVAL, NULL,
			    "--format: %.30s is none of %s, or one of them "
			    "with =FILE",
			    word, names);
}

static int take_outputs(struct sp_gate_options *o, struct sp_error *err)
{
	size_t n_standard = 0;
	int r = 0;

	if (!o->format_words.n && !add_word(&o->format_words, "text"))
		return sp_error_memory(err, NULL);
	o->outputs = calloc(o->format_words.n, sizeof(*o->outputs));
	if (!o->outputs)
		return sp_error_memory(err, NULL);
	for (size_t i = 0; !r && i < o->format_words.n; i++) {
		r = take_output(o, o->format_words.at[i], err);
		n_standard += !r && !o->outputs[i].path;
	}
	if (!r && n_standard > 1)
		r = sp_error_set(err, -EINVAL, NULL,
				 "only one --format goes to standard output; "
				 "the others need =FILE");
	return r;
}

static int take_all_limits(struct sp_gate_options *o, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < o->limit_files.n; i++)
		r = sp_limits_read(&o->limits, o->limit_files.at[i], err);
	for (size_t i = 0; !r && i < o->limit_words.n; i++)
		r = sp_limits_add(&o->limits, o->limit_words.at[i], err);
	return r;
}

static int check_update(const struct sp_gate_options *o, struct sp_error *err)
{
	const char *path = o->baselines.n == 1 ? o->baselines.at[0] : "";
	const size_t n = strlen(path);

	if (n < 6 || strcmp(path + n - 5, ".json") != 0)
		return sp_error_set(err, -EINVAL, NULL,
				    "--update-baseline needs one --baseline "
				    "FILE.json");
	return 0;
}

static int check_limits(const struct sp_gate_options *o, struct sp_error *err)
{
	if (o->limits.n)
		return 0;
	return sp_error_set(err, -EINVAL, NULL,
			    o->limit_files.n
				    ? "%s has no limit, and nothing would be "
				      "checked: write one in a line, such as "
				      "alloc_bytes=+3%%"
				    : "there is no limit, and nothing would "
				      "be checked%s: give --limit "
				      "alloc_bytes=+3%% or --limits FILE",
			    o->limit_files.n ? o->limit_files.at[0] : "");
}

static int check_baselines(const struct sp_gate_options *o,
			   struct sp_error *err)
{
	for (size_t i = 0; !o->baselines.n && i < o->limits.n; i++)
		if (!o->limits.at[i].is_cap)
			return sp_error_set(err, -EINVAL, NULL,
					    "the limit %.80s compares with a "
					    "baseline: give --baseline BASE",
					    o->limits.at[i].text);
	return 0;
}

int sp_gate_options_parse_check(int argc, char **argv,
				struct sp_gate_options *ret,
				struct sp_error *err)
{
	struct sp_gate_options *o = ret;
	int r = parse_line(&sp_check_line, argc, argv, o, err);

	o->question.confidence = SP_SUMMARY_LEVEL;
	if (r)
		return r;
	r = take_outputs(o, err);
	if (r >= 0)
		r = take_all_limits(o, err);
	if (r >= 0)
		r = o->update ? check_update(o, err) : check_limits(o, err);
	if (r >= 0 && !o->update)
		r = check_baselines(o, err);
	return r;
}

void sp_gate_options_done(struct sp_gate_options *o)
{
	sp_limits_done(&o->limits);
	free(o->baselines.at);
	free(o->limit_words.at);
	free(o->limit_files.at);
	free(o->format_words.at);
	free(o->outputs);
	free(o->spread);
}
