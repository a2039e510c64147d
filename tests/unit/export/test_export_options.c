/* SPDX-License-Identifier: MIT */
/* The command line of an export: what each option sets, and what is refused
 * with which words. */

#include "export/options.h"
#include "support/test.h"
#include "support/words.h"

static struct sp_error error;

/* 0, 1, or -EINVAL and `error`; what is borrowed stays until the next call. */
static int parse(const char *line, struct sp_export_request *ret)
{
	static struct words words;

	words_split(&words, line);
	error.message[0] = '\0';
	return sp_export_options_parse(words.argc, words.argv, ret, &error);
}

static struct sp_export_request good(const char *line)
{
	struct sp_export_request request;

	if (parse(line, &request) < 0)
		fail_msg("\"%s\" is refused: %s", line, error.message);
	return request;
}

static void refused(const char *line, const char *message)
{
	struct sp_export_request request;

	if (parse(line, &request) >= 0)
		fail_msg("\"%s\" is not refused", line);
	assert_string_equal(error.message, message);
}

TEST(what_is_set)
{
	struct sp_export_request o = good("pprof --view peak a -o b");

	assert_ptr_equal(o.format, sp_export_find("pprof"));
	assert_string_equal(o.files[0], "a");
	assert_int_equal(o.n_files, 1);
	assert_string_equal(o.output, "b");
	assert_int_equal(o.question.view, SP_VIEW_PEAK);
	assert_false(o.how.of_objects || o.how.pprof_error);
	assert_int_equal(o.how.max_samples, 0);
	o = good("-o- --pprof-error pprof --max-samples 7 a");
	assert_string_equal(o.output, "-");
	assert_true(o.how.pprof_error);
	assert_int_equal(o.how.max_samples, 7);
	o = good("collapsed --output=b a --metric objects");
	assert_true(o.how.of_objects);
	o = good("html -ob --base c a --base d");
	assert_int_equal(o.how.n_base_files, 2);
	assert_string_equal(o.how.base_files[0], "c");
	assert_string_equal(o.how.base_files[1], "d");
	assert_int_equal(o.n_files, 1);
	o = good("csv -ob -focus=a x");
	assert_string_equal(o.question.filter.text[SP_FILTER_FOCUS], "a");
	assert_int_equal(parse("--help", &o), SP_ARGUMENTS_HELP);
	assert_int_equal(parse("--version", &o), SP_ARGUMENTS_VERSION);
}

TEST(what_is_refused)
{
	refused("csv a", "where to? no -o OUT was given (- is standard "
			 "output)");
	refused("csv a -o", "--output takes a path, or - for standard output");
	refused("csv -ob", "which profile? no FILE was given");
	refused("csv -ob a --top 3", "an export cannot be used with --top");
	refused("csv -ob a --json", "an export cannot be used with --json");
	refused("csv -ob a --metric objects",
		"csv cannot be used with --metric objects");
	refused("csv -ob a --max-samples 9",
		"csv cannot be used with --pprof-error or --max-samples");
	refused("csv -ob a --at 3s --view temporary",
		"--at needs --view live, leaks or peak");
	refused("pprof -ob a --max-samples 0",
		"--max-samples takes a number above 0");
	refused("pprof -ob a --base c",
		"pprof cannot be used with --base: html shows two sides, and "
		"so does diff");
}

TEST_MAIN(NULL, NULL)
