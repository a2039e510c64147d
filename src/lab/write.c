/* SPDX-License-Identifier: MIT */
#include "lab/write.h"

#include <inttypes.h>
#include <math.h>

#include "text/figures.h"

/* Relative standard deviations of the bytes that the budget allows: with the
 * period that expects as many samples, and with the best law by size. */
struct limits {
	double period_bytes;
	double period_sd;
	double best_sd;
};

static struct limits limits_of(const struct sp_lab_trial *trial,
			       const struct sp_lab_trace *trace)
{
	const double samples = (double)trial->samples;
	const double bytes = (double)trace->bytes;
	const double period =
		sp_period_model_period_for_samples(&trace->sizes, samples);
	const double threshold =
		sp_period_model_best_threshold(&trace->sizes, samples);

	return (struct limits){
		period,
		sqrt(sp_period_model_variance(&trace->sizes, period)) / bytes,
		sqrt(sp_period_model_best_variance(&trace->sizes, threshold)) /
			bytes};
}

/* ---- for people ---- */

/* "0.12%", "12.3%", "123%": at least two digits, at most six characters. */
static struct sp_text_cell percent_cell(double share, bool is_signed)
{
	const double p = 100 * share, size = fabs(p);
	const int digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
	struct sp_text_cell cell;

	snprintf(cell.text, sizeof(cell.text), "%.40s%%",
		 is_signed ? sp_figure_signed(p, digits).text
			   : sp_figure_fixed(p, digits).text);
	return cell;
}

static void print_figure(FILE *out, const struct sp_lab_figure *f)
{
	fprintf(out, "  %8s%c %7s", percent_cell(f->bias, true).text,
		sp_lab_is_biased(f) ? '*' : ' ',
		percent_cell(f->sd, false).text);
	if (!isnan(f->coverage))
		fprintf(out, " %6.1f%%", 100 * f->coverage);
}

static void print_row(FILE *out, const struct sp_lab_result *r)
{
	fprintf(out, "%-15s %7.0f %6.0f", r->strategy->name, r->samples,
		r->most_in_second);
	print_figure(out, &r->total);
	print_figure(out, &r->focus);
	print_figure(out, &r->objects);
	putc('\n', out);
}

void sp_lab_print(FILE *out, const struct sp_lab_trial *trial,
		  const struct sp_lab_trace *trace,
		  const struct sp_lab_result *results, size_t n)
{
	const struct limits limits = limits_of(trial, trace);

	sp_text_print(out, trace->name);
	fprintf(out, ": %s\n%s object%s, %s in %s; ", trace->about,
		sp_text_count(trace->n_allocs).text,
		sp_text_plural(trace->n_allocs),
		sp_text_bytes((double)trace->bytes).text,
		sp_text_moment(trace->duration_ns).text);
	fputs("the site is ", out);
	sp_text_print(out, trace->sites[trace->focus]);
	fprintf(out,
		", %s of the bytes\n%s samples wanted, %s runs, seed %" PRIu64
		"\n\n",
		sp_text_percent((double)trace->focus_bytes,
				(double)trace->bytes)
			.text,
		sp_text_count(trial->samples).text,
		sp_text_count(trial->runs).text, trial->seed);
	fprintf(out, "%-30s  %-25s  %-25s  %s\n%-15s %7s %6s", "",
		"bytes of the program", "bytes of the site", "objects, all",
		"strategy", "samples", "most/s");
	for (int i = 0; i < 2; i++)
		fprintf(out, "  %8s  %7s %7s", "bias", "sd", "covers");
	fprintf(out, "  %8s  %7s\n", "bias", "sd");
	for (size_t i = 0; i < n; i++)
		print_row(out, &results[i]);
	putc('\n', out);
	for (size_t i = 0; i < n; i++)
		if (results[i].strategy->fit == SP_LAB_FIT_RATE)
			fprintf(out, "Target of %s: %.1f samples/s.\n",
				results[i].strategy->name,
				results[i].parameter);
	fprintf(out,
		"Theory: sd of the bytes of the program %s with a period of "
		"%s, %s with the best law.\n",
		percent_cell(limits.period_sd, false).text,
		sp_text_bytes(limits.period_bytes).text,
		percent_cell(limits.best_sd, false).text);
}

/* ---- for programs ---- */

static void write_figure(struct sp_json *json, const char *key,
			 const struct sp_lab_figure *f)
{
	sp_json_open_flat(json, key, '{');
	sp_json_double(json, "bias", f->bias);
	sp_json_double(json, "bias_error", f->bias_error);
	sp_json_bool(json, "is_biased", sp_lab_is_biased(f));
	sp_json_double(json, "sd", f->sd);
	if (!isnan(f->coverage)) {
		sp_json_double(json, "coverage", f->coverage);
		sp_json_double(json, "coverage_error", f->coverage_error);
	}
	sp_json_close(json, '}');
}

static void write_result(struct sp_json *json, const struct sp_lab_result *r)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "name", r->strategy->name);
	sp_json_double(json, "parameter", r->parameter);
	sp_json_double(json, "samples", r->samples);
	sp_json_double(json, "most_in_second", r->most_in_second);
	write_figure(json, "bytes", &r->total);
	write_figure(json, "site_bytes", &r->focus);
	write_figure(json, "objects", &r->objects);
	sp_json_close(json, '}');
}

void sp_lab_write_json(struct sp_json *json, const struct sp_lab_trial *trial,
		       const struct sp_lab_trace *trace,
		       const struct sp_lab_result *results, size_t n)
{
	const struct limits limits = limits_of(trial, trace);

	sp_json_open(json, NULL, '{');
	sp_json_string(json, "name", trace->name);
	sp_json_u64(json, "duration_ns", trace->duration_ns);
	sp_json_u64(json, "objects", trace->n_allocs);
	sp_json_u64(json, "bytes", trace->bytes);
	sp_json_string(json, "site", trace->sites[trace->focus]);
	sp_json_u64(json, "site_bytes", trace->focus_bytes);
	sp_json_u64(json, "samples_wanted", trial->samples);
	sp_json_u64(json, "runs", trial->runs);
	sp_json_u64(json, "seed", trial->seed);
	sp_json_double(json, "confidence", SP_LAB_CONFIDENCE);
	sp_json_double(json, "period_bytes", limits.period_bytes);
	sp_json_double(json, "period_sd", limits.period_sd);
	sp_json_double(json, "best_sd", limits.best_sd);
	sp_json_open(json, "strategies", '[');
	for (size_t i = 0; i < n; i++)
		write_result(json, &results[i]);
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}
