/* SPDX-License-Identifier: MIT */
/* sampleprof leaks: which call sites leak. */
#include <stdio.h>

#include "cli/leaks.h"
#include "model/profile.h"
#include "report/load.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

static int judge_leaks(FILE *out, const struct sp_leaks_options *options)
{
	sp_progress_fn *fn = sp_console_progress_fn();
	const struct sp_load_needs needs = {0};
	struct sp_question question;
	struct sp_profile *profile;
	struct sp_error err;
	int code = EXIT_FINE;

	sp_question_init(&question);
	sp_console_begin_progress("reading");
	if (sp_load(&options->file, 1, &question, &needs, fn, NULL, &profile,
		    &err) < 0)
		return sp_console_fail_with(&err);
	sp_console_go_on("symbolizing");
	if (sp_leaks_print(out, profile, options, fn, NULL, &err) < 0)
		code = sp_console_fail_with(&err);
	sp_profile_free(profile);
	return code;
}

int run_leaks(int argc, char **argv)
{
	struct sp_leaks_options options;
	struct sp_error err;
	int code, close_code;
	FILE *out;

	code = sp_console_parsed(sp_leaks_parse(argc, argv, &options, &err),
				 &err, &sp_leaks_line, "leaks");
	if (code >= 0)
		return code;
	sp_text_set_ascii(!sp_console_is_utf8() && !options.json &&
			  !options.csv);
	if (!options.json && !options.csv)
		sp_console_begin_page(true);
	out = sp_console_open();
	code = judge_leaks(out, &options);
	close_code = sp_console_close(out);
	return close_code ? close_code : code;
}
