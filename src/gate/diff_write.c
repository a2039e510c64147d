/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "gate/diff.h"
#include "gate/figures.h"
#include "report/export_csv.h"
#include "report/json.h"

/* ---- text ---- */

static void print_side(FILE *out, const char *name, const char *program,
		       size_t n, uint64_t period_bytes)
{
	fprintf(out, "%s  ", name);
	sp_text_print(out, program);
	fprintf(out, ", %zu run%s, period %s\n", n, sp_text_plural(n),
		sp_text_size(period_bytes).text);
}

static void print_notes(FILE *out, const struct sp_diff *d)
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
	if (d->n_old == 1 && d->n_new == 1)
		fputs("note: one run on each side: intervals are of the "
		      "sampling, the program's own\n"
		      "      noise between runs is not in them\n",
		      out);
}

void sp_diff_totals_write(FILE *out, const struct sp_diff *d)
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

static void print_rows(FILE *out, const struct sp_diff_row *rows, size_t n,
		       uint64_t top, const char *what)
{
	const size_t shown = top && top < n ? (size_t)top : n;
	char samples[48];

	if (!n)
		return;
	fprintf(out, "\n%11s %11s   %12s %9s  %-24s %11s  %s\n", "old", "new",
		"change", "percent", "interval", "samples", what);
	for (size_t i = 0; i < shown; i++) {
		const struct sp_diff_row *r = &rows[i];

		snprintf(samples, sizeof(samples), "%" PRIu64 "/%" PRIu64,
			 r->old_samples, r->new_samples);
		fprintf(out, "%11s %11s %c %12s %9s  %-24s %11s  ",
			sp_figure(r->old.value, true).text,
			sp_figure(r->new.value, true).text,
			r->is_told || !(r->change.lo < r->change.hi) ? ' '
								     : '~',
			sp_figure_change(r->change.value, true).text,
			sp_figure_percent(r->old.value, r->new.value).text,
			sp_figure_interval(r->change, true, true).text,
			samples);
		sp_text_print(out, r->name);
		putc('\n', out);
	}
	if (shown < n)
		fprintf(out, "and %zu more\n", n - shown);
}

static size_t count_told(const struct sp_diff_row *rows, size_t n)
{
	size_t told = 0;

	while (told < n && rows[told].is_told)
		told++;
	return told;
}

void sp_diff_text_write(FILE *out, const struct sp_diff *d, uint64_t top,
			bool has_stacks, uint64_t stacks)
{
	print_side(out, "OLD", d->old_program, d->n_old, d->old_period_bytes);
	print_side(out, "NEW", d->new_program, d->n_new, d->new_period_bytes);
	print_notes(out, d);
	sp_diff_totals_write(out, d);
	print_rows(out, d->functions, d->n_functions, top, "function (flat)");
	if (has_stacks)
		print_rows(out, d->paths, d->n_paths, stacks, "call path");
	fprintf(out,
		"\n%s: %zu of %zu functions changed; percent is of the old "
		"value of the row,\n"
		"the interval at %s that of the change.  ~ cannot be told "
		"from noise: of the\n"
		"rows without it, %s at most are expected to be wrong.\n",
		sp_view_name(d->view), count_told(d->functions, d->n_functions),
		d->n_functions, sp_text_level(d->level).text,
		sp_text_level(1 - d->level).text);
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

static void put_rows(struct sp_json *json, const char *key,
		     const struct sp_diff_row *rows, size_t n)
{
	sp_json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		const struct sp_diff_row *r = &rows[i];

		sp_json_open(json, NULL, '{');
		sp_json_string(json, "name", r->name);
		sp_json_interval(json, "old", r->old);
		sp_json_interval(json, "new", r->new);
		sp_json_interval(json, "change", r->change);
		sp_json_u64(json, "old_samples", r->old_samples);
		sp_json_u64(json, "new_samples", r->new_samples);
		sp_json_bool(json, "is_told", r->is_told);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

static void put_totals(struct sp_json *json, const struct sp_diff *d)
{
	sp_json_open(json, "totals", '{');
	for (size_t i = 0; i < d->n_totals; i++) {
		const struct sp_diff_total *t = &d->totals[i];

		sp_json_open(json, t->name, '{');
		sp_json_bool(json, "is_exact", t->is_exact);
		sp_json_interval(json, "old", t->old);
		sp_json_interval(json, "new", t->new);
		sp_json_interval(json, "change", t->change);
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
	put_rows(&json, "functions", d->functions, d->n_functions);
	put_rows(&json, "paths", d->paths, d->n_paths);
	sp_json_close(&json, '}');
	putc('\n', out);
}

/* ---- CSV ---- */

void sp_diff_csv_write(FILE *out, const struct sp_diff *d)
{
	fputs("function,old_bytes,new_bytes,change_bytes,change_lo,change_hi,"
	      "old_samples,new_samples,is_told\n",
	      out);
	for (size_t i = 0; i < d->n_functions; i++) {
		const struct sp_diff_row *r = &d->functions[i];

		sp_export_csv_text(out, r->name);
		fprintf(out,
			",%.0f,%.0f,%.0f,%.0f,%.0f,%" PRIu64 ",%" PRIu64
			",%d\n",
			r->old.value, r->new.value, r->change.value,
			r->change.lo, r->change.hi, r->old_samples,
			r->new_samples, r->is_told);
	}
}
