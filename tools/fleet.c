/* SPDX-License-Identifier: MIT */
/* The command fleet: a database of profiles, filled and asked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/page.h"
#include "export/export.h"
#include "export/options.h"
#include "fleet/batch.h"
#include "fleet/choose.h"
#include "fleet/drawn.h"
#include "fleet/load.h"
#include "fleet/options.h"
#include "fleet/runs.h"
#include "fleet/watch.h"
#include "compare/gate.h"
#include "model/profile.h"
#include "report/answer.h"
#include "text/output.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

/* A profile of the chosen processes, and the database that it is of. */
struct fleet {
	struct sp_fleet_db db;
	struct sp_profile *profile;
	struct sp_fleet_part *parts;
};

static void fleet_done(struct fleet *fleet)
{
	if (fleet->profile)
		sp_profile_free(fleet->profile);
	free(fleet->parts);
	sp_fleet_db_close(&fleet->db);
}

/* What was allocated from --from on, and before --to, as the question of a
 * profile has it. */
static void narrow_question(struct sp_question *q, const struct fleet *fleet,
			    const struct sp_fleet_filter *f)
{
	const uint64_t start = fleet->profile->start_unix_ns;

	if (f->from_unix_ns > start)
		q->from = (struct sp_moment){.kind = SP_MOMENT_TIME,
					     .ns = f->from_unix_ns - start};
	if (f->to_unix_ns < start + fleet->profile->duration_ns)
		q->to = (struct sp_moment){.kind = SP_MOMENT_TIME,
					   .ns = f->to_unix_ns - start};
}

/* The report takes a time of the day for the name of a snapshot, of which a
 * database has none. */
static int place_moment(struct sp_question *q, const struct fleet *fleet,
			struct sp_error *err)
{
	const uint64_t start = fleet->profile->start_unix_ns;
	uint64_t at;

	if (q->at.kind != SP_MOMENT_SNAPSHOT ||
	    !sp_fleet_parse_time(q->at.name, &at))
		return 0;
	if (at < start)
		return sp_error_set(err, -ERANGE, fleet->db.path,
				    "--at %s is before the first of the "
				    "processes started",
				    q->at.name);
	q->at = (struct sp_moment){.kind = SP_MOMENT_TIME, .ns = at - start};
	return 0;
}

/* Is it about amounts alone, of whole hours, so that the rollup answers it? */
static bool asks_for_sums(const struct sp_options *page,
			  const struct sp_fleet_options *o)
{
	const struct sp_question *q = &page->question;
	const bool is_table =
		page->page == SP_PAGE_TOP || page->page == SP_PAGE_TREE ||
		page->page == SP_PAGE_PEEK || o->action == SP_FLEET_LIVE;
	const bool has_view = !q->has_view || q->view == SP_VIEW_ALLOC ||
			      q->view == SP_VIEW_LIVE;
	const struct sp_fleet_span span = {o->filter.from_unix_ns,
					   o->filter.to_unix_ns};

	return is_table && has_view && !page->json && !page->has_stacks &&
	       !page->timeline && !page->sizes &&
	       page->rows == SP_ROWS_BY_CODE && !q->thread && !q->phase &&
	       q->at.kind == SP_MOMENT_NONE && q->from.kind == SP_MOMENT_NONE &&
	       q->to.kind == SP_MOMENT_NONE && sp_fleet_span_is_hours(&span);
}

/* 0; negative errno and *err.  To be released in every case.  By the rollup if
 * `of_hours`. */
static int fleet_load(struct fleet *fleet, const struct sp_fleet_options *o,
		      struct sp_question *question, bool of_hours,
		      struct sp_error *err)
{
	const struct sp_fleet_span span = {o->filter.from_unix_ns,
					   o->filter.to_unix_ns};
	struct sp_fleet_chosen chosen = {.n = 0};
	int r;

	*fleet = (struct fleet){.profile = NULL};
	sp_console_begin_progress("reading");
	r = sp_fleet_db_open(&fleet->db, o->url, err);
	if (r >= 0)
		r = sp_fleet_choose(&fleet->db, &o->filter, &chosen, err);
	if (r >= 0)
		r = sp_fleet_load(&fleet->db, &chosen, of_hours ? &span : NULL,
				  &fleet->profile, &fleet->parts, err);
	sp_fleet_chosen_done(&chosen);
	if (r < 0)
		return r;
	narrow_question(question, fleet, &o->filter);
	return place_moment(question, fleet, err);
}

/* ---- filling it ---- */

static int init_database(const struct sp_fleet_options *o)
{
	struct sp_error err;

	if (o->argc > 1)
		return sp_console_fail_usage("fleet init takes no files",
					     "fleet");
	if (sp_fleet_db_init(o->url, &err) < 0)
		return sp_console_fail_with(&err);
	printf("%s is ready for profiles\n"
	       "next: sampleprof fleet add FILE..., or fleet watch "
	       "DIRECTORY%s\n",
	       o->url,
	       strcmp(o->url, SP_FLEET_URL) == 0 ? "" : ", with the same --db");
	return EXIT_FINE;
}

struct adding {
	size_t counts[SP_FLEET_SAME + 1], failed;
};

static void note_added(void *arg, void *item, enum sp_fleet_added added)
{
	struct adding *a = arg;

	(void)item;
	a->counts[added]++;
}

/* Of files that waited for each other each is named. */
static void note_failed(void *arg, void *item, int code,
			const struct sp_error *err)
{
	struct adding *a = arg;
	char text[700], *line = NULL;

	(void)code;
	a->failed++;
	if (err->file && strcmp(err->file, item) == 0) {
		sp_console_fail_with(err);
		return;
	}
	sp_error_describe(err, text, sizeof(text));
	if (asprintf(&line, "%s was not added: %s", (char *)item, text) < 0)
		line = NULL;
	sp_console_fail(line ? line : text);
	free(line);
}

/* A file that cannot be added does not keep the others out. */
static int add_files(const struct sp_fleet_options *o)
{
	const struct sp_symbolizer_options symbols = {.debug_path = NULL};
	struct adding a = {.failed = 0};
	struct sp_fleet_db db;
	struct sp_fleet_batch batch = {.db = &db,
				       .done = note_added,
				       .failed = note_failed,
				       .arg = &a};
	struct sp_error err;

	if (o->argc < 2)
		return sp_console_fail_usage("fleet add needs a FILE", "fleet");
	for (int i = 1; i < o->argc; i++)
		if (o->argv[i][0] == '-')
			return sp_console_fail_usage(
				"fleet add takes --db and files, nothing else "
				"(a file of that name is ./-...)",
				"fleet");
	if (sp_fleet_db_open(&db, o->url, &err) < 0) {
		sp_console_fail_with(&err);
		sp_fleet_db_close(&db);
		return EXIT_ERROR;
	}
	for (int i = 1; i < o->argc; i++)
		sp_fleet_batch_add(&batch, o->argv[i], &symbols, o->argv[i],
				   &err);
	sp_fleet_batch_flush(&batch, &err);
	sp_fleet_db_close(&db);
	printf("%zu added, %zu updated, %zu there already",
	       a.counts[SP_FLEET_ADDED], a.counts[SP_FLEET_UPDATED],
	       a.counts[SP_FLEET_SAME]);
	if (a.failed)
		printf(", %zu not added", a.failed);
	putchar('\n');
	return a.failed ? EXIT_ERROR : sp_console_finish();
}

static int watch_directory(const struct sp_fleet_options *o)
{
	struct sp_watch_options watch = {o->url, NULL, o->interval_ns,
					 o->running_ns, o->backlog_bytes};
	char dir[4096];
	struct sp_error err;
	int n;

	if (o->argc > 2 || (o->argc == 2 && o->argv[1][0] == '-'))
		return sp_console_fail_usage(
			"fleet watch takes --db, --interval, --running, "
			"--backlog and one directory",
			"fleet");
	n = snprintf(dir, sizeof(dir), "%s%s", o->argc > 1 ? o->argv[1] : "",
		     o->argc > 1 ? "/" : "");
	if ((size_t)n >= sizeof(dir))
		return sp_console_fail("the name of the directory is too long");
	while (n > 1 && dir[n - 2] == '/')
		dir[--n] = '\0';
	watch.dir = dir;
	return sp_watch_run(&watch, stderr, &err) < 0
		       ? sp_console_fail_with(&err)
		       : EXIT_FINE;
}

/* ---- asking it ---- */

/* Only tables of functions are estimated from both stages. */
static int print_drawn(FILE *out, const struct fleet *fleet,
		       const struct sp_options *page, struct sp_error *err)
{
	struct sp_answer answer = {.profile = fleet->profile,
				   .question = &page->question,
				   .symbols = &page->symbols};
	struct sp_aggregate *aggregate = NULL;
	struct sp_fleet_drawn drawn;
	int r;

	if ((page->page != SP_PAGE_REPORT && page->page != SP_PAGE_TOP) ||
	    page->has_stacks || page->timeline || page->sizes || page->csv ||
	    page->rows != SP_ROWS_BY_CODE ||
	    (page->question.has_view && page->question.view == SP_VIEW_PEAK))
		return sp_error_set(
			err, -EINVAL, fleet->db.path,
			"only a share of some processes was recorded "
			"(SAMPLEPROF_FRACTION): only report, top and live "
			"estimate all of them, without --stacks, --timeline, "
			"--sizes, --by, --csv and --view peak");
	r = sp_answer_analyse(&answer, SP_VIEW_ALLOC, err);
	if (r >= 0)
		r = sp_answer_aggregate(&answer, page->granularity, &aggregate,
					err);
	if (r >= 0) {
		sp_aggregate_sort(aggregate, page->order);
		r = sp_fleet_drawn_init(&drawn, aggregate, fleet->parts, err);
		if (r >= 0 && page->json)
			sp_fleet_drawn_json(out, &drawn);
		else if (r >= 0)
			sp_fleet_drawn_print(out, &drawn, page->top);
		sp_fleet_drawn_done(&drawn);
		sp_aggregate_free(aggregate);
	}
	sp_answer_done(&answer);
	return r;
}

static int print_fleet(FILE *out, const struct fleet *fleet,
		       const struct sp_options *page, struct sp_error *err)
{
	if (sp_fleet_is_drawn(fleet->parts, fleet->profile->n_parts))
		return print_drawn(out, fleet, page, err);
	return sp_page_print(out, fleet->profile, page, NULL, NULL, err);
}

static int print_page(const struct sp_fleet_options *o)
{
	struct sp_options page;
	struct fleet fleet;
	struct sp_error err;
	int code = sp_console_parsed(
		sp_options_parse(o->argc, o->argv, &page, &err), &err,
		&sp_fleet_line, "fleet");
	int close_code;
	FILE *out;

	if (code >= 0)
		return code;
	code = EXIT_FINE;
	if (page.n_files > 1 || page.n_base || page.watch_ns)
		return sp_console_fail_usage(
			"fleet takes no FILE, --base and --watch here: "
			"--label, --host, --from and --to choose processes",
			"fleet");
	page.no_next = true;
	if (!sp_console_is_utf8())
		page.ascii = true;
	if (!page.json && !page.csv)
		sp_console_begin_page(!page.no_pager);
	out = sp_console_open();
	if (fleet_load(&fleet, o, &page.question, asks_for_sums(&page, o),
		       &err) < 0 ||
	    print_fleet(out, &fleet, &page, &err) < 0)
		code = sp_console_fail_with(&err);
	close_code = sp_console_close(out);
	fleet_done(&fleet);
	return code ? code : close_code;
}

static int write_export(FILE *out, const struct sp_fleet_options *o,
			struct sp_export_request *request)
{
	struct fleet fleet;
	struct sp_error err;
	int code = EXIT_FINE;

	if (fleet_load(&fleet, o, &request->question, false, &err) < 0) {
		code = sp_console_fail_with(&err);
		fleet_done(&fleet);
		return code;
	}
	if (sp_fleet_is_drawn(fleet.parts, fleet.profile->n_parts))
		fprintf(stderr,
			"%s: only a share of some processes was recorded: the "
			"export has the recorded ones, and does not estimate "
			"the others\n",
			sp_console_program());
	if (sp_export_write(out, fleet.profile, request, NULL, NULL, &err) < 0)
		code = sp_console_fail_with(&err);
	fleet_done(&fleet);
	return code;
}

static int export_fleet(const struct sp_fleet_options *o)
{
	struct sp_export_request request;
	struct sp_output *output;
	struct sp_error err;
	int code;
	FILE *out;

	if (sp_export_options_parse(o->argc, o->argv, &request, &err) < 0)
		return sp_console_fail_usage(err.message, "fleet");
	if (request.n_files > 1)
		return sp_console_fail_usage("fleet export takes a format and "
					     "no FILE",
					     "fleet");
	if (strcmp(request.output, "-") == 0) {
		if (request.format->is_binary && isatty(STDOUT_FILENO))
			return sp_console_fail("this format is binary and no "
					       "text for a terminal: give -o "
					       "FILE, or a pipe");
		out = sp_console_open();
		code = write_export(out, o, &request);
		return sp_console_close(out) ? EXIT_ERROR : code;
	}
	if (sp_output_open(request.output, SP_OUTPUT_PRIVATE, &output, &err) <
	    0)
		return sp_console_fail_with(&err);
	code = write_export(output->stream, o, &request);
	if (code) {
		sp_output_abandon(output);
		return code;
	}
	sp_console_erase_progress();
	return sp_output_commit(output, &err) < 0 ? sp_console_fail_with(&err)
						  : EXIT_FINE;
}

/* ---- two sides ---- */

static int check_code(enum sp_verdict verdict,
		      const struct sp_gate_options *gate)
{
	switch (verdict) {
	case SP_VERDICT_PASS:
		return EXIT_FINE;
	case SP_VERDICT_CANNOT_TELL:
		return gate->undecided == SP_UNDECIDED_FAIL ? EXIT_CANNOT_TELL
							    : EXIT_FINE;
	default:
		return EXIT_REGRESSION;
	}
}

static int run_gate(const struct sp_fleet_options *o,
		    struct sp_gate_options *gate, struct sp_fleet_db *db)
{
	struct sp_fleet_runs runs = {.db = db, .options = o};
	enum sp_verdict verdict = SP_VERDICT_PASS;
	struct sp_error err = {0};
	int code, close_code, r;
	FILE *out;

	gate->source = sp_fleet_runs_load;
	/* cppcheck-suppress autoVariables ; it is taken back below */
	gate->source_arg = &runs;
	if (o->action == SP_FLEET_DIFF && !gate->json && !gate->csv)
		sp_console_begin_page(!gate->no_pager);
	out = sp_console_open();
	sp_text_set_ascii(!sp_console_is_utf8() && !gate->json && !gate->csv);
	r = sp_fleet_db_open(db, o->url, &err);
	if (r >= 0)
		r = o->action == SP_FLEET_DIFF
			    ? sp_gate_diff(out, gate, &err)
			    : sp_gate_check(out, gate, &verdict, &err);
	code = r < 0 ? sp_console_fail_with(&err) : check_code(verdict, gate);
	close_code = sp_console_close(out);
	gate->source_arg = NULL;
	return close_code ? close_code : code;
}

static int compare_sides(const struct sp_fleet_options *o)
{
	struct sp_gate_options gate = {.n_files = 0};
	struct sp_fleet_db db = {.path = ""};
	struct sp_error err;
	int code;
	int r = o->action == SP_FLEET_DIFF
			? sp_gate_options_parse_diff(o->argc, o->argv, &gate,
						     &err)
			: sp_gate_options_parse_check(o->argc, o->argv, &gate,
						      &err);

	if (r < 0)
		code = r == -EINVAL
			       ? sp_console_fail_usage(err.message, "fleet")
			       : sp_console_fail_with(&err);
	else if (gate.update || gate.evidence)
		code = sp_console_fail_usage("fleet check cannot be used with "
					     "--update-baseline or --evidence",
					     "fleet");
	else
		code = run_gate(o, &gate, &db);
	sp_gate_options_done(&gate);
	sp_fleet_db_close(&db);
	return code;
}

static int run_action(const struct sp_fleet_options *o)
{
	switch (o->action) {
	case SP_FLEET_INIT:
		return init_database(o);
	case SP_FLEET_ADD:
		return add_files(o);
	case SP_FLEET_WATCH:
		return watch_directory(o);
	case SP_FLEET_PAGE:
	case SP_FLEET_LIVE:
		return print_page(o);
	case SP_FLEET_EXPORT:
		return export_fleet(o);
	case SP_FLEET_DIFF:
	case SP_FLEET_CHECK:
		return compare_sides(o);
	}
	return EXIT_USAGE;
}

int run_fleet(int argc, char **argv)
{
	struct sp_fleet_options options;
	struct sp_error err;
	int code;

	code = sp_console_parsed(
		sp_fleet_options_parse(argc, argv, &options, &err), &err,
		&sp_fleet_line, "fleet");
	if (code < 0)
		code = run_action(&options);
	sp_fleet_options_done(&options);
	return code;
}
