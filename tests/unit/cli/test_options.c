/* SPDX-License-Identifier: MIT */
/* The command line: what each option sets, and what is refused with which
 * words. */
#include <errno.h>

#include "cli/options.h"
#include "support/close.h"
#include "support/test.h"
#include "support/words.h"

static struct sp_error error;

/* 0, 1, or -EINVAL and `error`; what is borrowed stays until the next call. */
static int parse(const char *line, struct sp_options *options)
{
	static struct words words;

	words_split(&words, line);
	error.message[0] = '\0';
	return sp_options_parse(words.argc, words.argv, options, &error);
}

static struct sp_options good(const char *line)
{
	struct sp_options options;

	if (parse(line, &options) < 0)
		fail_msg("\"%s\" is refused: %s", line, error.message);
	return options;
}

static void refused(const char *line, const char *message)
{
	struct sp_options options;
	const char *why;

	if (parse(line, &options) >= 0)
		fail_msg("\"%s\" is not refused", line);
	why = error.message;
	if (strcmp(why, message) != 0)
		fail_msg("\"%s\" is refused with \"%s\", not with \"%s\"", line,
			 why, message);
}

/* The text of --help. */
static const char *help(void)
{
	static char text[16384];
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct sp_options options;

	assert_non_null(out);
	assert_int_equal(parse("--help-all", &options), SP_ARGUMENTS_HELP);
	sp_arguments_print_help(out, &sp_report_line, "sampleprof-report");
	assert_int_equal(fclose(out), 0);
	return text;
}

TEST(defaults)
{
	struct sp_options o = good("a.sprof");

	assert_string_equal(o.files[0], "a.sprof");
	assert_string_equal(o.program, "report");
	assert_int_equal(o.top, 15);
	assert_int_equal(o.order, SP_AGGREGATE_BY_FLAT);
	assert_false(o.has_stacks || o.json || o.csv || o.timeline || o.sizes);
	assert_false(o.simultaneous || o.ascii);
	assert_false(o.question.has_view || o.watch_ns);
	assert_int_equal(o.question.method, SP_METHOD_P3T);
	assert_close(o.question.confidence, 0.95, 0);
	assert_int_equal(o.n_files, 1);
	/* One dash will do, as for pprof. */
	assert_int_equal(good("-sort cum a -top=3").order, SP_AGGREGATE_BY_CUM);
	o = good("a --csv b c");
	assert_int_equal(o.n_files, 3);
	assert_string_equal(o.files[2], "c");
	assert_int_equal(good("--csv a").top, 0);
	assert_int_equal(good("--csv --top 7 a").top, 7);
}

TEST(what_to_show)
{
	struct sp_options o = good("--top 5 a --sort cum");

	assert_string_equal(o.files[0], "a");
	assert_int_equal(o.top, 5);
	assert_int_equal(o.order, SP_AGGREGATE_BY_CUM);
	o = good("a --stacks=0");
	assert_true(o.has_stacks);
	assert_int_equal(o.stacks, 0);
	assert_true(good("--no-pager a").no_pager);
	assert_true(good("--json a").json);
	assert_true(good("--csv a").csv);
	assert_true(good("--timeline a").timeline);
	assert_true(good("--sizes --csv a").sizes);
	assert_true(good("--ascii a").ascii);
	assert_true(good("--simultaneous a").simultaneous);
	assert_true(good("--debuginfod a").symbols.use_debuginfod);
	assert_string_equal(good("--debug-path x:y a").symbols.debug_path,
			    "x:y");
	assert_true(good("--watch 2s a").watch_ns == 2000000000);
	assert_string_equal(good("-- --json").files[0], "--json");
}

/* They need no file. */
TEST(help_and_version)
{
	struct sp_options options;

	assert_int_equal(parse("--help", &options), SP_ARGUMENTS_HELP);
	assert_int_equal(parse("--version --nonsense", &options),
			 SP_ARGUMENTS_VERSION);
	assert_non_null(strstr(help(), "usage: sampleprof-report"));
}

TEST(views)
{
	static const char *const names[] = {"alloc", "live", "peak", "leaks",
					    "temporary"};
	char line[64];

	for (int i = 0; i < 5; i++) {
		snprintf(line, sizeof(line), "--view %s a", names[i]);
		assert_true(good(line).question.has_view);
		assert_int_equal(good(line).question.view, i);
		assert_string_equal(sp_view_name((enum sp_view)i), names[i]);
	}
}

/* An option of one view asks for it. */
TEST(options_of_a_view)
{
	struct sp_question q = good("--at 1m30s a").question;

	assert_int_equal(q.view, SP_VIEW_LIVE);
	assert_int_equal(q.at.kind, SP_MOMENT_TIME);
	assert_true(q.at.ns == 90000000000);
	q = good("--tail 12.5% --at end a").question;
	assert_int_equal(q.view, SP_VIEW_LEAKS);
	assert_int_equal(q.tail.kind, SP_MOMENT_SHARE);
	assert_int_equal(q.tail.thousandths, 12500);
	assert_int_equal(q.at.kind, SP_MOMENT_END);
	q = good("--within 64K a").question;
	assert_int_equal(q.view, SP_VIEW_TEMPORARY);
	assert_int_equal(q.within_bytes, 65536);
	assert_true(q.within_ns == SP_NEVER);
	q = good("--within 10ms a").question;
	assert_true(q.within_bytes == SP_NEVER);
	assert_int_equal(q.within_ns, 10000000);
	/* Bytes where both are possible. */
	assert_int_equal(good("--within 10m a").question.within_bytes,
			 10 << 20);
	refused("--view alloc --at 1s a",
		"--at needs --view live, leaks or peak");
	assert_int_equal(good("--view peak --at 1s a").question.view,
			 SP_VIEW_PEAK);
	refused("--view live --tail 1s a", "--tail needs --view leaks");
	refused("--view leaks --within 1 a", "--within needs --view temporary");
	refused("--within 1 --at 1s a",
		"--at needs --view live, leaks or peak");

	/* What is no time may be the name of a snapshot, or of a phase. */
	q = good("--at warm --phase load a").question;
	assert_int_equal(q.at.kind, SP_MOMENT_SNAPSHOT);
	assert_string_equal(q.at.name, "warm");
	assert_string_equal(q.phase, "load");
	assert_int_equal(good("--by phase a").rows, SP_ROWS_BY_PHASE);
}

static void assert_sizes(const char *range, uint64_t min, uint64_t max)
{
	char line[64];
	struct sp_question q;

	snprintf(line, sizeof(line), "--size %s a", range);
	q = good(line).question;
	assert_true(q.min_size_bytes == min);
	assert_true(q.max_size_bytes == max);
}

TEST(subsets)
{
	static const char *const bad[] = {"-",        "x",    "1-x",  "5-4",
					  "1K-2K-3K", "1..2", "1-2s", "--5"};
	struct sp_question q =
		good("--from 10% --to 2s --thread pool a").question;
	char line[64];

	assert_int_equal(q.from.kind, SP_MOMENT_SHARE);
	assert_int_equal(q.to.kind, SP_MOMENT_TIME);
	assert_string_equal(q.thread, "pool");
	q = good("--last 10s a").question;
	assert_int_equal(q.from.kind, SP_MOMENT_LAST);
	assert_true(q.from.ns == 10000000000);
	refused("--last 0s a", "--last takes a length of time: 10s, 500ms");
	refused("--last 50% a", "--last takes a length of time: 10s, 500ms");
	assert_false(q.has_view);
	assert_sizes("64", 64, 64);
	assert_sizes("1K-64K", 1024, 65536);
	assert_sizes("4096-", 4096, UINT64_MAX);
	assert_sizes("-1M", 0, 1 << 20);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "--size=%s a", bad[i]);
		refused(line,
			"--size takes a range of sizes: 64, 1K-64K, 4096-, "
			"-1M");
	}
}

TEST(methods_and_levels)
{
	char line[64];

	for (int i = 0; i < SP_METHOD_COUNT; i++) {
		snprintf(line, sizeof(line), "--estimator %s a",
			 sp_method_name((enum sp_method)i));
		assert_int_equal(good(line).question.method, i);
	}
	assert_close(good("--confidence 90 a").question.confidence, 0.9, 1e-15);
	assert_close(good("--confidence 95 a").question.confidence, 0.95,
		     1e-15);
	assert_close(good("--confidence 99 a").question.confidence, 0.99,
		     1e-15);
	assert_close(good("--confidence 99.9 a").question.confidence, 0.999,
		     1e-15);
	refused("--confidence 0.95 a",
		"--confidence takes 90, 95, 99 or 99.9 (percent)");
	refused("--confidence 100 a",
		"--confidence takes 90, 95, 99 or 99.9 (percent)");
	assert_int_equal(parse("--estimator guess a", &(struct sp_options){0}),
			 -EINVAL);
	assert_string_equal(error.message, "--estimator takes p3t or p3");
}

TEST(bad_values)
{
	refused("--view dead a",
		"--view takes alloc, live, peak, leaks, temporary, "
		"resident, mapped or reserved");
	refused("--from x a",
		"--from takes a time since the start: 2s, 500ms, 50%");
	refused("--to % a",
		"--to takes a time since the start: 2s, 500ms, 50%, end");
	refused("--tail end a",
		"--tail takes a share of the run or a time: 10%, 2s");
	refused("--within soon a", "--within takes bytes or a time: 64K, 10ms");
	refused("--thread= a",
		"--thread takes the number or the name of a thread");
	refused("--top x a", "--top takes a number");
	refused("--stacks -1 a", "--stacks takes a number");
	refused("--stacks 1 --cum a", "--stacks shows call stacks: it cannot "
				      "be used with --top or --sort");
	refused("--sort size a", "--sort takes flat, cum, count or name");
	refused("--watch 2 a", "--watch takes a time from 100ms to 24h");
	refused("--watch 99ms a", "--watch takes a time from 100ms to 24h");
	refused("--watch 25h a", "--watch takes a time from 100ms to 24h");
	refused("--top", "--top takes a number");
	refused("--json=1 a", "--json takes no value");
}

TEST(unknown_options)
{
	refused("--frobnicate a", "unknown option --frobnicate");
	refused("--veiw=live a",
		"unknown option --veiw=live: did you mean --view?");
	/* Other spellings are not offered. */
	refused("--diff_bas3 a", "unknown option --diff_bas3");
	refused("--t 5 a", "option --t is ambiguous: --tail, --to, --thread, "
			   "--top, --timeline");
	refused("--size=1 --si a", "option --si is ambiguous: --size, --sizes, "
				   "--simultaneous");
	refused("-x a", "unknown option -x");
	refused("a -vx", "unknown option -vx");
	refused("", "which profile? no FILE was given");
	refused("--json", "which profile? no FILE was given");
}

TEST(combinations)
{
	static const char everything[] =
		"--json shows everything: it cannot be used with --top, "
		"--sort, --stacks, --timeline or --sizes";
	static const char pages[] =
		"--timeline and --sizes cannot be used with --top, --sort, "
		"--stacks or --simultaneous";
	static const char timeline[] =
		"--timeline shows live bytes: it cannot be used with --view, "
		"--at, --tail or --within";

	refused("--json --csv a", "--json or --csv, not both");
	refused("--timeline --sizes a", "--timeline or --sizes, not both");
	refused("--json --top 30 a", everything);
	refused("--json --sort flat a", everything);
	refused("--json --stacks 1 a", everything);
	refused("--json --timeline a", everything);
	refused("--timeline --top 1 a", pages);
	refused("--sizes --simultaneous a", pages);
	refused("--csv --stacks 3 a", "--csv cannot be used with --stacks");
	refused("--timeline --view live a", timeline);
	refused("--timeline --at 1s a", timeline);
	refused("--watch 1s --json a",
		"--watch cannot be used with --json or --csv");
	refused("--watch 1s --csv a",
		"--watch cannot be used with --json or --csv");
	good("--timeline --csv --from 1s --thread 1 --size 5- a");
	good("--sizes --view peak --from 1s --thread 1 --size 5- a");
	good("--json --view peak --simultaneous a");
	good("--watch 1s --timeline a");
}

/* Every option is in the help, and each of those there is known. */
TEST(help_is_complete)
{
	static const char *const names[] = {
		"view",        "at",           "from",        "to",
		"tail",        "within",       "thread",      "size",
		"phase",       "focus",        "ignore",      "hide",
		"show",        "show-from",    "prune-from",  "estimator",
		"confidence",  "simultaneous", "top",         "sort",
		"cum",         "nodefraction", "granularity", "by",
		"unit",        "stacks",       "source-path", "timeline",
		"sizes",       "json",         "json-old",    "csv",
		"ascii",       "watch",        "debug-path",  "debuginfod",
		"help",        "help-all",     "version",     "base",
		"full-names",  "all-frames",   "see-through", "no-pager",
		"last",        "metric",       "rss", /* of run: the text of
						       * --metric names them
						       */
		"rss-at-peak",
	};
	const char *text = help();
	char line[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line), "--%s", names[i]);
		assert_non_null(strstr(text, line));
	}
	for (const char *p = strstr(text, "--"); p; p = strstr(p + 1, "--")) {
		size_t n = strspn(p, "-abcdefghijklmnopqrstuvwxyz");
		bool is_known = false;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			is_known |= strlen(names[i]) == n - 2 &&
				    !strncmp(p + 2, names[i], n - 2);
		if (!is_known && n > 2)
			fail_msg("the help names %.*s", (int)n, p);
		p += n - 1;
	}
}

/* Each command is a page, and takes what its page shows. */
TEST(pages)
{
	struct sp_options o;

	assert_int_equal(good("a").page, SP_PAGE_REPORT);
	assert_int_equal(good("report a").page, SP_PAGE_REPORT);
	assert_int_equal(good("top a").page, SP_PAGE_TOP);
	assert_int_equal(good("traces --stacks 3 a").page, SP_PAGE_TRACES);
	assert_int_equal(good("stats --json a").page, SP_PAGE_STATS);
	assert_int_equal(good("stats a").top, 5);
	o = good("peek ^f a b");
	assert_int_equal(o.page, SP_PAGE_PEEK);
	assert_string_equal(o.pattern, "^f");
	assert_int_equal(o.n_files, 2);
	assert_string_equal(o.files[0], "a");
	assert_string_equal(good("list --source-path x:y f a").source_path,
			    "x:y");
	assert_null(good("tree a").pattern);
	/* Options may stand before the name, which a file of it may follow. */
	o = good("--view live tree --json a");
	assert_int_equal(o.page, SP_PAGE_TREE);
	assert_int_equal(o.n_files, 1);
	assert_string_equal(o.files[0], "a");
	o = good("--focus top peek f a");
	assert_int_equal(o.page, SP_PAGE_PEEK);
	assert_string_equal(o.pattern, "f");
	assert_string_equal(good("report top").files[0], "top");
	assert_string_equal(good("./top").files[0], "./top");
	/* What is small is dropped where that is the custom. */
	assert_close(good("a").share, 0, 0);
	assert_close(good("top a").share, 0.005, 0);
	assert_close(good("tree a").share, 0.005, 0);
	assert_close(good("tree --json a").share, 0, 0);
	assert_close(good("tree --json --nodefraction 0.25 a").share, 0.25, 0);
	assert_close(good("top --nodefraction 0 a").share, 0, 0);
	refused("peek a", "REGEX or FILE is missing: only a was given");
	refused("peek", "which functions? no REGEX was given");
	refused("list", "which functions? no REGEX was given");
	refused("tree", "which profile? no FILE was given");
	assert_int_equal(parse("peek (x a", &o), -EINVAL);
	assert_non_null(strstr(error.message, "REGEX: "));
}

TEST(pages_refuse)
{
	refused("tree --timeline a",
		"--timeline, --sizes and --by are only for report and top");
	refused("peek --by size f a",
		"--timeline, --sizes and --by are only for report and top");
	refused("tree --top 3 a", "--top is only for report, top and stats");
	refused("stats --cum a",
		"--sort and --cum are only for report and top");
	refused("tree --stacks 3 a",
		"--stacks is only for report, top and traces");
	refused("list --granularity line f a",
		"--granularity is only for the functions of report and top, "
		"for tree and for peek");
	refused("--by size --granularity line a",
		"--granularity is only for the functions of report and top, "
		"for tree and for peek");
	refused("stats --nodefraction 0.1 a",
		"--nodefraction is only for the functions of report and top, "
		"with tree, peek and list");
	refused("--source-path x a", "--source-path is only for list");
	refused("tree --simultaneous a",
		"--simultaneous is only for report and top");
	refused("traces --csv a",
		"traces and stats cannot be used with --csv, but with --json");
	refused("--csv --unit B a",
		"--json and --csv have bytes: they cannot be used with --unit");
	refused("--by size --sizes a",
		"--by, --timeline or --sizes: one of them");
	refused("--by thread --top 3 a", "--by cannot be used with --top, "
					 "--sort, --stacks or --simultaneous");
	refused("--json --by thread a", "--json shows everything: it cannot be "
					"used with --nodefraction or --by");
	refused("--json --nodefraction 0.5 a",
		"--json shows everything: it cannot be used with "
		"--nodefraction or --by");
}

TEST(rows)
{
	assert_int_equal(good("--cum a").order, SP_AGGREGATE_BY_CUM);
	assert_int_equal(good("--sort count a").order, SP_AGGREGATE_BY_COUNT);
	assert_int_equal(good("--sort name a").order, SP_AGGREGATE_BY_NAME);
	assert_int_equal(good("a").granularity, SP_BY_FUNCTION);
	assert_int_equal(good("--granularity file a").granularity, SP_BY_FILE);
	assert_int_equal(good("--granularity line a").granularity, SP_BY_LINE);
	assert_int_equal(good("--granularity module a").granularity,
			 SP_BY_MODULE);
	assert_int_equal(good("--granularity address a").granularity,
			 SP_BY_ADDRESS);
	assert_int_equal(good("a").rows, SP_ROWS_BY_CODE);
	assert_int_equal(good("--by thread a").rows, SP_ROWS_BY_THREAD);
	assert_int_equal(good("--by size a").rows, SP_ROWS_BY_SIZE);
	assert_int_equal(good("a").unit, SP_TEXT_UNIT_AUTO);
	assert_int_equal(good("--unit MiB a").unit, SP_TEXT_UNIT_MIB);
	refused("--granularity word a",
		"--granularity takes function, file, line, module or address");
	refused("--by phone a",
		"--by takes thread, size or phase: did you mean phase?");
	refused("--unit MB a",
		"--unit takes B, KiB, MiB, GiB or auto: did you mean MiB?");
	refused("--nodefraction 1.001 a",
		"--nodefraction takes a share from 0 to 1, like 0.005");
	refused("--nodefraction -1 a",
		"--nodefraction takes a share from 0 to 1, like 0.005");
}

/* pprof's spelling too, in the report and in an export. */
TEST(base)
{
	struct sp_options o = good("top --base a -diff_base b c");

	assert_int_equal(o.n_base, 2);
	assert_string_equal(o.base[0], "a");
	assert_string_equal(o.base[1], "b");
	assert_int_equal(o.n_files, 1);
	good("peek f --base a --granularity module c");
	good("--sizes --base a c");
	good("--by phase --base a c");
	refused("list f --base a c",
		"list cannot be used with --base: lines move when code is "
		"edited; peek REGEX --base compares callers and callees of "
		"functions");
	refused("--timeline --base a c",
		"--timeline cannot be used with --base: two runs have no "
		"common clock; --view peak --base compares the peaks");
	refused("tree --granularity line --base a c",
		"--base matches functions by name: it needs --granularity "
		"function or module");
	refused("top --simultaneous --base a c",
		"--simultaneous cannot be used with --base, which judges all "
		"rows together already");
	refused("top --estimator p3 --base a c",
		"--base cannot be used with --estimator");
	refused("top --watch 1s --base a c",
		"--watch cannot be used with --base");
}

TEST(filters)
{
	struct sp_filter_patterns f =
		good("--focus a --ignore b --hide c --show d --show-from e "
		     "--prune-from f x")
			.question.filter;

	assert_string_equal(f.text[SP_FILTER_FOCUS], "a");
	assert_string_equal(f.text[SP_FILTER_IGNORE], "b");
	assert_string_equal(f.text[SP_FILTER_HIDE], "c");
	assert_string_equal(f.text[SP_FILTER_SHOW], "d");
	assert_string_equal(f.text[SP_FILTER_SHOW_FROM], "e");
	assert_string_equal(f.text[SP_FILTER_PRUNE_FROM], "f");
	f = good("top -show_from=e -prune_from=f x").question.filter;
	assert_string_equal(f.text[SP_FILTER_SHOW_FROM], "e");
	assert_string_equal(f.text[SP_FILTER_PRUNE_FROM], "f");
	assert_int_equal(parse("--hide a(b x", &(struct sp_options){0}),
			 -EINVAL);
	assert_non_null(strstr(error.message, "--hide: "));
	refused("--focus", "--focus takes a regular expression");
}

TEST(default_view)
{
	struct sp_profile p = {.has_frees = true,
			       .end = SP_PROFILE_END_RUNNING};
	struct sp_options o = good("a"), json = good("--json a"),
			  csv = good("--csv a");

	assert_int_equal(sp_options_fallback(&o, &p), SP_VIEW_LIVE);
	assert_int_equal(sp_options_fallback(&json, &p), SP_VIEW_ALLOC);
	assert_int_equal(sp_options_fallback(&csv, &p), SP_VIEW_ALLOC);
	p.end = SP_PROFILE_END_KILLED;
	assert_int_equal(sp_options_fallback(&o, &p), SP_VIEW_LIVE);
	p.end = SP_PROFILE_END_CLEAN;
	assert_int_equal(sp_options_fallback(&o, &p), SP_VIEW_ALLOC);
	p.end = SP_PROFILE_END_RUNNING;
	p.has_frees = false;
	assert_int_equal(sp_options_fallback(&o, &p), SP_VIEW_ALLOC);
}

TEST(options_of_an_export)
{
	refused("a -o b", "-o is only for export FORMAT");
	refused("a --metric objects",
		"--metric objects is for export collapsed: the report shows "
		"objects besides");
}

TEST_MAIN(NULL, NULL)
