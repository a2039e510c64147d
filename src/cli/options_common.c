/* SPDX-License-Identifier: MIT */
/* Options that several commands have. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "cli/options.h"

bool sp_options_take_moment(void *field, const char *text)
{
	return sp_moment_parse(text, field);
}

static bool take_view(void *part, const char *text)
{
	return sp_question_parse_view(part, text);
}

static bool take_metric(void *part, const char *text)
{
	return sp_question_parse_metric(part, text);
}

bool sp_options_take_at(void *field, const char *text)
{
	struct sp_moment *at = field;

	if (!sp_moment_parse(text, at))
		*at = (struct sp_moment){.kind = SP_MOMENT_SNAPSHOT,
					 .name = text};
	return *text != '\0';
}

static bool take_last(void *part, const char *text)
{
	struct sp_question *q = part;

	q->from = (struct sp_moment){.kind = SP_MOMENT_LAST};
	return sp_parse_duration(text, &q->from.ns) && q->from.ns;
}

static bool take_tail(void *part, const char *text)
{
	struct sp_question *q = part;

	return sp_moment_parse(text, &q->tail) && q->tail.kind != SP_MOMENT_END;
}

/* A size if it can be one: "10m" is 10 MiB here. */
static bool take_within(void *part, const char *text)
{
	struct sp_question *q = part;

	q->within_bytes = SP_NEVER;
	q->within_ns = SP_NEVER;
	return sp_parse_size(text, &q->within_bytes) ||
	       sp_parse_duration(text, &q->within_ns);
}

/* "64", "1K-64K", "4096-", "-1M" */
static bool take_size(void *part, const char *text)
{
	struct sp_question *q = part;
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

static bool take_estimator(void *part, const char *text)
{
	struct sp_question *q = part;

	return sp_method_parse(text, &q->method);
}

static bool take_confidence(void *part, const char *text)
{
	static const uint64_t levels[] = {90000, 95000, 99000, 99900};
	struct sp_question *q = part;
	uint64_t level;

	if (!sp_parse_milli(text, &level))
		return false;
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		if (level != levels[i])
			continue;
		q->confidence = (double)level / 100000;
		return true;
	}
	return false;
}

static const struct sp_argument question[] = {
	{"view", 0, "VIEW",
	 "alloc, live, peak, leaks, temporary, resident, mapped or reserved",
	 take_view, 0,
	 "alloc: what was allocated\n"
	 "live: what is alive at the end, or --at TIME\n"
	 "peak: what was alive at the peak of live bytes\n"
	 "leaks: what is alive and older than --tail TIME\n"
	 "temporary: what was freed soon, see --within\n"
	 "resident: live, as --metric resident\n"
	 "mapped: memory that the program took by mmap itself and\n"
	 "that is there at the end, or --at TIME\n"
	 "reserved: address space that is mapped PROT_NONE, likewise\n"
	 "default: live if the process runs or was killed, else\n"
	 "alloc; in exports for other programs alloc"},
	{"metric", 0, "METRIC", "bytes, objects or resident", take_metric, 0,
	 "what is counted: bytes (default)\n"
	 "objects: as weights of export collapsed\n"
	 "resident: live bytes in resident pages: now if the\n"
	 "process runs, else where a ledger was taken (run --rss,\n"
	 "--rss-at-peak, ctl --rss snapshot)"},
	{"at", 0, "TIME|NAME", "a time since the start: 2s, 500ms, 50%, end",
	 sp_options_take_at, offsetof(struct sp_question, at),
	 "the moment of live and leaks: a time (default end), or\n"
	 "a snapshot that the program named; with --view peak\n"
	 "another moment than that of the peak"},
	{"tail", 0, "TIME", "a share of the run or a time: 10%, 2s", take_tail,
	 0, "how old a leak is at least (default 10% of the run)"},
	{"within", 0, "SIZE|TIME", "bytes or a time: 64K, 10ms", take_within, 0,
	 "temporary is what its own thread freed within 64K\n"
	 "allocated bytes, or 10ms (default 0: before the\n"
	 "thread allocated anything else)"},
	{"from", 0, "TIME", "a time since the start: 2s, 500ms, 50%",
	 sp_options_take_moment, offsetof(struct sp_question, from),
	 "only what was allocated then or later"},
	{"last", 0, "TIME", "a length of time: 10s, 500ms", take_last, 0,
	 "only what was allocated in the last TIME of the run:\n"
	 "as --from, but counted from the end"},
	{"to", 0, "TIME", "a time since the start: 2s, 500ms, 50%, end",
	 sp_options_take_moment, offsetof(struct sp_question, to),
	 "only what was allocated before that"},
	{"phase", 0, "NAME", "the name of a phase", NULL,
	 offsetof(struct sp_question, phase),
	 "only what was allocated in phases of that name;\n"
	 "(start) is what was before the first"},
	{"thread", 0, "N|NAME", "the number or the name of a thread",
	 sp_argument_text, offsetof(struct sp_question, thread),
	 "only what this thread allocated"},
	{"size", 0, "MIN-MAX", "a range of sizes: 64, 1K-64K, 4096-, -1M",
	 take_size, 0, "only objects of that size: 64, 1K-64K, 4096-, -1M"},
	{0},
};

static const struct sp_argument_values question_values[] = {
	{"view", sp_question_view_word},
	{"metric", sp_question_metric_word},
	{0}};

const struct sp_argument_group sp_options_question = {
	"What to look at (TIME: 2s, 500ms, 1m30s since the start, 50%, end)",
	question,
	question_values,
};

/* pprof spells two of them with an underscore. */
#define FILTER(name, kind, help)                                               \
	{                                                                      \
		name, 0, "REGEX", "a regular expression", NULL,                \
			offsetof(struct sp_question, filter.text[kind]), help  \
	}

static const struct sp_argument filter[] = {
	FILTER("focus", SP_FILTER_FOCUS, "only call stacks with a match"),
	FILTER("ignore", SP_FILTER_IGNORE, "only call stacks without a match"),
	FILTER("hide", SP_FILTER_HIDE, "no frames that match"),
	FILTER("show", SP_FILTER_SHOW, "only frames that match"),
	FILTER("show-from", SP_FILTER_SHOW_FROM,
	       "no callers of the outermost frame that matches; only\n"
	       "call stacks with one"),
	FILTER("prune-from", SP_FILTER_PRUNE_FROM,
	       "no callees of the innermost function that matches"),
	FILTER("show_from", SP_FILTER_SHOW_FROM, NULL),
	FILTER("prune_from", SP_FILTER_PRUNE_FROM, NULL),
	{0},
};

const struct sp_argument_group sp_options_filter = {
	"Which call stacks and frames (REGEX is searched in function, file and "
	"module)",
	filter,
	NULL,
};

static const struct sp_argument method[] = {
	{"estimator", 0, "NAME", "p3t or p3", take_estimator, 0,
	 "p3t (default), which uses the exact totals of size\n"
	 "classes, or p3, which uses the samples alone"},
	{"confidence", 0, "LEVEL", "90, 95, 99 or 99.9 (percent)",
	 take_confidence, 0,
	 "level of the intervals, in percent: 90, 95 (default), 99\n"
	 "or 99.9; percentages and lifetimes have no intervals"},
	{0},
};

static const char *method_word(size_t i)
{
	return i < SP_METHOD_COUNT ? sp_method_name((enum sp_method)i) : NULL;
}

static const char *confidence_word(size_t i)
{
	static const char *const words[] = {"90", "95", "99", "99.9", NULL};

	return words[i];
}

static const struct sp_argument_values method_values[] = {
	{"estimator", method_word}, {"confidence", confidence_word}, {0}};

const struct sp_argument_group sp_options_method = {"How to estimate", method,
						    method_values};

static const struct sp_argument symbols[] = {
	{"debug-path", 0, "DIRS", "directories separated by colons", NULL,
	 offsetof(struct sp_symbolizer_options, debug_path),
	 "where separate debug files are, and programs and\n"
	 "libraries that are not where they were, separated by\n"
	 "colons (default /usr/lib/debug)"},
	{"debuginfod", 0, NULL, NULL, NULL,
	 offsetof(struct sp_symbolizer_options, use_debuginfod),
	 "fetch missing debug files from $DEBUGINFOD_URLS"},
	{0},
};

const struct sp_argument_group sp_options_symbols = {"Symbols and others",
						     symbols, NULL};

static const struct sp_argument functions[] = {
	{"full-names", 0, NULL, NULL, NULL,
	 offsetof(struct sp_symbolizer_options, full_names),
	 "names with all template arguments, inline namespaces\n"
	 "and modules of Rust"},
	{"all-frames", 0, NULL, NULL, NULL,
	 offsetof(struct sp_symbolizer_options, see_through.all_frames),
	 "functions of libraries, too, are shown between the\n"
	 "program's own; flat bytes go to the innermost that is\n"
	 "not malloc or operator new"},
	{"see-through", 0, "RULE", "a regular expression, or @FILE", NULL,
	 offsetof(struct sp_symbolizer_options, see_through.more),
	 "flat bytes of functions and modules that match this\n"
	 "regular expression go to their callers, as those of\n"
	 "standard libraries do; @FILE: one expression a line"},
	{0},
};

const struct sp_argument_group sp_options_functions = {
	"Names of functions, and flat bytes", functions, NULL};

/* What is resident is asked of what is alive. */
static int settle_resident(struct sp_question *q, struct sp_error *err)
{
	if (q->samples_of != SP_SAMPLES_ALLOCATED)
		return sp_error_set(
			err, -EINVAL, NULL,
			"--metric resident counts live objects: it cannot be "
			"used with --view mapped or reserved");
	if (q->view == SP_VIEW_PEAK) {
		q->view = SP_VIEW_LIVE;
		q->at.kind = SP_MOMENT_RSS_PEAK;
	}
	return q->view == SP_VIEW_LIVE || q->view == SP_VIEW_LEAKS
		       ? 0
		       : sp_error_set(err, -EINVAL, NULL,
				      "--metric resident counts live objects: "
				      "it needs --view live, peak or leaks");
}

int sp_options_settle(struct sp_question *q, struct sp_error *err)
{
	const bool has_within =
		q->within_bytes != SP_NEVER || q->within_ns != SP_NEVER;

	if (!q->has_view) {
		q->has_view = q->at.kind || q->tail.kind || has_within ||
			      q->of_resident;
		q->view = has_within     ? SP_VIEW_TEMPORARY
			  : q->tail.kind ? SP_VIEW_LEAKS
					 : SP_VIEW_LIVE;
	}
	if (q->at.kind && q->view != SP_VIEW_LIVE && q->view != SP_VIEW_LEAKS &&
	    q->view != SP_VIEW_PEAK)
		return sp_error_set(err, -EINVAL, NULL,
				    "--at needs --view live, leaks or peak");
	if (q->tail.kind && q->view != SP_VIEW_LEAKS)
		return sp_error_set(err, -EINVAL, NULL,
				    "--tail needs --view leaks");
	if (has_within && q->view != SP_VIEW_TEMPORARY)
		return sp_error_set(err, -EINVAL, NULL,
				    "--within needs --view temporary");
	if (q->of_resident) {
		const int r = settle_resident(q, err);

		if (r < 0)
			return r;
	}
	return sp_filter_check(&q->filter, err);
}

int sp_options_settle_functions(const struct sp_symbolizer_options *o,
				struct sp_error *err)
{
	struct sp_see_through *rules;
	int r;

	if (!o->see_through.more)
		return 0;
	r = sp_see_through_new(&o->see_through, &rules, err);
	if (r >= 0)
		sp_see_through_free(rules);
	return r;
}

bool sp_options_are(const struct sp_argument_group *group, const char *name)
{
	for (const struct sp_argument *a = group->option; a->name; a++)
		if (strcmp(a->name, name) == 0 ||
		    (a->letter == *name && !name[1]))
			return true;
	return false;
}
