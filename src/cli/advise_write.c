/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/advise.h"
#include "text/json.h"
#include "text/lines.h"
#include "text/table.h"
#include "text/text.h"
#include "view/view_row.h"

/* ---- for people ---- */

/* "64K", as it is set. */
static struct sp_text_cell setting_cell(uint64_t bytes)
{
	static const char units[] = "KMGT";
	struct sp_text_cell cell;
	int unit = -1;

	while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
		bytes /= 1024;
		unit++;
	}
	snprintf(cell.text, sizeof(cell.text), "%" PRIu64 "%.*s", bytes,
		 unit < 0 ? 0 : 1, unit < 0 ? "" : units + unit);
	return cell;
}

/* "3.2%", ">100%", "?" */
static struct sp_text_cell error_text(double error)
{
	if (isnan(error))
		return (struct sp_text_cell){"?"};
	if (error > 1)
		return (struct sp_text_cell){">100%"};
	return sp_text_percent(error, 1);
}

static struct sp_text_cell rate_text(double per_s)
{
	struct sp_text_cell cell;

	if (per_s >= 100)
		return sp_text_count(sp_text_to_count(per_s));
	snprintf(cell.text, sizeof(cell.text), "%.3g", per_s);
	return cell;
}

static void print_head(FILE *out, const struct sp_advice *a)
{
	fputs("sampleprof advice: ", out);
	sp_text_print(out, a->profile->program);
	fprintf(out, "\n  recorded for %s with ",
		sp_text_duration(a->profile->duration_ns).text);
	if (a->is_mixed)
		fputs("periods of up to ", out);
	else
		fputs("a period of ", out);
	fprintf(out, "%s: %s sample%s of %s\n",
		sp_text_size(a->period_bytes).text,
		sp_text_count(a->samples).text, sp_text_plural(a->samples),
		sp_text_bytes((double)a->profile->exact_alloc_bytes).text);
}

/* "no. 3", by the position in the table of functions. */
static struct sp_text_cell number_cell(size_t position)
{
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "no. %zu", position);
	return cell;
}

static void print_row(FILE *out, const struct sp_advice *a,
		      const struct sp_advise_row *r)
{
	fprintf(out, "%c%11s", r->period_bytes == a->period_bytes ? '*' : ' ',
		sp_text_size(r->period_bytes).text);
	if (a->has_rates)
		fprintf(out, "  %9s  %7s  %9s",
			rate_text(r->samples_per_s).text,
			sp_text_percent(r->processor, 1).text,
			sp_text_bytes(r->bytes_per_hour).text);
	fprintf(out, "  %7s", error_text(r->error_all).text);
	if (a->n_told)
		fprintf(out, "  %7s", error_text(r->error_first).text);
	if (a->n_told > 1)
		fprintf(out, "  %7s", error_text(r->error_last).text);
	fprintf(out, "  %7s\n", error_text(r->error_small).text);
}

static void print_rows(FILE *out, const struct sp_advice *a)
{
	fprintf(out,
		"\nErrors in another such run: half of the 95 %% interval, "
		"relative to the bytes of\n\n"
		"%12s",
		"period");
	if (a->has_rates)
		fprintf(out, "  %9s  %7s  %9s", "samples/s", "CPU", "file/h");
	fprintf(out, "  %7s", "all");
	if (a->n_told)
		fprintf(out, "  %7s", number_cell(a->first).text);
	if (a->n_told > 1)
		fprintf(out, "  %7s", number_cell(a->last).text);
	fprintf(out, "  %7s\n", "any 1%");
	for (size_t i = 0; i < SP_ADVISE_ROWS; i++)
		print_row(out, a, &a->rows[i]);
	fprintf(out,
		"  *: the period of this recording; no. N: function N of the "
		"table below;\n  any 1%%: at most, for a function with 1 %% of "
		"the bytes%s\n",
		a->has_rates ? ";" : "");
	if (a->has_rates)
		fprintf(out, "  CPU: of one processor, %.2f us for a sample\n",
			SP_ADVISE_SAMPLE_NS * 1e-3);
}

static void print_setting(FILE *out, const struct sp_advice *a,
			  uint64_t period_bytes)
{
	const struct sp_advise_row row = sp_advise_row(a, period_bytes);

	fprintf(out, "SAMPLEPROF_PERIOD=%s", setting_cell(period_bytes).text);
	if (!a->has_rates) {
		putc('\n', out);
		return;
	}
	fprintf(out,
		": %s samples/s, %s of a processor,\n"
		"      %s of file in an hour\n",
		rate_text(row.samples_per_s).text,
		sp_text_percent(row.processor, 1).text,
		sp_text_bytes(row.bytes_per_hour).text);
}

static void print_settings(FILE *out, const struct sp_advice *a)
{
	fprintf(out, "\nFor an error of %s:\n\n",
		sp_text_percent(a->options->error, 1).text);
	if (a->n_told) {
		fprintf(out, "  %zu function%s below\n    ", a->n_told,
			sp_text_plural(a->n_told));
		print_setting(out, a, a->sites_period_bytes);
	}
	fputs("  any function with 1 % of the bytes\n    ", out);
	print_setting(out, a, a->small_period_bytes);
	if (!a->pins_period_bytes)
		return;
	fputs(a->pins_period_bytes > 1
		      ? "  what pins free memory (rss --pins), if every live "
			"object lies beside a hole\n    "
		      : "  what pins free memory (rss --pins)\n    ",
	      out);
	print_setting(out, a, a->pins_period_bytes);
}

static void print_site(FILE *out, size_t position,
		       const struct sp_advise_site *s)
{
	fprintf(out, "%4zu  %11s  %7s  %7s  %10s  ", position,
		sp_text_bytes(s->bytes.value).text,
		sp_text_count(s->samples).text,
		s->can_tell ? error_text(s->error).text : "?",
		s->can_tell ? sp_text_bytes(s->period.value).text : "too few");
	sp_lines_print_name(out, s->name);
	sp_view_row_module(out, s->name, s->module);
	putc('\n', out);
}

static void print_sites(FILE *out, const struct sp_advice *a)
{
	if (!a->n_sites)
		return;
	fprintf(out,
		"\nThe functions with most flat bytes:\n\n"
		"%4s  %11s  %7s  %7s  %10s  %s\n",
		"no.", "bytes", "samples", "error", "needs", "function");
	for (size_t i = 0; i < a->n_sites; i++)
		print_site(out, i + 1, &a->sites[i]);
}

static void print_law(FILE *out, const struct sp_advice *a)
{
	fprintf(out,
		"\nObject sizes: with a period of %s, the best law by object "
		"size would have a\nstandard error of all bytes that is %s "
		"smaller: as much as %s more samples.\n",
		sp_text_size(a->compared_bytes).text,
		sp_text_percent(1 - 1 / a->worse_bytes, 1).text,
		sp_text_percent(a->worse_samples, 1).text);
	if (a->worse_objects < 1.005)
		return;
	fprintf(out,
		"For numbers of objects the best law is %.3g times as good: it "
		"samples all\n"
		"objects alike, and is useless for bytes. Their total number "
		"is counted anyway.\n",
		a->worse_objects);
}

static void print_notes(FILE *out, const struct sp_advice *a)
{
	const uint64_t lost = sp_profile_lost_samples(a->profile);

	fputs("\nnotes:\n  - errors are those of samples alone; totals "
	      "by "
	      "size make many intervals narrower\n",
	      out);
	if (a->has_rates)
		fputs("  - a run that is twice as long needs half as many "
		      "samples per second\n",
		      out);
	else
		fputs("  - the run was too short for samples per second, "
		      "processor time and growth of the file: a millisecond "
		      "is the least\n",
		      out);
	if (a->n_told < a->n_sites)
		fprintf(out,
			"  - %zu of the functions: fewer than %d samples, "
			"which "
			"are too few for advice\n",
			a->n_sites - a->n_told, SP_ADVISE_SITE_SAMPLES);
	if (a->is_mixed)
		fputs("  - the period changed: \"*\" is the longest\n", out);
	if (sp_profile_off_bytes(a->profile))
		fprintf(out,
			"  - %s were allocated while nothing was sampled: "
			"functions are judged without them\n",
			sp_text_bytes((double)sp_profile_off_bytes(a->profile))
				.text);
	if (a->profile->discarded_bytes)
		fprintf(out,
			"  - the samples of %s were discarded to keep the file "
			"to its size: functions are judged without them\n",
			sp_text_bytes((double)a->profile->discarded_bytes)
				.text);
	if (lost)
		fprintf(out, "  - %s sample%s lost\n", sp_text_count(lost).text,
			lost == 1 ? " was" : "s were");
	if (!a->is_exact)
		fputs("  - sizes are estimated: the file has no totals by "
		      "size\n",
		      out);
}

static void print_too_few(FILE *out, const struct sp_advice *a)
{
	if (!a->try_bytes) {
		fputs("\nThe program allocated nothing: there is nothing to "
		      "sample.\n",
		      out);
		return;
	}
	fprintf(out,
		"\nThese are too few for advice. Record for longer, or with a "
		"smaller period:\nSAMPLEPROF_PERIOD=%s would have given %s in "
		"this run.\n",
		setting_cell(a->try_bytes).text,
		a->try_bytes > 1 ? "about a thousand samples"
				 : "every allocation");
}

static void print_text(FILE *out, const struct sp_advice *a)
{
	print_head(out, a);
	if (!sp_advise_can_tell(a)) {
		print_too_few(out, a);
		return;
	}
	print_settings(out, a);
	print_rows(out, a);
	print_sites(out, a);
	print_law(out, a);
	print_notes(out, a);
}

/* ---- for programs ---- */

#define PERIOD(kind, member)                                                   \
	SP_TABLE_COLUMN(struct sp_advise_row, kind, #member, member)

static const struct sp_table_column periods[] = {
	PERIOD(U64, period_bytes),
	PERIOD(DOUBLE, samples_per_s),
	PERIOD(DOUBLE, processor),
	PERIOD(DOUBLE, bytes_per_hour),
	PERIOD(DOUBLE, error_all),
	PERIOD(DOUBLE, error_first),
	PERIOD(DOUBLE, error_last),
	PERIOD(DOUBLE, error_small),
	{0},
};

static void write_row(struct sp_json *json, const char *key,
		      const struct sp_advise_row *r)
{
	sp_json_open_flat(json, key, '{');
	sp_table_json_row(json, periods, r);
	sp_json_close(json, '}');
}

static void write_setting(struct sp_json *json, const char *key,
			  const struct sp_advice *a, uint64_t period_bytes)
{
	const struct sp_advise_row row = sp_advise_row(a, period_bytes);

	if (period_bytes)
		write_row(json, key, &row);
	else
		sp_json_null(json, key);
}

static void write_site(struct sp_json *json, const struct sp_advise_site *s)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "function", s->name);
	sp_json_string(json, "module", s->module);
	sp_json_u64(json, "samples", s->samples);
	sp_json_interval(json, "bytes", s->bytes);
	sp_json_bool(json, "can_tell", s->can_tell);
	if (s->can_tell) {
		sp_json_double(json, "error", s->error);
		sp_json_interval(json, "period_bytes", s->period);
	}
	sp_json_close(json, '}');
}

static void write_advice(struct sp_json *json, const struct sp_advice *a)
{
	write_setting(json, "for_functions", a, a->sites_period_bytes);
	write_setting(json, "for_one_percent", a, a->small_period_bytes);
	write_setting(json, "for_pins", a, a->pins_period_bytes);
	sp_json_open(json, "periods", '[');
	for (size_t i = 0; i < SP_ADVISE_ROWS; i++)
		write_row(json, NULL, &a->rows[i]);
	sp_json_close(json, ']');
	sp_json_open(json, "functions", '[');
	for (size_t i = 0; i < a->n_sites; i++)
		write_site(json, &a->sites[i]);
	sp_json_close(json, ']');
	sp_json_open(json, "best_law", '{');
	sp_json_u64(json, "period_bytes", a->compared_bytes);
	sp_json_double(json, "sd_ratio_bytes", a->worse_bytes);
	sp_json_double(json, "sd_ratio_objects", a->worse_objects);
	sp_json_double(json, "more_samples", a->worse_samples);
	sp_json_close(json, '}');
}

static void write_json(FILE *out, const struct sp_advice *a)
{
	struct sp_json json = sp_json_begin(out);

	sp_json_string(&json, "program", a->profile->program);
	sp_json_double(&json, "seconds", a->seconds);
	sp_json_u64(&json, "samples", a->samples);
	sp_json_u64(&json, "alloc_bytes", a->profile->exact_alloc_bytes);
	sp_json_u64(&json, "period_bytes", a->period_bytes);
	sp_json_bool(&json, "periods_differ", a->is_mixed);
	sp_json_double(&json, "wanted_error", a->options->error);
	sp_json_double(&json, "confidence", SP_ADVISE_CONFIDENCE);
	sp_json_u64(&json, "sample_ns", SP_ADVISE_SAMPLE_NS);
	sp_json_u64(&json, "sample_bytes", SP_ADVISE_SAMPLE_BYTES);
	sp_json_bool(&json, "can_tell", sp_advise_can_tell(a));
	if (sp_advise_can_tell(a))
		write_advice(&json, a);
	else
		sp_json_u64(&json, "try_period_bytes", a->try_bytes);
	sp_json_end(&json);
}

/* The periods; none, if there are too few samples to tell. */
static void write_csv(FILE *out, const struct sp_advice *a)
{
	sp_table_csv_head(out, periods);
	for (size_t i = 0; i < SP_ADVISE_ROWS && sp_advise_can_tell(a); i++)
		sp_table_csv_row(out, periods, &a->rows[i]);
}

/* The text fitted to the screen. */
static int print_fitted(FILE *out, const struct sp_advice *a)
{
	char *lines = NULL;
	size_t size;
	FILE *text = open_memstream(&lines, &size);

	if (!text)
		return -ENOMEM;
	sp_lines_begin_page();
	print_text(text, a);
	return sp_lines_close_page(out, text, &lines);
}

int sp_advise_write(FILE *out, const struct sp_advice *a)
{
	if (a->options->json)
		write_json(out, a);
	else if (a->options->csv)
		write_csv(out, a);
	else
		return print_fitted(out, a);
	return 0;
}
