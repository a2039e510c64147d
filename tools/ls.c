/* SPDX-License-Identifier: MIT */
/* sampleprof ls: the profiles in a directory. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/files.h"
#include "text/figures.h"
#include "text/lack.h"
#include "text/table.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/recordings.h"

/* Of a date and of a time of day in sp_text_time(). */
#define DATE_BYTES 10
#define TIME_AT    11
#define TIME_BYTES 8

#define END_COLUMNS    SP_LACK_WORD_COLUMNS
#define FIGURE_COLUMNS (59 + END_COLUMNS)

struct ls_options {
	bool json, csv; /* not both */
};

static const struct sp_argument arguments[] = {
	SP_ARGUMENT_FLAG(struct ls_options, "json", json, "everything as JSON"),
	SP_ARGUMENT_FLAG(struct ls_options, "csv", csv, "the same as CSV"),
	{0}};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line ls_line = {
	.forms = "ls [OPTION]... [DIR]",
	.about = "List the profiles in a directory, here by default, in the "
		 "order in which their\n"
		 "processes began: process id and parent, start (UTC), how "
		 "long it ran, bytes\n"
		 "allocated (exact), bytes alive at the end (estimated), how "
		 "it ended. Behind the\n"
		 "file is what its name does not tell: the process's own "
		 "title, its program, or\n"
		 "its arguments.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0},
						   {&sp_arguments_about, 0},
						   {0}},
	.ending = "Labels (SAMPLEPROF_LABELS) have a line of their "
		  "own.\n\nExit status: 0 fine, 1 error, 2 usage.\n",
};

static struct sp_text_cell end_word(const struct recording *r)
{
	return sp_lack_word(r->end, r->end_kind, r->is_cut);
}

static struct sp_text_cell live_cell(const struct recording *r)
{
	struct sp_text_cell cell = {"-"};

	if (!r->has_live)
		return cell;
	if (r->live_is_unknown || !isfinite(r->live_bytes.hi))
		return (struct sp_text_cell){"unknown"};
	if (r->live_samples)
		return sp_text_bytes(r->live_bytes.value);
	return sp_text_estimate(r->live_bytes, 0).first;
}

static void print_figures(const struct recording *r)
{
	char parent[24] = "-";

	if (r->parent)
		snprintf(parent, sizeof(parent), "%" PRIu64, r->parent);
	printf("%7" PRIu64 " %7s %.*s %10s %11s%c %10s%c %s", r->pid, parent,
	       TIME_BYTES, sp_text_time(r->start_unix_ns).text + TIME_AT,
	       sp_text_duration(r->duration_ns).text,
	       sp_figure_total(r->alloc_bytes, r->is_exact).text,
	       r->is_exact ? ' ' : '+', live_cell(r).text,
	       r->has_live && r->unseen ? '+' : ' ', end_word(r).text);
}

/* What the name of the file does not say: another name, or the arguments, which
 * tell the commands of git apart.  NULL: nothing. */
static const char *other_name(const struct recording *r)
{
	const char *file = sp_text_base_name(r->path);

	if (r->title)
		return r->title;
	return strncmp(file, r->program, strlen(r->program)) != 0
		       ? r->program
		       : r->arguments;
}

#define AROUND_OTHER (sizeof("  ()") - 1)
#define OTHER_MIN    12 /* however long the name of the file is */

/* Beside the figures it has half of the screen at most. */
static size_t other_columns(const char *other)
{
	const size_t most = sp_console_width() / 2, n = strlen(other);

	return n < most ? n : most;
}

/* Columns that the widest name takes, below the directory. */
static size_t name_columns(const struct recordings *all, size_t skip)
{
	size_t widest = 0;

	for (size_t i = 0; i < all->n; i++) {
		const char *other = other_name(&all->list[i]);
		size_t n = strlen(all->list[i].path + skip);

		if (other)
			n += other_columns(other) + AROUND_OTHER;
		if (n > widest)
			widest = n;
	}
	return widest;
}

/* `before`: columns in front of it. */
static void print_name(const struct recording *r, size_t skip, size_t before)
{
	const char *other = other_name(r);
	const size_t width = sp_console_width();
	size_t columns;

	sp_text_print(stdout, r->path + skip);
	before += strlen(r->path + skip) + AROUND_OTHER;
	if (other) {
		columns = other_columns(other);
		if (before + columns > width)
			columns = width > before + OTHER_MIN ? width - before
							     : OTHER_MIN;
		fputs("  (", stdout);
		sp_console_print_cut(stdout, other, (unsigned int)columns);
		putchar(')');
	}
	putchar('\n');
}

/* Below the figures, in lines of the terminal's width. */
static void print_labels(const struct recording *r)
{
	if (!r->labels)
		return;
	fputs("        ", stdout);
	sp_console_print_cut(stdout, r->labels, sp_console_width() - 8);
	putchar('\n');
}

/* Names have lines of their own where not all of them fit. */
static void print_recordings(const struct recordings *all, size_t skip)
{
	const bool is_wide = FIGURE_COLUMNS + 2 + name_columns(all, skip) <=
			     sp_console_width();
	char date[DATE_BYTES + 1] = "";
	bool is_unseen[SP_UNSEEN_OFF + 1] = {false};
	bool has_at_least = false;

	printf("%7s %7s %-8s %10s %11s  %10s  end%s\n", "pid", "parent",
	       "start", "ran", "allocated", "live",
	       is_wide ? "       file" : "");
	for (size_t i = 0; i < all->n; i++) {
		const struct recording *r = &all->list[i];
		const struct sp_text_cell start =
			sp_text_time(r->start_unix_ns);

		if (strncmp(date, start.text, DATE_BYTES) != 0) {
			snprintf(date, sizeof(date), "%.*s", DATE_BYTES,
				 start.text);
			printf("%s\n", date);
		}
		print_figures(r);
		if (is_wide)
			printf("%*s",
			       END_COLUMNS + 2 - (int)strlen(end_word(r).text),
			       "");
		else
			fputs("\n        ", stdout);
		print_name(r, skip, is_wide ? FIGURE_COLUMNS + 2 : 8);
		print_labels(r);
		has_at_least |= !r->is_exact;
		is_unseen[r->unseen] |= r->has_live;
	}
	if (has_at_least)
		puts("+ allocated: at least; the last counts are missing, or "
		     "the file is cut");
	for (enum sp_unseen i = SP_UNSEEN_FORK; i <= SP_UNSEEN_OFF; i++)
		if (is_unseen[i])
			printf("+ live: without %s\n", sp_lack_unseen(i));
}

/* ---- for programs ---- */

struct row {
	struct recording is;
	const char *word;
	bool live_lacks;
};

#define RECORDING(kind, key, member)                                           \
	SP_TABLE_COLUMN(struct row, kind, key, member)

static const struct sp_table_column columns[] = {
	RECORDING(TEXT, "file", is.path),
	RECORDING(TEXT, "program", is.program),
	RECORDING(TEXT, "title", is.title),
	RECORDING(TEXT, "arguments", is.arguments),
	RECORDING(TEXT, "labels", is.labels),
	RECORDING(U64, "pid", is.pid),
	RECORDING(NONZERO, "parent", is.parent),
	RECORDING(U64, "start_unix_ns", is.start_unix_ns),
	RECORDING(U64, "duration_ns", is.duration_ns),
	RECORDING(TEXT, "end", word),
	RECORDING(U64, "alloc_bytes", is.alloc_bytes),
	RECORDING(BOOL, "alloc_is_exact", is.is_exact),
	RECORDING(INTERVAL, "live_bytes", is.live_bytes),
	RECORDING(U64, "live_samples", is.live_samples),
	RECORDING(BOOL, "live_lacks_some", live_lacks),
	{0},
};

/* Live bytes are null, or empty, where frees were not recorded. */
static void write_recordings(const struct recordings *all, bool as_json)
{
	struct sp_table table;

	sp_table_begin(&table, stdout, columns, as_json);
	for (size_t i = 0; i < all->n; i++) {
		const struct sp_text_cell end = end_word(&all->list[i]);
		struct row row = {.is = all->list[i], .word = end.text};

		row.live_lacks = row.is.has_live && row.is.unseen;
		if (!row.is.has_live)
			row.is.live_bytes = (struct sp_interval){NAN, NAN, NAN};
		sp_table_row(&table, &row);
	}
	sp_table_end(&table);
}

static int list_directory(const char *name, const struct ls_options *options)
{
	char dir[SP_LAUNCH_PATH_MAX];
	struct recordings all;
	struct sp_error err;
	struct stat status;

	if (stat(name, &status) == 0 && S_ISREG(status.st_mode)) {
		sp_error_set(
			&err, -ENOTDIR, name,
			"no directory: `sampleprof report` shows a profile");
		return sp_console_fail_with(&err);
	}
	snprintf(dir, sizeof(dir), "%s%s", name,
		 *name && name[strlen(name) - 1] != '/' ? "/" : "");
	if (recordings_find(dir, 0, NULL, &all, &err) < 0)
		return sp_console_fail_with(&err);
	if (all.n)
		qsort(all.list, all.n, sizeof(*all.list), recordings_by_start);
	if (options->json || options->csv) {
		write_recordings(&all, options->json);
	} else if (all.n) {
		print_recordings(&all, strlen(dir));
	} else {
		fprintf(stderr, "%s: no profile in ", sp_console_program());
		sp_text_print(stderr, *name ? name : "this directory");
		putc('\n', stderr);
	}
	recordings_free(&all);
	return sp_console_finish();
}

int run_ls(int argc, char **argv)
{
	struct ls_options options = {0};
	const char *const *words;
	size_t n;
	int code;

	code = sp_console_parse(&ls_line, "ls", argc, argv, &options, &words,
				&n);
	if (code >= 0)
		return code;
	if (n > 1)
		return sp_console_fail_usage("ls takes one directory", "ls");
	if (options.json && options.csv)
		return sp_console_fail_usage("--json or --csv, not both", "ls");
	return list_directory(n ? words[0] : "", &options);
}
