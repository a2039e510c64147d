/* SPDX-License-Identifier: MIT */
#include "report/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define DEFAULT_TOP 30

#define WATCH_MIN_NS 100000000ull      /* 0.1 s */
#define WATCH_MAX_NS 86400000000000ull /* a day */

const char sp_options_help[] =
	"usage: sampleprof-report [OPTION]... FILE\n"
	"       sampleprof-report export FORMAT [OPTION]... FILE -o OUT\n"
	"\n"
	"Estimate from a profile which functions allocated how much, and what "
	"is\n"
	"alive, each figure with its confidence interval.\n"
	"\n"
	"What to look at (TIME: 2s, 500ms, 1m30s since the start, 50%, end):\n"
	"  --view alloc       what was allocated\n"
	"  --view live        what is alive at the end, or --at TIME\n"
	"  --view peak        what was alive when most was\n"
	"  --view leaks       what is alive and older than --tail TIME "
	"(default\n"
	"                     10% of the run)\n"
	"  --view temporary   what was freed by its own thread --within 64K\n"
	"                     allocated bytes, or 10ms (default 0: before the\n"
	"                     thread allocated anything else)\n"
	"                     default: live of a process that runs or was "
	"killed,\n"
	"                     else alloc; alloc for --json and --csv\n"
	"  --from TIME, --to TIME\n"
	"                     only what was born in between\n"
	"  --thread N|NAME    only what this thread allocated\n"
	"  --size MIN-MAX     only objects of that size: 64, 1K-64K, 4096-, "
	"-1M\n"
	"\n"
	"How to estimate:\n"
	"  --estimator NAME   p3t (default), p3, weighted, negbinom, ...; an\n"
	"                     unknown name lists them\n"
	"  --confidence 90|95|99|99.9\n"
	"                     level of the intervals in percent (default 95)\n"
	"  --simultaneous     raise the level so that all rows shown hold\n"
	"                     together\n"
	"\n"
	"What to show:\n"
	"  --top N            functions; 0 shows all (default 30)\n"
	"  --sort flat|cum    order of the functions (default flat)\n"
	"  --stacks N         the N call stacks with most bytes; 0 all\n"
	"  --timeline         live bytes over time instead of functions\n"
	"  --sizes            bytes by object size instead of functions: "
	"exact,\n"
	"                     of a view or a part estimated\n"
	"  --json             everything as JSON\n"
	"  --csv              functions, or timeline or sizes, as CSV\n"
	"  --ascii            draw without Unicode\n"
	"  --watch TIME       again every TIME, until interrupted\n"
	"\n"
	"  --debug-path DIRS  where separate debug files are, separated by\n"
	"                     colons (default /usr/lib/debug)\n"
	"  --debuginfod       fetch missing debug files from $DEBUGINFOD_URLS\n"
	"  --help             this text\n"
	"  --version          the version\n"
	"\n"
	"For other programs: sampleprof-report export --help\n"
	"Exit status: 0 fine, 1 error, 2 usage.\n"
	"To record a profile: LD_PRELOAD=libsampleprof.so COMMAND\n";

static bool take_view(struct sp_options *o, const char *text)
{
	o->question.has_view = true;
	return sp_view_parse(text, &o->question.view);
}

static bool take_at(struct sp_options *o, const char *text)
{
	return sp_moment_parse(text, &o->question.at);
}

static bool take_from(struct sp_options *o, const char *text)
{
	return sp_moment_parse(text, &o->question.from);
}

static bool take_to(struct sp_options *o, const char *text)
{
	return sp_moment_parse(text, &o->question.to);
}

static bool take_tail(struct sp_options *o, const char *text)
{
	return sp_moment_parse(text, &o->question.tail) &&
	       o->question.tail.kind != SP_MOMENT_END;
}

/* A size if it can be one: "10m" is 10 MiB here. */
static bool take_within(struct sp_options *o, const char *text)
{
	o->question.within_bytes = SP_NEVER;
	o->question.within_ns = SP_NEVER;
	return sp_parse_size(text, &o->question.within_bytes) ||
	       sp_parse_duration(text, &o->question.within_ns);
}

static bool take_thread(struct sp_options *o, const char *text)
{
	o->question.thread = text;
	return *text != '\0';
}

/* "64", "1K-64K", "4096-", "-1M" */
static bool take_size(struct sp_options *o, const char *text)
{
	struct sp_question *q = &o->question;
	const char *dash = strchr(text, '-');
	char min[32];
	size_t n;

	if (!dash) {
		q->max_size_bytes = 0;
		return sp_parse_size(text, &q->min_size_bytes) &&
		       sp_parse_size(text, &q->max_size_bytes);
	}
	n = (size_t)(dash - text);
	if (n >= sizeof(min) || (!n && !dash[1]))
		return false;
	memcpy(min, text, n);
	min[n] = '\0';
	q->min_size_bytes = 0;
	q->max_size_bytes = UINT64_MAX;
	return (!n || sp_parse_size(min, &q->min_size_bytes)) &&
	       (!dash[1] || sp_parse_size(dash + 1, &q->max_size_bytes)) &&
	       q->min_size_bytes <= q->max_size_bytes;
}

static bool take_estimator(struct sp_options *o, const char *text)
{
	return sp_method_parse(text, &o->question.method);
}

static bool take_confidence(struct sp_options *o, const char *text)
{
	static const uint64_t levels[] = {90000, 95000, 99000, 99900};
	uint64_t level;

	if (!sp_parse_milli(text, &level))
		return false;
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		if (level != levels[i])
			continue;
		o->question.confidence = (double)level / 100000;
		return true;
	}
	return false;
}

static bool take_top(struct sp_options *o, const char *text)
{
	o->has_top = true;
	return sp_parse_u64(text, &o->top);
}

static bool take_sort(struct sp_options *o, const char *text)
{
	bool by_cum = strcmp(text, "cum") == 0;

	o->has_order = true;
	o->order = by_cum ? SP_AGGREGATE_BY_CUM : SP_AGGREGATE_BY_FLAT;
	return by_cum || strcmp(text, "flat") == 0;
}

static bool take_stacks(struct sp_options *o, const char *text)
{
	o->has_stacks = true;
	return sp_parse_u64(text, &o->stacks);
}

static bool take_watch(struct sp_options *o, const char *text)
{
	return sp_parse_duration(text, &o->watch_ns) &&
	       o->watch_ns >= WATCH_MIN_NS && o->watch_ns <= WATCH_MAX_NS;
}

static bool take_output(struct sp_options *o, const char *text)
{
	o->output = text;
	return *text != '\0';
}

static bool take_metric(struct sp_options *o, const char *text)
{
	o->has_metric = true;
	o->export.of_objects = strcmp(text, "objects") == 0;
	return o->export.of_objects || strcmp(text, "bytes") == 0;
}

static bool take_max_samples(struct sp_options *o, const char *text)
{
	return sp_parse_u64(text, &o->export.max_samples) &&
	       o->export.max_samples > 0;
}

static bool take_debug_path(struct sp_options *o, const char *text)
{
	o->symbols.debug_path = text;
	return true;
}

/* Every option once.  `takes` says what its value is; one without a value sets
 * the bool at `flag`. */
static const struct known {
	const char *name;
	bool (*take)(struct sp_options *o, const char *text);
	const char *takes;
	size_t flag;
	enum {
		ANYWHERE,
		IN_REPORT,
		IN_EXPORT,
	} where;
} known[] = {
#define FLAG(name, field, where)                                               \
	{                                                                      \
		name, NULL, NULL, offsetof(struct sp_options, field), where    \
	}
	{"view", take_view, "alloc, live, peak, leaks or temporary", 0,
	 ANYWHERE},
	{"at", take_at, "a time since the start: 2s, 500ms, 50%, end", 0,
	 ANYWHERE},
	{"from", take_from, "a time since the start: 2s, 500ms, 50%", 0,
	 ANYWHERE},
	{"to", take_to, "a time since the start: 2s, 500ms, 50%, end", 0,
	 ANYWHERE},
	{"tail", take_tail, "a share of the run or a time: 10%, 2s", 0,
	 ANYWHERE},
	{"within", take_within, "bytes or a time: 64K, 10ms", 0, ANYWHERE},
	{"thread", take_thread, "the number or the name of a thread", 0,
	 ANYWHERE},
	{"size", take_size, "a range of sizes: 64, 1K-64K, 4096-, -1M", 0,
	 ANYWHERE},
	{"estimator", take_estimator, "the name of a method", 0, ANYWHERE},
	{"confidence", take_confidence, "90, 95, 99 or 99.9 (percent)", 0,
	 ANYWHERE},
	FLAG("simultaneous", simultaneous, IN_REPORT),
	{"top", take_top, "a number", 0, IN_REPORT},
	{"sort", take_sort, "flat or cum", 0, IN_REPORT},
	{"stacks", take_stacks, "a number", 0, IN_REPORT},
	FLAG("timeline", timeline, IN_REPORT),
	FLAG("sizes", sizes, IN_REPORT),
	FLAG("json", json, IN_REPORT),
	FLAG("csv", csv, IN_REPORT),
	FLAG("ascii", ascii, IN_REPORT),
	{"watch", take_watch, "a time from 100ms to 24h", 0, IN_REPORT},
	{"debug-path", take_debug_path, "directories separated by colons", 0,
	 ANYWHERE},
	FLAG("debuginfod", symbols.use_debuginfod, ANYWHERE),
	{"output", take_output, "a path, or - for standard output", 0,
	 IN_EXPORT},
	{"metric", take_metric, "bytes or objects", 0, IN_EXPORT},
	FLAG("pprof-error", export.pprof_error, IN_EXPORT),
	{"max-samples", take_max_samples, "a number above 0", 0, IN_EXPORT},
	FLAG("help", help, ANYWHERE),
	FLAG("version", version, ANYWHERE),
#undef FLAG
};

#define FIRST_CODE 256 /* beyond every character */

#define N_KNOWN (sizeof(known) / sizeof(known[0]))

/* The option that getopt_long() means; NULL if it is none of ours. */
static const struct known *known_by_code(int code)
{
	if (code >= FIRST_CODE)
		return &known[code - FIRST_CODE];
	for (size_t i = 0; code == 'o' && i < N_KNOWN; i++)
		if (known[i].take == take_output)
			return &known[i];
	return NULL;
}

static int refuse_value(const struct known *k, const char *value,
			struct sp_error *err)
{
	char names[160] = "";

	if (k->take != take_estimator)
		return sp_error_set(err, -EINVAL, NULL, "--%s takes %s",
				    k->name, k->takes);
	for (int i = 0; i < SP_METHOD_COUNT; i++) {
		size_t n = strlen(names);

		snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
			 sp_method_name((enum sp_method)i));
	}
	return sp_error_set(err, -EINVAL, NULL,
			    "--estimator: %.20s is none of %s", value, names);
}

/* What getopt_long() made of an option that it does not like. */
static int refuse_option(int result, const char *text, struct sp_error *err)
{
	const struct known *k = known_by_code(optopt);

	if (result == ':')
		return sp_error_set(err, -EINVAL, NULL, "--%s takes %s",
				    k->name, k->takes);
	if (k)
		return sp_error_set(err, -EINVAL, NULL, "--%s takes no value",
				    k->name);
	if (optopt)
		return sp_error_set(err, -EINVAL, NULL, "unknown option -%c",
				    optopt);
	return sp_error_set(err, -EINVAL, NULL,
			    "unknown or ambiguous option %.80s", text);
}

static int take_option(struct sp_options *o, const struct known *k,
		       struct sp_error *err)
{
	if (k->where == IN_EXPORT && !o->is_export)
		return sp_error_set(err, -EINVAL, NULL,
				    "--%s goes with %s export FORMAT", k->name,
				    o->program);
	if (k->where == IN_REPORT && o->is_export)
		return sp_error_set(err, -EINVAL, NULL,
				    "an export goes without --%s", k->name);
	if (!k->take)
		*(bool *)((char *)o + k->flag) = true;
	else if (!k->take(o, optarg))
		return refuse_value(k, optarg, err);
	return 0;
}

static int take_options(int argc, char **argv, struct sp_options *o,
			struct sp_error *err)
{
	struct option table[N_KNOWN + 1] = {0};
	int i, r = 0;

	for (size_t k = 0; k < N_KNOWN; k++)
		table[k] = (struct option){known[k].name,
					   known[k].takes ? required_argument
							  : no_argument,
					   NULL, FIRST_CODE + (int)k};
	optind = 0; /* begin anew, whoever used it before */
	opterr = 0;
	while (!r && !o->help && !o->version) {
		i = getopt_long(argc, argv, ":o:", table, NULL);
		if (i < 0)
			break;
		r = known_by_code(i) ? take_option(o, known_by_code(i), err)
				     : refuse_option(i, argv[optind - 1], err);
	}
	return r;
}

/* --at, --tail and --within belong to a view, and choose it if none was
 * chosen. */
static int settle_view(struct sp_question *q, struct sp_error *err)
{
	const bool has_within =
		q->within_bytes != SP_NEVER || q->within_ns != SP_NEVER;

	if (!q->has_view) {
		q->has_view = q->at.kind || q->tail.kind || has_within;
		q->view = has_within     ? SP_VIEW_TEMPORARY
			  : q->tail.kind ? SP_VIEW_LEAKS
					 : SP_VIEW_LIVE;
	}
	if (q->at.kind && q->view != SP_VIEW_LIVE && q->view != SP_VIEW_LEAKS)
		return sp_error_set(err, -EINVAL, NULL,
				    "--at goes with --view live or leaks");
	if (q->tail.kind && q->view != SP_VIEW_LEAKS)
		return sp_error_set(err, -EINVAL, NULL,
				    "--tail goes with --view leaks");
	if (has_within && q->view != SP_VIEW_TEMPORARY)
		return sp_error_set(err, -EINVAL, NULL,
				    "--within goes with --view temporary");
	return 0;
}

/* Options that say nothing about what is shown. */
static int refuse_combinations(const struct sp_options *o, struct sp_error *err)
{
	const struct sp_question *q = &o->question;
	const struct {
		bool is_bad;
		const char *why;
	} rules[] = {
		{o->json + o->csv > 1, "--json or --csv, not both"},
		{o->timeline + o->sizes > 1, "--timeline or --sizes, not both"},
		{o->json && (o->has_top || o->has_order || o->has_stacks ||
			     o->timeline || o->sizes),
		 "--json shows everything: it goes without --top, --sort, "
		 "--stacks, --timeline and --sizes"},
		{(o->timeline || o->sizes) &&
			 (o->has_top || o->has_order || o->has_stacks ||
			  o->simultaneous),
		 "--timeline and --sizes go without --top, --sort, --stacks "
		 "and --simultaneous"},
		{o->csv && o->has_stacks, "--csv goes without --stacks"},
		{o->timeline && q->has_view,
		 "--timeline shows what is alive: it goes without --view, "
		 "--at, --tail and --within"},
		{o->watch_ns && (o->json || o->csv),
		 "--watch goes without --json and --csv"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].is_bad)
			return sp_error_set(err, -EINVAL, NULL, "%s",
					    rules[i].why);
	return 0;
}

/* The format, which is the first of the words that are no options. */
static int take_format(char **words, int n, struct sp_options *o,
		       struct sp_error *err)
{
	char names[160] = "";

	for (const struct sp_export_format *f = sp_export_formats; f->name;
	     f++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s",
			 used ? ", " : "", f->name);
	}
	if (!n)
		return sp_error_set(err, -EINVAL, NULL,
				    "which format? one of %s", names);
	o->format = sp_export_find(words[0]);
	if (!o->format)
		return sp_error_set(err, -EINVAL, NULL, "%.20s is none of %s",
				    words[0], names);
	return 0;
}

static int check_export(const struct sp_options *o, struct sp_error *err)
{
	const unsigned int knows = o->format->knows;

	if (o->has_metric && !(knows & SP_EXPORT_KNOWS_METRIC))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s goes without --metric",
				    o->format->name);
	if ((o->export.pprof_error || o->export.max_samples) &&
	    !(knows & SP_EXPORT_KNOWS_PPROF))
		return sp_error_set(err, -EINVAL, NULL,
				    "%s goes without --pprof-error and "
				    "--max-samples",
				    o->format->name);
	if (!o->output)
		return sp_error_set(err, -EINVAL, NULL,
				    "where to? no -o OUT was given (- is "
				    "standard output)");
	return 0;
}

static int take_file(char **words, int n, struct sp_options *o,
		     struct sp_error *err)
{
	if (!n)
		return sp_error_set(err, -EINVAL, NULL,
				    "which profile? no FILE was given");
	if (n > 1)
		return sp_error_set(err, -EINVAL, NULL,
				    "several FILEs are not supported yet");
	o->file = words[0];
	return 0;
}

static int parse(int argc, char **argv, bool is_export, struct sp_options *ret,
		 struct sp_error *err)
{
	struct sp_options o = {.program = argv[0], .is_export = is_export};
	int r;

	sp_question_init(&o.question);
	r = take_options(argc, argv, &o, err);
	if (r < 0 || o.help || o.version)
		goto out;
	r = settle_view(&o.question, err);
	if (r >= 0)
		r = refuse_combinations(&o, err);
	if (r >= 0 && is_export)
		r = take_format(argv + optind, argc - optind, &o, err);
	if (r >= 0 && is_export)
		r = check_export(&o, err);
	if (r >= 0)
		r = take_file(argv + optind + is_export,
			      argc - optind - is_export, &o, err);
	if (!o.has_top)
		o.top = o.csv ? 0 : DEFAULT_TOP;
out:
	if (r >= 0)
		*ret = o;
	return r;
}

int sp_options_parse(int argc, char **argv, struct sp_options *ret,
		     struct sp_error *err)
{
	return parse(argc, argv, false, ret, err);
}

int sp_options_parse_export(int argc, char **argv, struct sp_options *ret,
			    struct sp_error *err)
{
	return parse(argc, argv, true, ret, err);
}

void sp_options_print_export_help(FILE *out)
{
	fputs("usage: sampleprof-report export FORMAT [OPTION]... FILE -o OUT\n"
	      "\n"
	      "Write a profile for another program.\n"
	      "\n"
	      "Formats:\n",
	      out);
	for (const struct sp_export_format *f = sp_export_formats; f->name; f++)
		fprintf(out, "  %-18s %s\n", f->name, f->what);
	fputs("\n"
	      "  -o, --output OUT   file to write; - for standard output\n"
	      "  --metric bytes|objects\n"
	      "                     what a weight counts (collapsed; default "
	      "bytes)\n"
	      "  --pprof-error      two more sample types: variance of the "
	      "bytes, samples\n"
	      "  --max-samples N    fold the pprof samples with fewest bytes\n"
	      "\n"
	      "What to look at, as in a report: --view, --at, --from, --to, "
	      "--tail, --within,\n"
	      "--thread, --size; and --estimator, --confidence, --debug-path, "
	      "--debuginfod.\n",
	      out);
}

enum sp_view sp_options_fallback(const struct sp_options *options,
				 const struct sp_profile *profile)
{
	if (options->json || options->csv || !profile->has_frees ||
	    profile->end == SP_PROFILE_END_CLEAN)
		return SP_VIEW_ALLOC;
	return SP_VIEW_LIVE;
}
