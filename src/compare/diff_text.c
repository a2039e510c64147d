/* SPDX-License-Identifier: MIT */
/* A comparison for people: totals and tables, as wide as the screen. */
#include <inttypes.h>
#include <string.h>

#include "compare/diff.h"
#include "compare/summary.h"
#include "text/figures.h"
#include "text/lines.h"
#include "text/style.h"

static void print_side(FILE *out, const char *name, const char *program,
		       size_t n, uint64_t period_bytes,
		       const struct sp_run_part *part)
{
	fprintf(out, "%s  ", name);
	sp_lines_print_name(out, program);
	fprintf(out, ", %zu run%s, period %s", n, sp_text_plural(n),
		sp_text_size(period_bytes).text);
	if (part->from_ns)
		fprintf(out, ", from %s on",
			sp_text_moment(part->from_ns).text);
	if (part->to_ns)
		fprintf(out, ", before %s", sp_text_moment(part->to_ns).text);
	if (part->at_ns)
		fprintf(out, ", at %s", sp_text_moment(part->at_ns).text);
	putc('\n', out);
}

static void print_notes(FILE *out, const struct sp_diff *d)
{
	for (size_t i = 0; i < d->caveats.n_notes; i++) {
		fputs("note: ", out);
		sp_text_print(out, d->caveats.note[i]);
		putc('\n', out);
	}
	for (size_t i = 0; i < d->n_renamed; i++) {
		fputs("note: taken for renamed: ", out);
		sp_text_print(out, d->renamed[i]);
		putc('\n', out);
	}
	if (d->n_moved)
		fprintf(out,
			"note: other inlining, build flags or code that moved: "
			"%zu row%s marked ? %s bytes that callers or callees "
			"had before\n",
			d->n_moved, sp_text_plural(d->n_moved),
			d->n_moved == 1 ? "has" : "have");
	if (d->n_old == 1 && d->n_new == 1)
		fputs("note: one run on each side: intervals contain the noise "
		      "of sampling, not the noise between runs of the "
		      "program\n",
		      out);
}

/* ---- rows of figures ---- */

enum column { OLD, NEW, CHANGE, PERCENT, INTERVAL, SAMPLES, N_COLUMNS };

static const char *const titles[N_COLUMNS] = {
	[OLD] = "old",         [NEW] = "new",           [CHANGE] = "change",
	[PERCENT] = "percent", [INTERVAL] = "interval", [SAMPLES] = "samples",
};

/* What a narrow screen goes without, the first of them first, so that this much
 * of a name can be seen. */
#define NAME_MIN 30
static const enum column dispensable[] = {SAMPLES, PERCENT, OLD};

#define GAP        2
#define MARK_WIDTH 2 /* before the change */

struct figures {
	struct sp_text_cell cells[N_COLUMNS];
	char mark;
};

struct layout {
	int widths[N_COLUMNS]; /* 0: not shown */
};

static struct figures take_figures(struct sp_interval old,
				   struct sp_interval new,
				   struct sp_interval change, bool is_bytes)
{
	return (struct figures){
		.cells = {[OLD] = sp_figure(old.value, is_bytes),
			  [NEW] = sp_figure(new.value, is_bytes),
			  [CHANGE] = sp_figure_change(change.value, is_bytes),
			  [PERCENT] = sp_figure_percent(old.value, new.value),
			  [INTERVAL] =
				  sp_figure_interval(change, is_bytes, true)},
		.mark = ' ',
	};
}

static struct figures take_total(const struct sp_diff_total *t)
{
	struct figures f = take_figures(t->old, t->new, t->change, t->is_bytes);

	if (t->change.lo <= 0 && t->change.hi >= 0 &&
	    t->change.lo < t->change.hi)
		f.mark = '~';
	return f;
}

static struct figures take_row(const struct sp_diff_table *t,
			       const struct sp_diff_row *r)
{
	struct figures f = take_figures(r->old, r->new, r->change, t->is_bytes);

	if (!r->is_comparable) {
		f.mark = '?';
		strcpy(f.cells[PERCENT].text, "?");
	} else if (!r->is_told && r->change.lo < r->change.hi) {
		f.mark = '~';
	}
	if (!t->is_exact)
		snprintf(f.cells[SAMPLES].text, sizeof(f.cells[SAMPLES].text),
			 "%" PRIu64 "/%" PRIu64, r->old_samples,
			 r->new_samples);
	return f;
}

static void widen_layout(struct layout *layout, const struct figures *f)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		const int n = (int)strlen(f->cells[i].text);

		if (n > layout->widths[i])
			layout->widths[i] = n;
	}
}

/* Columns without a figure stay without a title. */
static void widen_for_titles(struct layout *layout)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		const int n = (int)strlen(titles[i]);

		if (layout->widths[i] && n > layout->widths[i])
			layout->widths[i] = n;
	}
}

static int width_of(const struct layout *layout)
{
	int width = MARK_WIDTH;

	for (int i = 0; i < N_COLUMNS; i++)
		if (layout->widths[i])
			width += layout->widths[i] + GAP;
	return width;
}

static void narrow_layout(struct layout *layout, int name_columns)
{
	const int columns = (int)sp_lines_columns();

	for (size_t i = 0; i < sizeof(dispensable) / sizeof(*dispensable) &&
			   width_of(layout) + name_columns > columns;
	     i++)
		layout->widths[dispensable[i]] = 0;
}

static void print_figures(FILE *out, const struct layout *layout,
			  const struct figures *f)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		if (i == CHANGE)
			fprintf(out, "%c ", f->mark);
		if (layout->widths[i])
			fprintf(out, "%*s%*s", layout->widths[i],
				f->cells[i].text, GAP, "");
	}
}

static void print_titles(FILE *out, const struct layout *layout,
			 const char *what)
{
	struct figures head = {.mark = ' '};

	for (int i = 0; i < N_COLUMNS; i++)
		strcpy(head.cells[i].text, titles[i]);
	putc('\n', out);
	sp_style_begin(out, SP_STYLE_HEAD);
	print_figures(out, layout, &head);
	fputs(what, out);
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc('\n', out);
}

/* ---- tables; each says whether it has the percents ---- */

static bool print_totals(FILE *out, const struct sp_diff *d)
{
	struct layout layout = {{0}};
	size_t longest = 0;

	if (!d->n_totals)
		return false;
	for (size_t i = 0; i < d->n_totals; i++) {
		const struct figures f = take_total(&d->totals[i]);
		const size_t n = strlen(d->totals[i].name);

		longest = n > longest ? n : longest;
		widen_layout(&layout, &f);
	}
	widen_for_titles(&layout);
	narrow_layout(&layout, (int)longest);
	print_titles(out, &layout, "total");
	for (size_t i = 0; i < d->n_totals; i++) {
		const struct figures f = take_total(&d->totals[i]);

		print_figures(out, &layout, &f);
		fprintf(out, "%s\n", d->totals[i].name);
	}
	return layout.widths[PERCENT];
}

/* Beyond this a line of a tree is all blanks. */
#define INDENT_MAX 60

/* Where there is no column of percents, that is behind the name. */
static void print_appearance(FILE *out, const struct sp_diff_row *r)
{
	if (!r->is_comparable || (r->old.value > 0) == (r->new.value > 0))
		return;
	fprintf(out, "  (%s)", r->new.value > 0 ? "new" : "gone");
}

static void print_name(FILE *out, const struct sp_diff_row *r, bool has_percent)
{
	fprintf(out, "%*s", r->indent < INDENT_MAX ? r->indent : INDENT_MAX,
		"");
	if (r->of)
		fputs(strcmp(r->kind, "function") == 0 ? "* " : "  ", out);
	sp_lines_print_name(out, r->name);
	if (!has_percent)
		print_appearance(out, r);
	putc('\n', out);
}

/* Of edges: is it about another function than the row before? */
static bool is_next(const struct sp_diff_row *rows, size_t i)
{
	return i && rows[i].of && strcmp(rows[i].of, rows[i - 1].of) != 0;
}

static bool print_table(FILE *out, const struct sp_diff_table *t)
{
	const size_t shown =
		t->shown && t->shown < t->n ? (size_t)t->shown : t->n;
	struct layout layout = {{0}};

	if (!t->n && !t->n_small)
		return false;
	for (size_t i = 0; i < shown; i++) {
		const struct figures f = take_row(t, &t->rows[i]);

		widen_layout(&layout, &f);
	}
	widen_for_titles(&layout);
	narrow_layout(&layout, NAME_MIN);
	print_titles(out, &layout, t->what);
	for (size_t i = 0; i < shown; i++) {
		const struct figures f = take_row(t, &t->rows[i]);

		if (is_next(t->rows, i))
			putc('\n', out);
		print_figures(out, &layout, &f);
		print_name(out, &t->rows[i], layout.widths[PERCENT]);
	}
	if (shown < t->n)
		fprintf(out, "and %zu more\n", t->n - shown);
	if (t->n_small)
		fprintf(out,
			"and %zu with little on both sides "
			"(--nodefraction 0 shows all)\n",
			t->n_small);
	return layout.widths[PERCENT];
}

/* "3 of 60 functions", "1 of 1 function" */
static void print_told(FILE *out, const struct sp_diff_table *t)
{
	size_t told = 0;

	for (size_t i = 0; i < t->n; i++)
		told += t->rows[i].is_told;
	fprintf(out, "%zu of %zu %.*s", told, t->n,
		(int)strlen(t->noun) - (t->n == 1), t->noun);
}

static bool has_unknown_row(const struct sp_diff *d)
{
	for (size_t i = 0; i < d->n_tables; i++) {
		const struct sp_diff_table *t = &d->tables[i];
		const size_t shown =
			t->shown && t->shown < t->n ? (size_t)t->shown : t->n;

		for (size_t k = 0; k < shown; k++)
			if (strstr(t->rows[k].name, SP_PATHS_UNKNOWN))
				return true;
	}
	return false;
}

static void print_foot(FILE *out, const struct sp_diff *d, bool has_percent)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_tables; i++)
		if (!d->tables[i].is_exact) {
			fputs(n++ ? ", " : "\n", out);
			if (n == 1)
				fprintf(out, "%s: ", sp_view_name(d->view));
			print_told(out, &d->tables[i]);
		}
	if (n)
		fputs(" changed\n", out);
	if (has_percent)
		fprintf(out, "%spercent is of the old value\n", n ? "" : "\n");
	if (has_unknown_row(d))
		fputs(SP_PATHS_UNKNOWN
		      ": functions without a name, of the program or of the "
		      "module before !;\nits debug symbols, or "
		      "--debuginfod, tell them apart\n",
		      out);
	if (n)
		fprintf(out,
			"interval: of the change, at %s; ~: cannot be told "
			"from noise; of the rows\n"
			"without ~ at most %s are expected to be wrong\n",
			sp_text_level(d->level).text,
			sp_text_level(1 - d->level).text);
}

static void print_page(FILE *out, const struct sp_diff *d)
{
	bool has_percent;

	print_side(out, "OLD", d->old_program, d->n_old, d->old_period_bytes,
		   &d->old_part);
	print_side(out, "NEW", d->new_program, d->n_new, d->new_period_bytes,
		   &d->new_part);
	print_notes(out, d);
	has_percent = print_totals(out, d);
	for (size_t i = 0; i < d->n_tables; i++)
		has_percent |= print_table(out, &d->tables[i]);
	print_foot(out, d, has_percent);
}

void sp_diff_text_write(FILE *out, const struct sp_diff *d)
{
	char *lines = NULL;
	size_t size;
	FILE *text = open_memstream(&lines, &size);

	if (text) {
		sp_lines_begin_page();
		print_page(text, d);
	}
	if (!text || sp_lines_close_page(out, text, &lines) < 0)
		print_page(out, d);
}
