/* SPDX-License-Identifier: MIT */
/* Formats of programs that keep series of measurements, and the table of all
 * formats. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "gate/format.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/text.h"

/* ---- OpenMetrics, for GitLab ---- */

static bool is_pattern(const struct sp_amount *a)
{
	return strchr(a->name, '(') != NULL;
}

struct metrics {
	FILE *out;
	FILE *label; /* what is written to it goes to `out`, escaped */
	const struct sp_result *result;
};

static void put_label(const struct metrics *m, const char *name,
		      const char *value)
{
	fprintf(m->out, "%s=\"", name);
	sp_text_print(m->label, value);
	putc('"', m->out);
}

static void put_metric(const struct metrics *m, const struct sp_amount *a,
		       const char *bound, double value)
{
	/* A limit that nobody knows is not there. */
	if (!isfinite(value))
		return;
	fprintf(m->out, "sampleprof_%s%s{",
		is_pattern(a) ? "matching_bytes" : a->name, bound);
	put_label(m, "program", m->result->program);
	if (is_pattern(a)) {
		putc(',', m->out);
		put_label(m, "limit", a->name);
	}
	fprintf(m->out, "} %.0f\n", value);
}

/* One family of metrics: its type, and all its values. */
static void put_family(const struct metrics *m, size_t first, const char *bound)
{
	const struct sp_result *r = m->result;
	const struct sp_amount *a = &r->amounts[first];
	const bool is_lo = strcmp(bound, "_lower") == 0;

	if (*bound && !(a->value.lo < a->value.hi) && !is_pattern(a))
		return;
	fprintf(m->out, "# TYPE sampleprof_%s%s gauge\n",
		is_pattern(a) ? "matching_bytes" : a->name, bound);
	for (size_t i = first;
	     i < r->n_amounts && (i == first || is_pattern(a)); i++) {
		const struct sp_interval *v = &r->amounts[i].value;

		put_metric(m, &r->amounts[i], bound,
			   !*bound ? v->value
			   : is_lo ? v->lo
				   : v->hi);
	}
}

int sp_check_metrics_write(FILE *out, const struct sp_result *r)
{
	const struct metrics m = {out, sp_escape_open(out, SP_ESCAPE_LABEL), r};

	if (!m.label)
		return -ENOMEM;
	/* those of patterns come last, and are one family */
	for (size_t i = 0; i < r->n_amounts; i++) {
		put_family(&m, i, "");
		put_family(&m, i, "_lower");
		put_family(&m, i, "_upper");
		if (is_pattern(&r->amounts[i]))
			break;
	}
	fputs("# EOF\n", out);
	fclose(m.label);
	return 0;
}

/* ---- Bencher, github-action-benchmark ---- */

int sp_check_bencher_write(FILE *out, const struct sp_result *r)
{
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open(&json, NULL, '{');
	sp_json_open(&json, r->program, '{');
	for (size_t i = 0; i < r->n_amounts; i++) {
		const struct sp_amount *a = &r->amounts[i];

		sp_json_open_flat(&json, a->name, '{');
		sp_json_double(&json, "value", a->value.value);
		sp_json_double(&json, "lower_value", a->value.lo);
		sp_json_double(&json, "upper_value", a->value.hi);
		sp_json_close(&json, '}');
	}
	sp_json_close(&json, '}');
	sp_json_close(&json, '}');
	putc('\n', out);
	return 0;
}

int sp_check_action_write(FILE *out, const struct sp_result *r)
{
	struct sp_json json = {.out = out, .is_first = true};

	sp_json_open(&json, NULL, '[');
	for (size_t i = 0; i < r->n_amounts; i++) {
		const struct sp_amount *a = &r->amounts[i];
		char range[64], name[256];

		snprintf(name, sizeof(name), "%.120s: %.120s", r->program,
			 a->name);
		if (isfinite(a->value.hi))
			snprintf(range, sizeof(range), "%.0f to %.0f",
				 a->value.lo, a->value.hi);
		else
			snprintf(range, sizeof(range), "at least %.0f",
				 a->value.lo);
		sp_json_open_flat(&json, NULL, '{');
		sp_json_string(&json, "name", name);
		sp_json_string(&json, "unit",
			       a->is_bytes ? "bytes" : "objects");
		sp_json_double(&json, "value", a->value.value);
		sp_json_string(&json, "range", range);
		sp_json_close(&json, '}');
	}
	sp_json_close(&json, ']');
	putc('\n', out);
	return 0;
}

/* ---- benchstat ---- */

static const struct sp_amount *find_amount(const struct sp_result *r,
					   const char *name)
{
	for (size_t i = 0; i < r->n_amounts; i++)
		if (strcmp(r->amounts[i].name, name) == 0)
			return &r->amounts[i];
	return NULL;
}

/* One word, of characters that nothing takes for anything else. */
static void put_word(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(isalnum((unsigned char)*text) || strchr("._", *text)
			     ? *text
			     : '_',
		     out);
}

/* A line for each run: benchstat makes its own intervals of them. */
int sp_check_gobench_write(FILE *out, const struct sp_result *r)
{
	static const struct {
		const char *name, *unit;
	} units[] = {{"alloc_bytes", "B/op"},
		     {"alloc_objects", "allocs/op"},
		     {"peak_bytes", "peak-B/op"},
		     {"live_bytes", "live-B/op"},
		     {"temporary_bytes", "temporary-B/op"}};

	fputs("Unit B/op assume=exact\nUnit allocs/op assume=exact\n", out);
	for (size_t run = 0; run < r->n_new; run++) {
		fputs("BenchmarkHeap/", out);
		put_word(out, r->program);
		fputs(" 1", out);
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			const struct sp_amount *a =
				find_amount(r, units[i].name);

			if (a)
				fprintf(out, " %.0f %s", a->runs[run].value,
					units[i].unit);
		}
		putc('\n', out);
	}
	return 0;
}

/* ---- all of them ---- */

const struct sp_check_format sp_check_formats[] = {
	{"text", "for people", false, sp_check_text_write},
	{"json", "everything, for programs", false, sp_check_json_write},
	{"junit", "JUnit XML: a test case for each limit", false,
	 sp_check_junit_write},
	{"github", "annotations of GitHub Actions", false,
	 sp_check_github_write},
	{"summary", "Markdown, appended: $GITHUB_STEP_SUMMARY", true,
	 sp_check_summary_write},
	{"gitlab", "OpenMetrics: GitLab's metrics report", false,
	 sp_check_metrics_write},
	{"bencher", "Bencher Metric Format", false, sp_check_bencher_write},
	{"benchmark-action", "github-action-benchmark, customSmallerIsBetter",
	 false, sp_check_action_write},
	{"gobench", "Go benchmark text, for benchstat", false,
	 sp_check_gobench_write},
	{0},
};

const struct sp_check_format *sp_check_format_find(const char *name)
{
	for (const struct sp_check_format *f = sp_check_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}
