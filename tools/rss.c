/* SPDX-License-Identifier: MIT */
/* sampleprof rss: what the resident memory of a process is made of. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rss/ledger.h"
#include "rss/options.h"
#include "rss/stored.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

static void say_waiting(uint64_t pid)
{
	fprintf(stderr,
		"%s: waiting until a thread of process %" PRIu64
		" has allocated\nanother 4 KiB, and says what its allocator "
		"keeps\n",
		sp_console_program(), pid);
}

static int print_stored(const struct sp_rss_options *options)
{
	struct sp_error err;
	char *text = NULL;
	size_t size;
	FILE *page = open_memstream(&text, &size), *out;
	int r;

	if (!page)
		return sp_console_fail("not enough memory");
	r = sp_rss_print_stored(page, options, &err);
	fclose(page);
	if (r < 0) {
		free(text);
		return sp_console_fail_with(&err);
	}
	if (!options->json)
		sp_console_begin_page(false);
	out = sp_console_open();
	fputs(text, out);
	free(text);
	return sp_console_close(out);
}

static int print_ledger(const struct sp_rss_options *options)
{
	struct sp_rss_ledger ledger;
	struct sp_error err;
	FILE *out;

	if (sp_rss_ledger_make(options, &ledger, &err) < 0)
		return sp_console_fail_with(&err);
	sp_text_set_ascii(!sp_console_is_utf8() && !options->json);
	if (!options->json)
		sp_console_begin_page(options->pins);
	out = sp_console_open();
	if (options->json)
		sp_rss_print_json(out, &ledger, NULL, 0);
	else
		sp_rss_print(out, &ledger);
	sp_rss_pins_free(ledger.pins);
	return sp_console_close(out);
}

int run_rss(int argc, char **argv)
{
	struct sp_rss_options options;
	struct sp_error err;
	const int code =
		sp_console_parsed(sp_rss_parse(argc, argv, &options, &err),
				  &err, &sp_rss_line, "rss");

	if (code >= 0)
		return code;
	options.on_wait = say_waiting;
	options.progress = sp_console_progress_fn();
	return options.path ? print_stored(&options) : print_ledger(&options);
}
