/* SPDX-License-Identifier: MIT */
/* report --view pinned: who pins free memory, of a process that runs and of one
 * that has ended. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/options.h"
#include "control/target.h"
#include "rss/ledger.h"
#include "rss/pins.h"
#include "text/json.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

/* As of rss. */
#define TIMEOUT_NS 5000000000ull

static int look_at_process(const struct sp_options *o, uint64_t pid,
			   struct sp_rss_pins **ret, struct sp_error *err)
{
	const struct sp_rss_options options = {
		.pid = pid,
		.timeout_ns = TIMEOUT_NS,
		.confidence = o->question.confidence,
		.pins = true,
		.granularity = o->granularity,
		.symbols = &o->symbols,
		.progress = sp_console_progress_fn(),
	};
	struct sp_rss_ledger ledger;
	int r = sp_rss_ledger_make(&options, &ledger, err);

	*ret = ledger.pins;
	return r;
}

static int find_pins(const struct sp_options *o, struct sp_rss_pins **ret,
		     struct sp_error *err)
{
	const struct sp_rss_pins_question question = {
		.path = o->files[0],
		.granularity = o->granularity,
		.symbols = &o->symbols,
		.question = &o->question,
		.confidence = o->question.confidence,
		.progress = sp_console_progress_fn(),
	};
	uint64_t pid = 0;

	if (o->question.at.kind == SP_MOMENT_NONE ||
	    o->question.at.kind == SP_MOMENT_END)
		(void)sp_target_writer(o->files[0], &pid);
	return pid ? look_at_process(o, pid, ret, err)
		   : sp_rss_pins_find(&question, NULL, ret, err);
}

static void print_page(FILE *out, const struct sp_rss_pins *pins, uint64_t top)
{
	sp_style_begin(out, SP_STYLE_HEAD);
	fputs("sampleprof pinned: ", out);
	sp_text_print(out, pins->profile->program);
	sp_style_begin(out, SP_STYLE_PLAIN);
	fputs("\n\n", out);
	sp_rss_pins_print(out, pins, top);
}

static int print_text(FILE *out, const struct sp_rss_pins *pins, uint64_t top)
{
	char *text = NULL;
	size_t size;
	FILE *page = open_memstream(&text, &size);

	if (!page)
		return sp_console_fail("not enough memory");
	print_page(page, pins, top);
	sp_lines_close(out, page, &text);
	return EXIT_FINE;
}

static void print_json(FILE *out, const struct sp_rss_pins *pins)
{
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open(&json, NULL, '{');
	sp_json_string(&json, "program", pins->profile->program);
	sp_json_open(&json, "pins", '{');
	sp_rss_pins_write_json(&json, pins);
	sp_json_close(&json, '}');
	sp_json_close(&json, '}');
	putc('\n', out);
}

int show_pinned(const struct sp_options *options)
{
	struct sp_rss_pins *pins = NULL;
	struct sp_error err;
	int code = EXIT_FINE, close_code;
	FILE *out;

	if (options->n_files > 1)
		return sp_console_fail_usage("--view pinned is of one process: "
					     "give one FILE",
					     "report");
	if (find_pins(options, &pins, &err) < 0)
		return sp_console_fail_with(&err);
	if (sp_rss_pins_why_not(pins)) {
		code = sp_console_fail(sp_rss_pins_why_not(pins));
		sp_rss_pins_free(pins);
		return code;
	}
	sp_text_set_ascii(options->ascii && !options->json);
	if (!options->json)
		sp_console_begin_page(!options->no_pager);
	out = sp_console_open();
	if (options->json)
		print_json(out, pins);
	else
		code = print_text(out, pins, options->top);
	close_code = sp_console_close(out);
	sp_rss_pins_free(pins);
	return close_code ? close_code : code;
}
