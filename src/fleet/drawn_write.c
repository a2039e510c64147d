/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "fleet/drawn.h"
#include "model/profile.h"
#include "report/function_json.h"
#include "text/figures.h"
#include "text/json.h"
#include "text/lack.h"
#include "text/text.h"

#define METHOD_ASSUMES                                                         \
	"three-cumulant limits of both stages: no process without a profile "  \
	"has more of a row than the recorded process with most of it"

static double confidence_level(const struct sp_fleet_drawn *d)
{
	return d->aggregate->how.confidence;
}

static void print_bytes(FILE *out, const char *title,
			const struct sp_two_stage *sum, double confidence)
{
	fprintf(out, "  %-9s ", title);
	sp_text_print_estimate(out, sp_two_stage_bytes(sum, confidence),
			       sum->bytes.samples, confidence);
	putc('\n', out);
}

static void print_head(FILE *out, const struct sp_fleet_drawn *d)
{
	const struct sp_profile *p = d->aggregate->analysis->profile;
	const struct sp_whole whole = sp_whole_of(p);
	const struct sp_interval n =
		sp_two_stage_bytes(&d->processes, confidence_level(d));

	fputs("sampleprof fleet: ", out);
	sp_text_print(out, p->command);
	fprintf(out,
		"\n  recorded  %zu process%s of %zu draw%s, of about %.0f "
		"[%.0f, %.0f]\n",
		p->n_parts, p->n_parts == 1 ? "" : "es", d->n_units,
		sp_text_plural(d->n_units), n.value, floor(n.lo), ceil(n.hi));
	fprintf(out, "  of these  %s allocated in %s allocation%s%s\n",
		sp_figure_counted(p->exact_alloc_bytes, sp_profile_is_exact(p))
			.text,
		sp_text_count(p->exact_alloc_objects).text,
		sp_text_plural(p->exact_alloc_objects),
		sp_profile_is_exact(p) ? ", exact" : "");
	if (!sp_whole_is_all(&whole)) {
		fputs("  lacking   ", out);
		sp_lack_print(out, &whole);
		putc('\n', out);
	}
	print_bytes(out, "allocated", &d->exact_bytes, confidence_level(d));
	fprintf(out, "  view      %s of all processes, recorded or not\n",
		sp_view_name(d->aggregate->analysis->selection.view));
	print_bytes(out, "rows", &d->view, confidence_level(d));
}

static void print_row(FILE *out, const struct sp_fleet_drawn *d,
		      const struct sp_fleet_row *row)
{
	const struct sp_interval i =
		sp_two_stage_bytes(&row->flat, confidence_level(d));
	const struct sp_text_estimate e =
		sp_text_estimate(i, row->flat.bytes.samples);

	fprintf(out, "%12s %22s %6s  ", e.first.text, e.second.text,
		sp_text_percent(
			i.value,
			sp_two_stage_bytes(&d->view, confidence_level(d)).value)
			.text);
	sp_text_print(out, row->function->name);
	if (*row->function->module) {
		fputs("  (", out);
		sp_text_print(out, sp_text_base_name(row->function->module));
		putc(')', out);
	}
	putc('\n', out);
}

void sp_fleet_drawn_print(FILE *out, const struct sp_fleet_drawn *d,
			  uint64_t top)
{
	size_t shown = 0, left = 0;

	print_head(out, d);
	fprintf(out, "\n%35s %6s  function\n", "flat", "flat%");
	for (size_t i = 0; i < d->n_rows; i++) {
		if (!d->rows[i].flat.bytes.samples)
			continue;
		if (top && shown == top) {
			left++;
			continue;
		}
		print_row(out, d, &d->rows[i]);
		shown++;
	}
	if (left)
		fprintf(out, "  and %zu other function%s: see --top 0\n", left,
			sp_text_plural(left));
	fprintf(out,
		"\n"
		"intervals %s, method two-stage: they cover the draw of "
		"processes and the\n"
		"sampling of objects, and assume that no process without a "
		"profile has more of a\n"
		"row than the recorded process with most of it\n",
		sp_text_level(confidence_level(d)).text);
}

/* ---- JSON ---- */

static void put_estimate(struct sp_json *json, const struct sp_fleet_drawn *d)
{
	sp_json_open(json, "estimate", '{');
	sp_json_interval(
		json, "processes",
		sp_two_stage_bytes(&d->processes, confidence_level(d)));
	sp_json_interval(
		json, "alloc_bytes",
		sp_two_stage_bytes(&d->exact_bytes, confidence_level(d)));
	sp_json_interval(
		json, "alloc_objects",
		sp_two_stage_bytes(&d->exact_objects, confidence_level(d)));
	sp_json_interval(json, "view_bytes",
			 sp_two_stage_bytes(&d->view, confidence_level(d)));
	sp_json_interval(json, "view_objects",
			 sp_two_stage_objects(&d->view, confidence_level(d)));
	sp_json_close(json, '}');
}

static void put_row(struct sp_json *json, const struct sp_fleet_drawn *d,
		    const struct sp_fleet_row *row)
{
	const struct sp_aggregate_function *f = row->function;

	sp_json_open(json, NULL, '{');
	sp_function_json(json, f);
	sp_json_interval(json, "flat_bytes",
			 sp_two_stage_bytes(&row->flat, confidence_level(d)));
	sp_json_interval(json, "cum_bytes",
			 sp_two_stage_bytes(&row->cum, confidence_level(d)));
	sp_json_interval(json, "flat_objects",
			 sp_two_stage_objects(&row->flat, confidence_level(d)));
	sp_json_close(json, '}');
}

void sp_fleet_drawn_json(FILE *out, const struct sp_fleet_drawn *d)
{
	const struct sp_profile *p = d->aggregate->analysis->profile;
	const struct sp_whole whole = sp_whole_of(p);
	struct sp_json json = sp_json_begin(out);

	sp_json_string(&json, "command", p->command);
	sp_json_u64(&json, "recorded", p->n_parts);
	sp_json_u64(&json, "draws", d->n_units);
	/* Of the recorded processes alone. */
	sp_json_open_flat(&json, "exact", '{');
	sp_json_u64(&json, "alloc_bytes", p->exact_alloc_bytes);
	sp_json_u64(&json, "alloc_objects", p->exact_alloc_objects);
	sp_json_bool(&json, "is_complete", sp_profile_is_exact(p));
	sp_json_close(&json, '}');
	sp_lack_json(&json, &whole);
	put_estimate(&json, d);
	sp_json_string(&json, "view",
		       sp_view_name(d->aggregate->analysis->selection.view));
	sp_json_string(&json, "method", "two-stage");
	sp_json_string(&json, "method_assumes", METHOD_ASSUMES);
	sp_json_double(&json, "confidence", confidence_level(d));
	sp_json_open(&json, "functions", '[');
	for (size_t i = 0; i < d->n_rows; i++)
		put_row(&json, d, &d->rows[i]);
	sp_json_close(&json, ']');
	sp_json_end(&json);
}
