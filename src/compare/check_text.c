/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/figures.h"
#include "compare/format.h"
#include "text/lines.h"

const char *sp_undecided_name(enum sp_undecided undecided)
{
	static const char *const names[] = {
		[SP_UNDECIDED_FAIL] = "fail",
		[SP_UNDECIDED_WARN] = "warn",
		[SP_UNDECIDED_PASS] = "pass",
	};

	return names[undecided];
}

static const char *word_of(enum sp_verdict verdict)
{
	static const char *const words[] = {
		[SP_VERDICT_PASS] = "pass",
		[SP_VERDICT_CANNOT_TELL] = "CANNOT TELL",
		[SP_VERDICT_IMPROVED] = "IMPROVED",
		[SP_VERDICT_REGRESSION] = "REGRESSION",
	};

	return words[verdict];
}

static bool is_unlimited(struct sp_interval i)
{
	return !isfinite(i.lo) || !isfinite(i.hi);
}

/* Totals that were counted, and may be more. */
static void print_counted(FILE *out, struct sp_interval i, double below,
			  double above, bool is_bytes, bool is_change)
{
	i.lo -= below;
	i.hi += above;
	if (is_unlimited(i))
		fputs(" (counted)", out);
	else
		fprintf(out, " (counted: %s)",
			sp_figure_interval(i, is_bytes, is_change).text);
}

/* A change of what nobody knows the end of is no figure. */
void sp_check_print_figures(FILE *out, const struct sp_finding *f, double level)
{
	const bool is_bytes = sp_limit_is_bytes(f->limit);
	const bool is_exact = !(f->new.lo < f->new.hi);

	if (!f->has_figures)
		return;
	if (!f->has_old) {
		fputs(sp_figure(f->new.value, is_bytes).text, out);
		if (is_unlimited(f->new) && !(f->new.lo > 0))
			fputs(", limits unknown", out);
		else if (!is_exact)
			fprintf(out, " (%s: %s)", sp_text_level(level).text,
				sp_figure_interval(f->new, is_bytes, false)
					.text);
		else if (f->new_missing > 0)
			print_counted(out, f->new, 0, f->new_missing, is_bytes,
				      false);
		return;
	}
	fprintf(out, "%s -> %s, ", sp_figure(f->old.value, is_bytes).text,
		sp_figure(f->new.value, is_bytes).text);
	if (is_unlimited(f->change)) {
		fputs("limits unknown", out);
		return;
	}
	fprintf(out, "%s, %s", sp_figure_change(f->change.value, is_bytes).text,
		sp_figure_percent(f->old.value, f->new.value).text);
	if (f->change.lo < f->change.hi)
		fprintf(out, " (%s: %s)", sp_text_level(level).text,
			sp_figure_interval(f->change, is_bytes, true).text);
	else if (f->old_missing > 0 || f->new_missing > 0)
		print_counted(out, f->change, f->old_missing, f->new_missing,
			      is_bytes, true);
	else
		fputs(" (exact)", out);
}

/* Without its name and the end of the line. */
static void print_change(FILE *out, const struct sp_finding *f,
			 const struct sp_culprit *c, const char *indent)
{
	const bool is_bytes = sp_limit_is_bytes(f->limit);
	const bool is_part = c->is_path && f->n_rejected;

	fprintf(out, "%s%s%s%s  %s  ", indent, is_part ? "  " : "",
		!c->is_comparable ? "? "
		: c->is_certain   ? ""
				  : "~ ",
		sp_figure_change(c->change.value, is_bytes).text,
		sp_figure_interval(c->change, is_bytes, true).text);
	if (c->is_new || c->is_gone)
		fputs(c->is_new ? "new  " : "gone  ", out);
}

void sp_check_print_culprits(FILE *out, const struct sp_finding *f,
			     double level, const char *indent)
{
	for (size_t i = 0; i < f->n_culprits; i++) {
		print_change(out, f, &f->culprits[i], indent);
		sp_text_print(out, f->culprits[i].name);
		putc('\n', out);
	}
	if (f->n_culprits)
		fprintf(out,
			"%s(intervals at %s; ~ cannot be told from noise)\n",
			indent, sp_text_level(level).text);
}

/* ---- on a screen ---- */

#define INDENT "              " /* below the limit */
/* Rows that explain a finding: all findings of a file of limits are to fit on
 * one screen, and the other formats have the rest. */
#define CULPRITS 3

static void print_explanation(FILE *out, const struct sp_finding *f)
{
	size_t shown = 0;

	for (size_t i = 0; i < f->n_culprits && shown < CULPRITS; i++) {
		const struct sp_culprit *c = &f->culprits[i];

		/* of one function also from where, of several which */
		if (c->is_path && f->n_rejected > 1)
			continue;
		print_change(out, f, c, INDENT);
		sp_lines_print_name(out, c->name);
		putc('\n', out);
		shown++;
	}
}

/* As it was written, but for more than one blank in a row. */
static void print_limit(FILE *out, const struct sp_limit *limit)
{
	char *text = strdup(limit->text), *to = text;

	for (const char *c = limit->text; text && *c; c++)
		if (*c != ' ' || c[1] != ' ')
			*to++ = *c;
	if (text)
		*to = '\0';
	sp_text_print(out, text ? text : limit->text);
	free(text);
}

static void print_sites(FILE *out, const struct sp_finding *f)
{
	if (!f->n_tests)
		return;
	fprintf(out, "%zu function%s compared, %zu beyond the limit",
		f->n_tests, sp_text_plural(f->n_tests), f->n_rejected);
}

static void print_reach_of_sites(FILE *out, const struct sp_finding *f)
{
	const bool is_growth = isfinite(f->detectable);
	const bool is_new = isfinite(f->new_site_bytes);

	if (!is_growth && !is_new) {
		fputs(INDENT "finds no growth, however large: runs differ, and "
			     "these are too few\n",
		      out);
		return;
	}
	fprintf(out, INDENT "would find, in %s of runs: ",
		sp_text_level(SP_CHECK_POWER).text);
	if (is_growth)
		fprintf(out, "growth of the largest function by %s%s",
			sp_figure_share(f->detectable).text,
			is_new ? ", " : "");
	if (is_new)
		fprintf(out, "a new function of %s",
			sp_text_bytes(f->new_site_bytes).text);
	putc('\n', out);
}

/* What the samples at hand could show. */
static void print_reach(FILE *out, const struct sp_finding *f)
{
	if (f->verdict == SP_VERDICT_REGRESSION)
		return;
	/* 0: nothing was looked at, or not all of it */
	if (f->new_site_bytes > 0)
		print_reach_of_sites(out, f);
	else if (f->detectable > 0 && isfinite(f->detectable))
		fprintf(out,
			INDENT "would find, in %s of runs: growth of %s or "
			       "more\n",
			sp_text_level(SP_CHECK_POWER).text,
			sp_figure_share(f->detectable).text);
	if (f->period_needed) {
		const bool is_kib = f->period_needed >= 1024;

		fprintf(out,
			INDENT "to tell, sample with run --period %" PRIu64
			       "%s (%s or less)\n",
			f->period_needed / (is_kib ? 1024 : 1),
			is_kib ? "K" : "",
			sp_text_bytes((double)f->period_needed).text);
	}
}

static void print_finding(FILE *out, const struct sp_finding *f, double level)
{
	fprintf(out, "%-12s  ", word_of(f->verdict));
	print_limit(out, f->limit);
	fputs(f->has_figures || f->n_tests ? "  " : "", out);
	sp_check_print_figures(out, f, level);
	print_sites(out, f);
	putc('\n', out);
	if (f->why[0])
		fprintf(out, INDENT "%s\n", f->why);
	print_reach(out, f);
	print_explanation(out, f);
}

static void print_head(FILE *out, const struct sp_result *r)
{
	sp_text_print(out, r->program);
	fprintf(out, ": %zu run%s", r->n_new, sp_text_plural(r->n_new));
	if (r->n_old)
		fprintf(out, " against %zu", r->n_old);
	fprintf(out, ", period %s\n", sp_text_size(r->period_bytes).text);
}

static void print_notes(FILE *out, const struct sp_check *check)
{
	for (size_t i = 0; i < check->caveats.n_notes; i++) {
		fputs("note: ", out);
		sp_text_print(out, check->caveats.note[i]);
		putc('\n', out);
	}
	for (size_t i = 0; i < check->n_renamed; i++) {
		fputs("note: taken for renamed: ", out);
		sp_text_print(out, check->renamed[i].old);
		fputs(" -> ", out);
		sp_text_print(out, check->renamed[i].new);
		putc('\n', out);
	}
}

static size_t count_verdicts(const struct sp_check *check,
			     enum sp_verdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < check->n_findings; i++)
		n += check->findings[i].verdict == verdict;
	return n;
}

static void print_verdict(FILE *out, const struct sp_result *result)
{
	const struct sp_check *check = result->check;
	const size_t undecided = count_verdicts(check, SP_VERDICT_CANNOT_TELL);

	fprintf(out, "%s: %zu of %zu limit%s exceeded", word_of(check->verdict),
		count_verdicts(check, SP_VERDICT_REGRESSION) +
			count_verdicts(check, SP_VERDICT_IMPROVED),
		check->n_findings, sp_text_plural(check->n_findings));
	if (undecided)
		fprintf(out, ", %zu undecided", undecided);
	if (check->verdict == SP_VERDICT_CANNOT_TELL &&
	    result->undecided != SP_UNDECIDED_FAIL)
		fprintf(out, ": fine with --undecided %s",
			sp_undecided_name(result->undecided));
	putc('\n', out);
	if (result->evidence) {
		fputs("evidence: ", out);
		sp_text_print(out, result->evidence);
		putc('\n', out);
	}
}

int sp_check_text_write(FILE *out, const struct sp_result *result)
{
	const struct sp_check *check = result->check;
	char *lines = NULL;
	size_t size;
	FILE *text = open_memstream(&lines, &size);
	bool has_culprits = false;

	if (!text)
		return -ENOMEM;
	sp_lines_begin_page();
	print_head(text, result);
	print_notes(text, check);
	for (size_t i = 0; i < check->n_findings; i++) {
		print_finding(text, &check->findings[i], check->level);
		has_culprits |= check->findings[i].n_culprits > 0;
	}
	if (has_culprits)
		fprintf(text,
			"(intervals at %s; ~ cannot be told from noise; "
			"--format json has all)\n",
			sp_text_level(check->level).text);
	print_verdict(text, result);
	return sp_lines_close_screen(out, text, &lines);
}
