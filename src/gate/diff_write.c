/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "compare/diff.h"
#include "compare/figures.h"
#include "text/json.h"
#include "text/lines.h"
#include "view/view_csv.h"

/* ---- text ---- */

static void print_side(FILE *out, const char *name, const char *program,
		       size_t n, uint64_t period_bytes)
{
	fprintf(out, "%s  ", name);
	sp_text_print(out, program);
	fprintf(out, ", %zu run%s, period %s\n", n, sp_text_plural(n),
		sp_text_size(period_bytes).text);
}

static void write_notes(FILE *out, const struct sp_diff *d)
{
	for (size_t i = 0; i < d->comparable.n_notes; i++) {
		fputs("note: ", out);
		sp_text_print(out, d->comparable.note[i]);
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
			"%zu row%s marked ? %s what callers or callees had "
			"before\n",
			d->n_moved, sp_text_plural(d->n_moved),
			d->n_moved == 1 ? "has" : "have");
	if (d->n_old == 1 && d->n_new == 1)
		fputs("note: one run on each side: intervals are of the "
		      "sampling, the program's own noise between runs is not "
		      "in them\n",
		      out);
}

static void print_notes(FILE *out, const struct sp_diff *d)
{
	char *lines = NULL;
	size_t size;
	FILE *text = open_memstream(&lines, &size);

	if (text)
		write_notes(text, d);
	if (!text || sp_lines_close(out, text, &lines) < 0)
		write_notes(out, d);
}

static void print_totals(FILE *out, const struct sp_diff *d)
{
	for (size_t i = 0; i < d->n_totals; i++) {
		const struct sp_diff_total *t = &d->totals[i];
		const bool is_told = t->change.lo > 0 || t->change.hi < 0 ||
				     t->change.lo == t->change.hi;

		fprintf(out, "%-6s %-16s %12s -> %-12s %c %12s %9s  %s\n",
			t->is_exact ? "EXACT" : "est.", t->name,
			sp_figure(t->old.value, t->is_bytes).text,
			sp_figure(t->new.value, t->is_bytes).text,
			is_told ? ' ' : '~',
			sp_figure_change(t->change.value, t->is_bytes).text,
			sp_figure_percent(t->old.value, t->new.value).text,
			sp_figure_interval(t->change, t->is_bytes, true).text);
	}
}

/* Beyond this a line of a tree is all blanks. */
#define INDENT_MAX 60

static void print_row(FILE *out, const struct sp_diff_table *t,
		      const struct sp_diff_row *r)
{
	char samples[48] = "";

	if (!t->is_exact)
		snprintf(samples, sizeof(samples), "%" PRIu64 "/%" PRIu64,
			 r->old_samples, r->new_samples);
	fprintf(out, "%11s %11s %c %12s %9s  %-24s %11s  ",
		sp_figure(r->old.value, t->is_bytes).text,
		sp_figure(r->new.value, t->is_bytes).text,
		!r->is_comparable                              ? '?'
		: r->is_told || !(r->change.lo < r->change.hi) ? ' '
							       : '~',
		sp_figure_change(r->change.value, t->is_bytes).text,
		r->is_comparable
			? sp_figure_percent(r->old.value, r->new.value).text
			: "?",
		sp_figure_interval(r->change, t->is_bytes, true).text, samples);
	fprintf(out, "%*s", r->indent < INDENT_MAX ? r->indent : INDENT_MAX,
		"");
	if (r->of)
		fputs(strcmp(r->kind, "function") == 0 ? "* " : "  ", out);
	sp_text_print(out, r->name);
	putc('\n', out);
}

/* Of edges: is it about another function than the row before? */
static bool is_next(const struct sp_diff_row *rows, size_t i)
{
	return i && rows[i].of && strcmp(rows[i].of, rows[i - 1].of) != 0;
}

static void print_table(FILE *out, const struct sp_diff_table *t)
{
	const size_t shown =
		t->shown && t->shown < t->n ? (size_t)t->shown : t->n;

	if (!t->n && !t->n_small)
		return;
	fprintf(out, "\n%11s %11s   %12s %9s  %-24s %11s  %s\n", "old", "new",
		"change", "percent", "interval", t->is_exact ? "" : "samples",
		t->what);
	for (size_t i = 0; i < shown; i++) {
		if (is_next(t->rows, i))
			putc('\n', out);
		print_row(out, t, &t->rows[i]);
	}
	if (shown < t->n)
		fprintf(out, "and %zu more\n", t->n - shown);
	if (t->n_small)
		fprintf(out,
			"and %zu with little on both sides "
			"(--nodefraction 0 shows all)\n",
			t->n_small);
}

/* "3 of 60 functions" */
static void print_told(FILE *out, const struct sp_diff_table *t)
{
	size_t told = 0;

	for (size_t i = 0; i < t->n; i++)
		told += t->rows[i].is_told;
	fprintf(out, "%zu of %zu %s", told, t->n, t->noun);
}

static void print_foot(FILE *out, const struct sp_diff *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_tables; i++)
		if (!d->tables[i].is_exact) {
			fputs(n++ ? ", " : "\n", out);
			if (n == 1)
				fprintf(out, "%s: ", sp_view_name(d->view));
			print_told(out, &d->tables[i]);
		}
	if (!n) {
		fputs("\npercent is of the old value of the row\n", out);
		return;
	}
	fprintf(out,
		" changed\n"
		"percent is of the old value of the row, the interval at %s "
		"that of the change;\n"
		"~ cannot be told from noise: of the rows without it, %s at "
		"most are expected to\n"
		"be wrong\n",
		sp_text_level(d->level).text, sp_text_level(1 - d->level).text);
}

void sp_diff_text_write(FILE *out, const struct sp_diff *d)
{
	print_side(out, "OLD", d->old_program, d->n_old, d->old_period_bytes);
	print_side(out, "NEW", d->new_program, d->n_new, d->new_period_bytes);
	print_notes(out, d);
	print_totals(out, d);
	for (size_t i = 0; i < d->n_tables; i++)
		print_table(out, &d->tables[i]);
	print_foot(out, d);
}

/* ---- JSON ---- */

static void put_side(struct sp_json *json, const char *key, const char *program,
		     size_t n, uint64_t period_bytes)
{
	sp_json_open_flat(json, key, '{');
	sp_json_string(json, "program", program);
	sp_json_u64(json, "runs", n);
	sp_json_u64(json, "period_bytes", period_bytes);
	sp_json_close(json, '}');
}

static void put_intervals(struct sp_json *json, struct sp_interval old,
			  struct sp_interval new, struct sp_interval change)
{
	sp_json_interval(json, "old", old);
	sp_json_interval(json, "new", new);
	sp_json_interval(json, "change", change);
}

static void put_row(struct sp_json *json, const struct sp_diff_table *t,
		    const struct sp_diff_row *r)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "name", r->name);
	if (r->kind)
		sp_json_string(json, "kind", r->kind);
	if (r->of)
		sp_json_string(json, "of", r->of);
	else if (r->kind)
		sp_json_u64(json, "depth", r->depth);
	put_intervals(json, r->old, r->new, r->change);
	if (!t->is_exact) {
		sp_json_u64(json, "old_samples", r->old_samples);
		sp_json_u64(json, "new_samples", r->new_samples);
	}
	sp_json_bool(json, "is_told", r->is_told);
	sp_json_bool(json, "is_comparable", r->is_comparable);
	sp_json_close(json, '}');
}

static void put_table(struct sp_json *json, const struct sp_diff_table *t)
{
	sp_json_open(json, t->key, '[');
	for (size_t i = 0; i < t->n; i++)
		put_row(json, t, &t->rows[i]);
	sp_json_close(json, ']');
}

static void put_totals(struct sp_json *json, const struct sp_diff *d)
{
	sp_json_open(json, "totals", '{');
	for (size_t i = 0; i < d->n_totals; i++) {
		const struct sp_diff_total *t = &d->totals[i];

		sp_json_open(json, t->name, '{');
		sp_json_bool(json, "is_exact", t->is_exact);
		put_intervals(json, t->old, t->new, t->change);
		sp_json_close(json, '}');
	}
	sp_json_close(json, '}');
}

void sp_diff_json_write(FILE *out, const struct sp_diff *d)
{
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open(&json, NULL, '{');
	put_side(&json, "old", d->old_program, d->n_old, d->old_period_bytes);
	put_side(&json, "new", d->new_program, d->n_new, d->new_period_bytes);
	sp_json_open(&json, "notes", '[');
	for (size_t i = 0; i < d->comparable.n_notes; i++)
		sp_json_string(&json, NULL, d->comparable.note[i]);
	sp_json_close(&json, ']');
	sp_json_open(&json, "renamed", '[');
	for (size_t i = 0; i < d->n_renamed; i++)
		sp_json_string(&json, NULL, d->renamed[i]);
	sp_json_close(&json, ']');
	sp_json_string(&json, "view", sp_view_name(d->view));
	sp_json_double(&json, "confidence", d->level);
	put_totals(&json, d);
	for (size_t i = 0; i < d->n_tables; i++)
		put_table(&json, &d->tables[i]);
	sp_json_close(&json, '}');
	putc('\n', out);
}

/* ---- CSV ---- */

static void put_csv_row(FILE *out, const struct sp_diff_table *t,
			const struct sp_diff_row *r)
{
	fprintf(out, "%s,%s,%" PRIu32 ",", t->key, r->kind ? r->kind : "",
		r->depth);
	sp_view_csv_text(out, r->of ? r->of : "");
	putc(',', out);
	sp_view_csv_text(out, r->name);
	fprintf(out,
		",%.0f,%.0f,%.0f,%.0f,%.0f,%" PRIu64 ",%" PRIu64 ",%d,%d\n",
		r->old.value, r->new.value, r->change.value, r->change.lo,
		r->change.hi, r->old_samples, r->new_samples, r->is_told,
		r->is_comparable);
}

void sp_diff_csv_write(FILE *out, const struct sp_diff *d)
{
	fputs("table,kind,depth,of,name,old,new,change,change_lo,change_hi,"
	      "old_samples,new_samples,is_told,is_comparable\n",
	      out);
	for (size_t i = 0; i < d->n_tables; i++)
		for (size_t k = 0; k < d->tables[i].n; k++)
			put_csv_row(out, &d->tables[i], &d->tables[i].rows[k]);
}
