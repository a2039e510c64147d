/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "symbols/pattern.h"
#include "view/view.h"

#define DEFAULT_TOP 15
#define STATS_TOP   5

#define DEFAULT_SHARE 0.005

#define WATCH_MIN_NS 100000000ull      /* 0.1 s */
#define WATCH_MAX_NS 86400000000000ull /* a day */

static bool take_top(void *part, const char *text)
{
	struct sp_options *o = part;

	o->has_top = true;
	return sp_parse_u64(text, &o->top);
}

/* The position of the word in the list, which NULL ends; -1: it is not there.
 */
static int word_position(const char *const *words, const char *word)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

static const char *const orders[] = {[SP_AGGREGATE_BY_FLAT] = "flat",
				     [SP_AGGREGATE_BY_CUM] = "cum",
				     [SP_AGGREGATE_BY_COUNT] = "count",
				     [SP_AGGREGATE_BY_NAME] = "name",
				     NULL};

static bool take_sort(void *part, const char *text)
{
	const int i = word_position(orders, text);
	struct sp_options *o = part;

	o->has_order = true;
	o->order = (enum sp_aggregate_order)i;
	return i >= 0;
}

static bool take_cum(void *part, const char *text)
{
	(void)text;
	return take_sort(part, "cum");
}

static bool take_granularity(void *part, const char *text)
{
	struct sp_options *o = part;

	o->has_granularity = true;
	return sp_granularity_parse(text, &o->granularity);
}

/* From SP_ROWS_BY_THREAD on. */
static const char *const row_kinds[] = {"thread", "size", "phase", NULL};

static bool take_by(void *part, const char *text)
{
	const int i = word_position(row_kinds, text);
	struct sp_options *o = part;

	o->rows = (enum sp_row_kind)(SP_ROWS_BY_THREAD + i);
	return i >= 0;
}

static bool take_share(void *part, const char *text)
{
	struct sp_options *o = part;
	uint64_t thousandths;

	if (!sp_parse_milli(text, &thousandths) || thousandths > 1000)
		return false;
	o->has_share = true;
	o->share = (double)thousandths / 1000;
	return true;
}

static bool take_unit(void *part, const char *text)
{
	struct sp_options *o = part;

	return sp_text_unit_parse(text, &o->unit);
}

static bool take_stacks(void *part, const char *text)
{
	struct sp_options *o = part;

	o->has_stacks = true;
	return sp_parse_u64(text, &o->stacks);
}

static bool take_watch(void *part, const char *text)
{
	struct sp_options *o = part;

	return sp_parse_duration(text, &o->watch_ns) &&
	       o->watch_ns >= WATCH_MIN_NS && o->watch_ns <= WATCH_MAX_NS;
}

static bool take_json_old(void *part, const char *text)
{
	struct sp_options *o = part;

	(void)text;
	o->json = o->json_old = true;
	return true;
}

#define FLAG(name, member, help)                                               \
	SP_ARGUMENT_FLAG(struct sp_options, name, member, help)

#define PART(group, member) SP_ARGUMENT_PART(struct sp_options, group, member)

static bool take_base(void *part, const char *text)
{
	struct sp_options *o = part;

	if (!*text || o->n_base == SP_OPTIONS_BASE_MAX)
		return false;
	o->base[o->n_base++] = text;
	return true;
}

static const struct sp_argument report_arguments[] = {
	{"base", 0, "OLD", "a profile or a baseline, at most 64 times",
	 take_base, 0,
	 "show what changed since OLD, row by row; several OLD are\n"
	 "added up"},
	{"diff_base", 0, "OLD", "a profile or a baseline, at most 64 times",
	 take_base, 0, NULL},
	{"top", 0, "N", "a number", take_top, 0,
	 "functions; 0 shows all (default 15; of stats 5)"},
	{"sort", 0, "KEY", "flat, cum, count or name", take_sort, 0,
	 "order of the functions: flat (default), cum, count (of\n"
	 "objects, flat; default of --view temporary), name"},
	{"cum", 0, NULL, NULL, take_cum, 0, "short for --sort cum"},
	{"nodefraction", 0, "F", "a share from 0 to 1, like 0.005", take_share,
	 0,
	 "hide rows below this share of the view (default 0.005\n"
	 "for top, tree, peek and list, else 0)"},
	{"granularity", 0, "WHAT", "function, file, line, module or address",
	 take_granularity, 0,
	 "what a row is: function (default), file, line, module,\n"
	 "address"},
	{"by", 0, "WHAT", "thread, size or phase", take_by, 0,
	 "rows by thread, by object size or by phase instead of\n"
	 "functions"},
	{"unit", 0, "UNIT", "B, KiB, MiB, GiB or auto", take_unit, 0,
	 "unit of estimates: B, KiB, MiB, GiB, auto (default)"},
	{"stacks", 0, "N", "a number", take_stacks, 0,
	 "the N call stacks with most bytes instead; 0 shows all"},
	{"source-path", 0, "DIRS", "directories separated by colons", NULL,
	 offsetof(struct sp_options, source_path),
	 "where list looks for source files, separated by colons,\n"
	 "before it looks where they were compiled"},
	FLAG("timeline", timeline, "live bytes over time instead of functions"),
	FLAG("sizes", sizes,
	     "bytes by object size instead of functions: exact for\n"
	     "all allocations, estimated for a view or a part"),
	FLAG("json", json, "everything, or this command's output, as JSON"),
	{"json-old", 0, NULL, NULL, take_json_old, 0,
	 "the same with all frames in each stack, as before 0.3;\n"
	 "only until 0.4"},
	FLAG("csv", csv, "the table as CSV"),
	FLAG("simultaneous", simultaneous,
	     "wider intervals: all rows hold together"),
	FLAG("ascii", ascii, "only ASCII in drawings and names"),
	FLAG("no-pager", no_pager,
	     "no pager for output longer than the screen"),
	{"watch", 0, "TIME", "a time from 100ms to 24h", take_watch, 0,
	 "repeat every TIME, until interrupted"},
	{0},
};

static const char *order_word(size_t i)
{
	return orders[i];
}

static const char *row_kind_word(size_t i)
{
	return row_kinds[i];
}

static const char *unit_word(size_t i)
{
	static const char *const words[] = {"B",   "KiB",  "MiB",
					    "GiB", "auto", NULL};

	return words[i];
}

static const struct sp_argument_values report_values[] = {
	{"sort", order_word},
	{"granularity", sp_granularity_word},
	{"by", row_kind_word},
	{"unit", unit_word},
	{0},
};

const struct sp_argument_group sp_options_report = {
	"What to show", report_arguments, report_values};

/* Options of an export. */
static int refuse_in_report(const char *name, struct sp_error *err)
{
	static const char *const names[] = {
		"o", "output", "metric", "pprof-error", "max-samples", NULL};

	return word_position(names, name) >= 0
		       ? sp_error_set(err, -EINVAL, NULL,
				      "%s%s is only for export FORMAT",
				      name[1] ? "--" : "-", name)
		       : 0;
}

static void describe_commands(FILE *out)
{
	fputs("\nCommands, most with options of their own: see COMMAND "
	      "--help\n",
	      out);
	sp_command_print_reading(out);
}

static void note_option(void *options, const struct sp_argument *argument,
			const char *value)
{
	static const struct sp_argument_group *const kept[] = {
		&sp_options_question, &sp_options_filter, &sp_options_method,
		&sp_options_functions, &sp_options_symbols};
	struct sp_options *o = options;
	bool is_kept = false;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		is_kept |= sp_options_are(kept[i], argument->name);
	while (at < o->n_given && o->given[at].argument != argument)
		at++;
	/* The groups have fewer options than there is room for. */
	if (!is_kept || at == SP_OPTIONS_GIVEN_MAX)
		return;
	o->given[at] = (struct sp_options_given){argument, value};
	o->n_given += at == o->n_given;
}

const struct sp_command_line sp_report_line = {
	.forms = "report [OPTION]... FILE...\n"
		 "top|tree|traces|stats [OPTION]... FILE...\n"
		 "peek|list REGEX [OPTION]... FILE...",
	.brief = "Functions by what they allocate, each figure with its "
		 "confidence interval.\n"
		 "`sampleprof help` has the other commands.\n"
		 "\n"
		 "  --view VIEW        alloc, live, peak, leaks, temporary, "
		 "resident, mapped\n"
		 "  --at TIME|NAME     the moment of live and leaks: 2s, 50%, "
		 "end, a snapshot\n"
		 "  --from, --to TIME  only what was allocated then\n"
		 "  --thread N|NAME    only what this thread allocated\n"
		 "  --focus, --ignore REGEX\n"
		 "                     only call stacks with a match, or "
		 "without one\n"
		 "  --cum              by what a function and its callees "
		 "allocated\n"
		 "  --top N            functions; 0 shows all\n"
		 "  --stacks N         the N call stacks with most bytes; 0 "
		 "all\n"
		 "  --timeline, --sizes\n"
		 "                     live bytes over time, drawn; exact "
		 "totals by object size\n"
		 "  --base OLD         what changed since that profile\n"
		 "  --json, --csv      everything as JSON; the functions as "
		 "CSV\n"
		 "  --help-all         all options\n",
	.about = "Estimate from a profile which functions allocated how much, "
		 "and what is\n"
		 "alive, each figure with its confidence interval.\n",
	.describe = describe_commands,
	.parts =
		(const struct sp_argument_part[]){
			PART(sp_options_question, question),
			PART(sp_options_filter, question),
			PART(sp_options_method, question),
			{&sp_options_report, 0},
			PART(sp_options_functions, symbols),
			PART(sp_options_symbols, symbols),
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: 0 fine, 1 error, 2 usage.\n"
		  "To record a profile: sampleprof run PROGRAM\n",
	.note = note_option,
	.refuse = refuse_in_report,
};

struct rule {
	bool is_bad;
	const char *why;
};

static int refuse_by_rule(const struct rule *rules, size_t n,
			  struct sp_error *err)
{
	for (size_t i = 0; i < n; i++)
		if (rules[i].is_bad)
			return sp_error_set(err, -EINVAL, NULL, "%s",
					    rules[i].why);
	return 0;
}

#define REFUSE_BY(rules, err)                                                  \
	refuse_by_rule(rules, sizeof(rules) / sizeof((rules)[0]), err)

/* Options that say nothing about what a page shows. */
static int refuse_for_page(const struct sp_options *o, struct sp_error *err)
{
	const enum sp_page page = o->page;
	const bool is_report = page == SP_PAGE_REPORT || page == SP_PAGE_TOP;
	const bool is_table =
		is_report && !o->timeline && !o->sizes && !o->rows;
	const struct rule rules[] = {
		{(o->timeline || o->sizes || o->rows) && !is_report,
		 "--timeline, --sizes and --by are only for report and top"},
		{o->has_top && !is_report && page != SP_PAGE_STATS,
		 "--top is only for report, top and stats"},
		{o->has_order && !is_report,
		 "--sort and --cum are only for report and top"},
		{o->has_stacks && !is_report && page != SP_PAGE_TRACES,
		 "--stacks is only for report, top and traces"},
		{o->has_granularity && !is_table && page != SP_PAGE_TREE &&
			 page != SP_PAGE_PEEK,
		 "--granularity is only for the functions of report and top, "
		 "for tree and for peek"},
		{o->has_share && !is_table && page != SP_PAGE_TREE &&
			 page != SP_PAGE_PEEK && page != SP_PAGE_LIST,
		 "--nodefraction is only for the functions of report and top, "
		 "with tree, peek and list"},
		{o->source_path && page != SP_PAGE_LIST,
		 "--source-path is only for list"},
		{o->simultaneous && !is_report,
		 "--simultaneous is only for report and top"},
		{o->csv && (page == SP_PAGE_TRACES || page == SP_PAGE_STATS),
		 "traces and stats cannot be used with --csv, but with --json"},
		{o->unit && (o->json || o->csv),
		 "--json and --csv have bytes: they cannot be used with "
		 "--unit"},
	};

	return REFUSE_BY(rules, err);
}

/* What two profiles cannot be compared by. */
static int refuse_with_base(const struct sp_options *o, struct sp_error *err)
{
	const struct rule rules[] = {
		{o->page == SP_PAGE_LIST,
		 "list cannot be used with --base: lines move when code is "
		 "edited; peek REGEX --base compares callers and callees of "
		 "functions"},
		{o->timeline,
		 "--timeline cannot be used with --base: two runs have no "
		 "common clock; --view peak --base compares the peaks"},
		{o->granularity != SP_BY_FUNCTION &&
			 o->granularity != SP_BY_MODULE,
		 "--base matches functions by name: it needs --granularity "
		 "function or module"},
		{o->simultaneous, "--simultaneous cannot be used with --base, "
				  "which judges all rows together already"},
		{o->question.method != SP_METHOD_P3T,
		 "--base cannot be used with --estimator"},
		{o->watch_ns, "--watch cannot be used with --base"},
		{o->question.samples_of != SP_SAMPLES_ALLOCATED,
		 "--view mapped and reserved cannot be used with --base"},
	};

	return o->n_base ? REFUSE_BY(rules, err) : 0;
}

/* Options of the report that exclude each other. */
static int refuse_combinations(const struct sp_options *o, struct sp_error *err)
{
	const bool is_report =
		o->page == SP_PAGE_REPORT || o->page == SP_PAGE_TOP;
	const bool is_of_rows = o->has_top || o->has_order || o->has_stacks;
	const struct rule rules[] = {
		{o->json + o->csv > 1, "--json or --csv, not both"},
		{o->timeline + o->sizes > 1, "--timeline or --sizes, not both"},
		{o->rows && (o->timeline || o->sizes),
		 "--by, --timeline or --sizes: one of them"},
		{is_report && o->json &&
			 (is_of_rows || o->timeline || o->sizes),
		 "--json shows everything: it cannot be used with --top, "
		 "--sort, --stacks, --timeline or --sizes"},
		{is_report && o->json && (o->has_share || o->rows),
		 "--json shows everything: it cannot be used with "
		 "--nodefraction or --by"},
		{(o->timeline || o->sizes) && (is_of_rows || o->simultaneous),
		 "--timeline and --sizes cannot be used with --top, --sort, "
		 "--stacks or --simultaneous"},
		{o->rows && (is_of_rows || o->simultaneous),
		 "--by cannot be used with --top, --sort, --stacks or "
		 "--simultaneous"},
		{o->csv && o->has_stacks, "--csv cannot be used with --stacks"},
		{is_report && o->has_stacks && (o->has_top || o->has_order),
		 "--stacks shows call stacks: it cannot be used with --top or "
		 "--sort"},
		{o->question.of_objects,
		 "--metric objects is for export collapsed: the report shows "
		 "objects besides"},
		{o->timeline && o->question.has_view,
		 "--timeline shows live bytes: it cannot be used with --view, "
		 "--at, --tail or --within"},
		{o->sizes && o->question.samples_of != SP_SAMPLES_ALLOCATED,
		 "--sizes shows what was allocated: it cannot be used with "
		 "--view mapped or reserved"},
		{o->watch_ns && (o->json || o->csv),
		 "--watch cannot be used with --json or --csv"},
	};

	return REFUSE_BY(rules, err);
}

/* The page that the first of the words names, if it names one. */
static void take_page(const char *const **words, size_t *n,
		      struct sp_options *o)
{
	static const char *const names[] = {
		[SP_PAGE_REPORT] = "report", [SP_PAGE_TOP] = "top",
		[SP_PAGE_TREE] = "tree",     [SP_PAGE_PEEK] = "peek",
		[SP_PAGE_LIST] = "list",     [SP_PAGE_TRACES] = "traces",
		[SP_PAGE_STATS] = "stats",   NULL};
	const int i = *n ? word_position(names, **words) : -1;

	if (i < 0)
		return;
	o->page = (enum sp_page)i;
	++*words;
	--*n;
}

/* What was not given. */
static void take_defaults(struct sp_options *o)
{
	if (!o->has_top)
		o->top = o->page == SP_PAGE_STATS ? STATS_TOP
			 : o->csv                 ? 0
						  : DEFAULT_TOP;
	if (!o->has_share && o->page != SP_PAGE_REPORT && !o->json && !o->csv)
		o->share = DEFAULT_SHARE;
}

/* The regular expression, which is the first of the words. */
static int take_pattern(const char *const **words, size_t *n,
			struct sp_options *o, struct sp_error *err)
{
	struct sp_pattern *pattern;
	int r;

	if (o->page != SP_PAGE_PEEK && o->page != SP_PAGE_LIST)
		return 0;
	if (!*n)
		return sp_error_set(err, -EINVAL, NULL,
				    "which functions? no REGEX was given");
	o->pattern = *(*words)++;
	--*n;
	r = sp_pattern_new("REGEX", o->pattern, &pattern, err);
	if (r >= 0)
		sp_pattern_free(pattern);
	return r;
}

int sp_options_parse(int argc, char **argv, struct sp_options *ret,
		     struct sp_error *err)
{
	const char *const *words;
	size_t n;
	int r;

	*ret = (struct sp_options){.program = argv[0]};
	sp_question_init(&ret->question);
	r = sp_arguments_parse(&sp_report_line, argc, argv, ret, &words, &n,
			       err);
	if (r)
		return r;
	take_page(&words, &n, ret);
	take_defaults(ret);
	r = sp_options_settle(&ret->question, err);
	if (r >= 0)
		r = sp_options_settle_functions(&ret->symbols, err);
	if (r >= 0)
		r = refuse_for_page(ret, err);
	if (r >= 0)
		r = refuse_combinations(ret, err);
	if (r >= 0)
		r = refuse_with_base(ret, err);
	if (r >= 0)
		r = take_pattern(&words, &n, ret, err);
	if (r >= 0 && ret->pattern && !n)
		return sp_error_set(
			err, -EINVAL, NULL,
			"REGEX or FILE is missing: only %.80s was given",
			ret->pattern);
	if (r >= 0 && !n)
		return sp_error_set(err, -EINVAL, NULL,
				    "which profile? no FILE was given");
	ret->files = words;
	ret->n_files = n;
	return r;
}

enum sp_view sp_options_fallback(const struct sp_options *options,
				 const struct sp_profile *profile)
{
	if (options->json || options->csv || !profile->has_frees ||
	    profile->end == SP_PROFILE_END_CLEAN)
		return SP_VIEW_ALLOC;
	return SP_VIEW_LIVE;
}

/* Does one reading answer it?  Each reading of a file that is being written
 * sees another end of it. */
static bool takes_one_reading(const struct sp_question *q)
{
	return sp_question_is_whole(q) &&
	       !(q->has_view &&
		 (q->view == SP_VIEW_PEAK || q->view == SP_VIEW_LEAKS));
}

struct sp_load_needs sp_options_needs(const struct sp_options *o)
{
	struct sp_load_needs needs = {
		.lifetimes =
			o->has_stacks || o->page == SP_PAGE_TRACES || o->json,
		.no_code = (o->timeline || o->sizes) && !o->json &&
			   !sp_filter_is_given(&o->question.filter),
	};

	if (o->json || (o->timeline && o->csv))
		needs.n_points = SP_VIEW_TIMELINE_POINTS;
	else if (o->timeline)
		needs.n_points = SP_VIEW_TIMELINE_COLUMNS;
	needs.while_written =
		!needs.n_points && takes_one_reading(&o->question);
	return needs;
}
