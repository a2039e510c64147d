/* SPDX-License-Identifier: MIT */
/* sampleprof rss: what the resident memory of a process is made of. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rss/ledger.h"
#include "rss/options.h"
#include "rss/stored.h"
#include "text/output.h"
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

/* The page is a file that only its owner reads, as a profile is. */
static int keep_page(const char *path, const char *text)
{
	struct sp_output *output;
	struct sp_error err;

	if (sp_output_open(path, SP_OUTPUT_PRIVATE, &output, &err) < 0)
		return sp_console_fail_with(&err);
	fputs(text, output->stream);
	return sp_output_commit(output, &err) < 0 ? sp_console_fail_with(&err)
						  : EXIT_FINE;
}

static int print_ledger(FILE *out, const struct sp_rss_options *options,
			struct sp_error *err)
{
	struct sp_rss_ledger ledger;
	int r = sp_rss_ledger_make(options, &ledger, err);

	if (r < 0)
		return r;
	if (options->html)
		sp_rss_print_html(out, &ledger);
	else if (options->json)
		sp_rss_print_json(out, &ledger, NULL, 0);
	else
		sp_rss_print(out, &ledger);
	sp_rss_pins_free(ledger.pins);
	return 0;
}

static int print_text(const struct sp_rss_options *options, const char *text)
{
	FILE *out;

	if (options->html)
		return keep_page(options->html, text);
	if (options->pins && !options->json)
		sp_console_begin_page(true);
	out = sp_console_open();
	fputs(text, out);
	return sp_console_close(out);
}

static int print(const struct sp_rss_options *options)
{
	const bool is_text = !options->json && !options->html;
	struct sp_error err;
	char *text = NULL;
	size_t size;
	FILE *page = open_memstream(&text, &size);
	int r;

	if (!page)
		return sp_console_fail("not enough memory");
	sp_text_set_ascii(!sp_console_is_utf8() && is_text);
	if (is_text)
		sp_console_begin_page(false);
	r = options->path ? sp_rss_print_stored(page, options, &err)
			  : print_ledger(page, options, &err);
	fclose(page);
	r = r < 0 ? sp_console_fail_with(&err) : print_text(options, text);
	free(text);
	return r;
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
	return print(&options);
}
