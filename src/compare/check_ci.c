/* SPDX-License-Identifier: MIT */
/* What continuous integration shows by itself: JUnit XML, GitHub's annotations
 * and step summary, github-action-benchmark; and the table of all formats. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "text/figures.h"
#include "compare/format.h"
#include "text/escape.h"
#include "text/json.h"

static bool finding_fails(const struct sp_finding *f)
{
	return f->verdict == SP_VERDICT_REGRESSION ||
	       f->verdict == SP_VERDICT_IMPROVED;
}

/* Did it not pass, and is that to be seen? */
static bool is_shown(const struct sp_result *r, const struct sp_finding *f)
{
	return finding_fails(f) || (f->verdict == SP_VERDICT_CANNOT_TELL &&
				    r->undecided != SP_UNDECIDED_PASS);
}

/* In one line: what became of the limit. */
static void put_sentence(FILE *out, const struct sp_finding *f, double level)
{
	fprintf(out, "%s: ", sp_verdict_name(f->verdict));
	sp_text_print(out, f->limit->text);
	if (f->has_figures)
		fputs(": ", out);
	sp_check_print_figures(out, f, level);
	if (f->n_tests)
		fprintf(out, ": %zu of %zu function%s %s beyond it",
			f->n_rejected, f->n_tests, sp_text_plural(f->n_tests),
			f->n_rejected == 1 ? "is" : "are");
	if (f->why[0])
		fprintf(out, "; %s", f->why);
}

static void put_details(FILE *out, const struct sp_finding *f, double level)
{
	put_sentence(out, f, level);
	putc('\n', out);
	sp_check_print_culprits(out, f, level, "");
}

/* ---- JUnit ---- */

/* `xml` is `out`, escaped, here and below. */
static void put_case(FILE *out, FILE *xml, const struct sp_result *r,
		     const struct sp_finding *f)
{
	const char *element = finding_fails(f) ? "failure"
			      : r->undecided   ? "skipped"
					       : "error";

	fputs("    <testcase classname=\"sampleprof.", out);
	sp_text_print(xml, r->program);
	fputs("\" name=\"", out);
	sp_text_print(xml, f->limit->text);
	fputs("\" time=\"0\"", out);
	if (!is_shown(r, f)) {
		fputs("/>\n", out);
		return;
	}
	fprintf(out, ">\n      <%s message=\"", element);
	put_sentence(xml, f, r->check->level);
	if (!finding_fails(f) && r->undecided) {
		fputs("\"/>\n    </testcase>\n", out);
		return;
	}
	fprintf(out, "\" type=\"%s\">", sp_verdict_name(f->verdict));
	put_details(xml, f, r->check->level);
	fprintf(out, "</%s>\n    </testcase>\n", element);
}

int sp_check_junit_write(FILE *out, const struct sp_result *r)
{
	const struct sp_check *c = r->check;
	FILE *xml = sp_escape_open(out, SP_ESCAPE_XML);
	size_t failures = 0, errors = 0, skipped = 0;

	if (!xml)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_findings; i++) {
		failures += finding_fails(&c->findings[i]);
		errors += c->findings[i].verdict == SP_VERDICT_CANNOT_TELL &&
			  r->undecided == SP_UNDECIDED_FAIL;
		skipped += c->findings[i].verdict == SP_VERDICT_CANNOT_TELL &&
			   r->undecided == SP_UNDECIDED_WARN;
	}
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites name=\"sampleprof\" tests=\"%zu\" "
		"failures=\"%zu\" "
		"errors=\"%zu\" time=\"0\">\n"
		"  <testsuite name=\"sampleprof.",
		c->n_findings, failures, errors);
	sp_text_print(xml, r->program);
	fprintf(out,
		"\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"%zu\" time=\"0\">\n",
		c->n_findings, failures, errors, skipped);
	for (size_t i = 0; i < c->n_findings; i++)
		put_case(out, xml, r, &c->findings[i]);
	fputs("  </testsuite>\n</testsuites>\n", out);
	fclose(xml);
	return 0;
}

/* ---- GitHub ---- */

static void put_annotation(FILE *out, FILE *property, FILE *message,
			   const struct sp_result *r,
			   const struct sp_finding *f)
{
	fputs(finding_fails(f) ? "::error " : "::warning ", out);
	if (f->limit->file) {
		fputs("file=", out);
		sp_text_print(property, f->limit->file);
		fprintf(out, ",line=%u,", f->limit->line);
	}
	fputs("title=heap of ", out);
	sp_text_print(property, r->program);
	fputs("::", out);
	put_details(message, f, r->check->level);
	putc('\n', out);
}

int sp_check_github_write(FILE *out, const struct sp_result *r)
{
	FILE *property = sp_escape_open(out, SP_ESCAPE_GITHUB_PROPERTY);
	FILE *message = sp_escape_open(out, SP_ESCAPE_GITHUB_MESSAGE);
	const bool is_fine = property && message;

	for (size_t i = 0; is_fine && i < r->check->n_findings; i++) {
		const struct sp_finding *f = &r->check->findings[i];

		if (is_shown(r, f))
			put_annotation(out, property, message, r, f);
	}
	if (property)
		fclose(property);
	if (message)
		fclose(message);
	return is_fine ? 0 : -ENOMEM;
}

/* `cell` is `out`, escaped for a table of Markdown, here and below. */
static void put_row(FILE *out, FILE *cell, const struct sp_finding *f,
		    double level)
{
	const char *mark = f->verdict == SP_VERDICT_PASS ? "" : "**";

	fprintf(out, "| %s%s%s | ", mark, sp_verdict_name(f->verdict), mark);
	sp_text_print(cell, f->limit->text);
	fputs(" | ", out);
	sp_check_print_figures(cell, f, level);
	if (f->n_tests)
		fprintf(cell, "%zu of %zu function%s beyond it", f->n_rejected,
			f->n_tests, sp_text_plural(f->n_tests));
	if (f->why[0])
		fprintf(cell, "; %s", f->why);
	fputs(" |\n", out);
}

static void put_explanation(FILE *out, FILE *cell, const struct sp_finding *f)
{
	const bool is_bytes = sp_limit_is_bytes(f->limit);

	if (!f->n_culprits)
		return;
	fputs("\n", out);
	sp_text_print(cell, f->limit->text);
	fputs(" is explained by:\n\n| change | interval | where |\n"
	      "|--:|---|---|\n",
	      out);
	for (size_t i = 0; i < f->n_culprits; i++) {
		const struct sp_culprit *c = &f->culprits[i];

		fputs("| ", out);
		sp_text_print(cell,
			      sp_figure_change(c->change.value, is_bytes).text);
		fputs(c->is_certain ? " | " : " ~ | ", out);
		sp_text_print(
			cell,
			sp_figure_interval(c->change, is_bytes, true).text);
		fputs(" | ", out);
		sp_text_print(cell, c->name);
		fputs(" |\n", out);
	}
}

int sp_check_summary_write(FILE *out, const struct sp_result *r)
{
	const struct sp_check *c = r->check;
	FILE *cell = sp_escape_open(out, SP_ESCAPE_MARKDOWN);

	if (!cell)
		return -ENOMEM;
	fputs("### Heap of ", out);
	sp_text_print(cell, r->program);
	fprintf(out, ": %s\n\n| verdict | limit | |\n|---|---|---|\n",
		sp_verdict_name(c->verdict));
	for (size_t i = 0; i < c->n_findings; i++)
		put_row(out, cell, &c->findings[i], c->level);
	for (size_t i = 0; i < c->n_findings; i++)
		put_explanation(out, cell, &c->findings[i]);
	for (size_t i = 0; i < c->caveats.n_notes; i++) {
		fputs("\nNote: ", out);
		sp_text_print(cell, c->caveats.note[i]);
		putc('\n', out);
	}
	fprintf(out, "\nIntervals at %s.\n", sp_text_level(c->level).text);
	fclose(cell);
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
			snprintf(range, sizeof(range), "%.25s to %.25s",
				 sp_figure_fixed(a->value.lo, 0).text,
				 sp_figure_fixed(a->value.hi, 0).text);
		else
			snprintf(range, sizeof(range), "at least %.25s",
				 sp_figure_fixed(floor(a->value.lo), 0).text);
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
	{"benchmark-action", "github-action-benchmark, customSmallerIsBetter",
	 false, sp_check_action_write},
	{0},
};

const struct sp_check_format *sp_check_format_find(const char *name)
{
	for (const struct sp_check_format *f = sp_check_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}
