/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <string.h>

#include "report/sourcefile.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "view/view_row.h"

#define MARGIN    4 /* lines around those with samples */
#define LINE_MAX  160
#define LINE_MIN  8 /* however narrow the screen is */
#define TAB_WIDTH 4

/* Of the number of a line. */
#define LINE_DIGITS 5

/* Of a cell with its interval, and without, on a screen that is narrower than
 * that. */
#define CELL_WIDTH       31
#define CELL_NARROW      10
#define INTERVAL_COLUMNS 120

struct list {
	FILE *out;
	int cell_width;
	int source_columns;
	const struct sp_estimation *how;
	bool has_few;
};

static void print_cell(struct list *list, const struct sp_class_sums *sums)
{
	struct sp_text_estimate e = sp_text_estimate(
		sp_estimate_bytes(list->how, sums), sums->all.samples);
	char joined[2 * sizeof(e.first.text)] = ".";

	if (sums->all.samples && list->cell_width == CELL_WIDTH)
		snprintf(joined, sizeof(joined), "%s%s%s", e.first.text,
			 *e.second.text ? " " : "", e.second.text);
	else if (sums->all.samples)
		snprintf(joined, sizeof(joined), "%s",
			 e.order == SP_TEXT_INTERVAL_FIRST ? e.second.text
							   : e.first.text);
	list->has_few |= sums->all.samples && e.order == SP_TEXT_INTERVAL_FIRST;
	fprintf(list->out, "  %*s", list->cell_width, joined);
}

/* Untrusted text, one line of it, with tabs as blanks; never broken. */
static void print_source(const struct list *list, const char *text, size_t n)
{
	static const char more[] = " ...";
	char line[LINE_MAX + TAB_WIDTH + sizeof(more)];
	const size_t room = (size_t)list->source_columns;
	size_t used = 0, i = 0;

	for (; i < n && used <= room; i++) {
		if (text[i] != '\t') {
			/* A NUL would end the line. */
			line[used++] = text[i] ? text[i] : '?';
			continue;
		}
		do
			line[used++] = ' ';
		while (used % TAB_WIDTH);
	}
	line[used] = '\0';
	if (used > room)
		strcpy(line + room - strlen(more), more);
	sp_lines_print_name(list->out, line);
}

static void print_line(struct list *list, const struct sp_sourcefile *source,
		       uint32_t number,
		       const struct sp_aggregate_function *line)
{
	static const struct sp_class_sums nothing = {.n_classes = 0};
	const char *text;
	size_t n;

	print_cell(list, line ? &line->flat : &nothing);
	print_cell(list, line ? &line->cum : &nothing);
	if (number)
		fprintf(list->out, "  %*" PRIu32 "  ", LINE_DIGITS, number);
	else
		fprintf(list->out, "  %*s  ", LINE_DIGITS, "?");
	if (source && number && number <= sp_sourcefile_lines(source)) {
		text = sp_sourcefile_line(source, number, &n);
		print_source(list, text, n);
	}
	putc('\n', list->out);
}

/* The lines with samples, those around them, and dots for lines left out. */
static void print_lines(struct list *list, const struct sp_sourcefile *source,
			const struct sp_listing *l)
{
	const uint32_t n_source = source ? sp_sourcefile_lines(source) : 0;
	uint32_t next = 1; /* to be printed */

	for (size_t i = 0; i < l->n_lines; i++) {
		const uint32_t at = l->lines[i]->line;
		const uint32_t end =
			i + 1 < l->n_lines ? l->lines[i + 1]->line : UINT32_MAX;
		const uint32_t from = at > MARGIN ? at - MARGIN : 1;

		if (from > next) {
			next = from;
			if (i && n_source)
				fputs("  ...\n", list->out);
		}
		for (; next < at && next <= n_source; next++)
			print_line(list, source, next, NULL);
		print_line(list, source, at, l->lines[i]);
		for (next = at + 1; at && next < end && next <= at + MARGIN &&
				    next <= n_source;
		     next++)
			print_line(list, source, next, NULL);
	}
}

/* A file of Python's own, on the machine where it ran: all that a false profile
 * could show is another program in Python. */
static bool is_script_here(const struct sp_listing *l,
			   const struct sp_profile *profile)
{
	const size_t n = strlen(l->file);

	return strcmp(l->function->module, SP_FORMAT_PYTHON) == 0 && n > 3 &&
	       strcmp(l->file + n - 3, ".py") == 0 &&
	       sp_profile_is_of_this_host(profile);
}

/* Does the profile alone name its file? */
static bool is_embedded(const struct sp_listing *l)
{
	for (size_t i = 0; i < l->n_lines; i++)
		if (l->lines[i]->is_embedded)
			return true;
	return false;
}

static void print_listing(struct list *list, const struct sp_aggregate *a,
			  const struct sp_listing *l, const char *source_path)
{
	const struct sp_aggregate_function *f = l->function;
	const double whole =
		sp_estimate_bytes_value(&a->how, a->analysis->whole);
	struct sp_sourcefile *source = NULL;
	struct sp_error err = {.message = "unknown"};

	fputc('\n', list->out);
	sp_view_row_name(list->out, SP_BY_FUNCTION, f);
	fputs("\n  in ", list->out);
	sp_lines_print_name(list->out, l->file ? l->file : "an unknown file");
	/* A profile must not choose which files are read. */
	if (l->file)
		sp_sourcefile_new(
			l->file, source_path,
			!is_embedded(l) ||
				is_script_here(l, a->analysis->profile),
			&source, &err);
	if (l->file && !source)
		fprintf(list->out, ": %s", err.message);
	else if (source && sp_sourcefile_changed_ns(source) >
				   a->analysis->profile->start_unix_ns)
		fputs(": changed since the process began", list->out);
	fprintf(list->out, "\n  the function: %s flat, %s cum\n",
		sp_text_percent(f->flat_bytes, whole).text,
		sp_text_percent(f->cum_bytes, whole).text);
	print_lines(list, source, l);
	sp_sourcefile_free(source);
}

void sp_view_list_print(FILE *out, const struct sp_aggregate *functions,
			const struct sp_listings *listings,
			const char *source_path)
{
	const unsigned int columns = sp_lines_columns();
	struct list list = {
		.out = out,
		.how = &functions->how,
		.cell_width =
			columns < INTERVAL_COLUMNS ? CELL_NARROW : CELL_WIDTH,
	};
	const int before = 2 * (list.cell_width + 2) + LINE_DIGITS + 4;

	list.source_columns = LINE_MAX;
	if ((int)columns < before + LINE_MAX)
		list.source_columns = (int)columns - before > LINE_MIN
					      ? (int)columns - before
					      : LINE_MIN;
	fprintf(out, "\nSource lines; %% %s%s:\n\n",
		sp_view_row_whole(functions->analysis->selection.view),
		list.cell_width == CELL_WIDTH
			? ""
			: "; intervals: 120 columns or --json");
	sp_style_begin(out, SP_STYLE_HEAD);
	fprintf(out, "  %*s  %*s  %*s", list.cell_width, "flat",
		list.cell_width, "cum", LINE_DIGITS, "line");
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc('\n', out);
	for (size_t i = 0; i < listings->n_listings; i++)
		print_listing(&list, functions, &listings->listings[i],
			      source_path);
	sp_text_print_legend(out, list.has_few, false,
			     functions->how.confidence);
}
