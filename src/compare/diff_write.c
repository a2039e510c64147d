/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "compare/diff.h"
#include "text/figures.h"
#include "text/json.h"
#include "text/table.h"

/* ---- JSON ---- */

static void put_side(struct sp_json *json, const char *key, const char *program,
		     size_t n, uint64_t period_bytes,
		     const struct sp_run_part *part)
{
	sp_json_open_flat(json, key, '{');
	sp_json_string(json, "program", program);
	sp_json_u64(json, "runs", n);
	sp_json_u64(json, "period_bytes", period_bytes);
	if (part->from_ns)
		sp_json_u64(json, "from_ns", part->from_ns);
	if (part->to_ns)
		sp_json_u64(json, "to_ns", part->to_ns);
	if (part->at_ns)
		sp_json_u64(json, "at_ns", part->at_ns);
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
	struct sp_json json = sp_json_begin(out);

	put_side(&json, "old", d->old_program, d->n_old, d->old_period_bytes,
		 &d->old_part);
	put_side(&json, "new", d->new_program, d->n_new, d->new_period_bytes,
		 &d->new_part);
	sp_json_open(&json, "notes", '[');
	for (size_t i = 0; i < d->caveats.n_notes; i++)
		sp_json_string(&json, NULL, d->caveats.note[i]);
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
	sp_json_end(&json);
}

/* ---- CSV ---- */

static void put_csv_row(FILE *out, const struct sp_diff_table *t,
			const struct sp_diff_row *r)
{
	fprintf(out, "%s,%s,%" PRIu32 ",", t->key, r->kind ? r->kind : "",
		r->depth);
	sp_table_csv_text(out, r->of ? r->of : "");
	putc(',', out);
	sp_table_csv_text(out, r->name);
	fprintf(out, ",%s,%s", sp_figure_limits(r->old).value.text,
		sp_figure_limits(r->new).value.text);
	sp_table_csv_interval(out, r->change);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%d,%d\n", r->old_samples,
		r->new_samples, r->is_told, r->is_comparable);
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
