/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "gate/figures.h"
#include "gate/format.h"

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

void sp_check_print_figures(FILE *out, const struct sp_finding *f, double level)
{
	const bool is_bytes = sp_limit_is_bytes(f->limit);
	const bool is_exact = !(f->new.lo < f->new.hi);

	if (!f->has_figures)
		return;
	if (!f->has_old) {
		fputs(sp_figure(f->new.value, is_bytes).text, out);
		if (!is_exact)
			fprintf(out, " (%s: %s)", sp_text_level(level).text,
				sp_figure_interval(f->new, is_bytes, false)
					.text);
		return;
	}
	fprintf(out, "%s -> %s, %s, %s", sp_figure(f->old.value, is_bytes).text,
		sp_figure(f->new.value, is_bytes).text,
		sp_figure_change(f->change.value, is_bytes).text,
		sp_figure_percent(f->old.value, f->new.value).text);
	if (f->change.lo < f->change.hi)
		fprintf(out, " (%s: %s)", sp_text_level(level).text,
			sp_figure_interval(f->change, is_bytes, true).text);
	else
		fputs(" (exact)", out);
}

void sp_check_print_culprits(FILE *out, const struct sp_finding *f,
			     double level, const char *indent)
{
	const bool is_bytes = sp_limit_is_bytes(f->limit);

	for (size_t i = 0; i < f->n_culprits; i++) {
		const struct sp_culprit *c = &f->culprits[i];
		const bool is_part = c->is_path && f->n_rejected;

		fprintf(out, "%s%s%s%s  %s  ", indent, is_part ? "  " : "",
			c->is_certain ? "" : "~ ",
			sp_figure_change(c->change.value, is_bytes).text,
			sp_figure_interval(c->change, is_bytes, true).text);
		if (c->is_new || c->is_gone)
			fputs(c->is_new ? "new  " : "gone  ", out);
		sp_text_print(out, c->name);
		putc('\n', out);
	}
	if (f->n_culprits)
		fprintf(out,
			"%s(intervals at %s; ~ cannot be told from noise)\n",
			indent, sp_text_level(level).text);
}

static void print_sites(FILE *out, const struct sp_finding *f)
{
	if (!f->n_tests)
		return;
	fprintf(out, "%zu function%s compared, %zu beyond the limit",
		f->n_tests, sp_text_plural(f->n_tests), f->n_rejected);
}

/* What the samples at hand could show. */
static void print_reach(FILE *out, const struct sp_finding *f)
{
	if (f->n_tests && isfinite(f->detectable))
		fprintf(out,
			"              found with %s: the largest function "
			"growing by %s, a new one of %s\n",
			sp_text_level(SP_CHECK_POWER).text,
			sp_figure_share(f->detectable).text,
			sp_text_bytes(f->new_site_bytes).text);
	else if (!f->n_tests && f->detectable > 0 && isfinite(f->detectable))
		fprintf(out,
			"              found with %s: growth of %s or more\n",
			sp_text_level(SP_CHECK_POWER).text,
			sp_figure_share(f->detectable).text);
	if (f->period_needed)
		fprintf(out,
			"              to tell, sample with a period of %s or "
			"less (SAMPLEPROF_PERIOD)\n",
			sp_text_bytes((double)f->period_needed).text);
}

static void print_finding(FILE *out, const struct sp_finding *f, double level)
{
	fprintf(out, "%-12s  ", word_of(f->verdict));
	sp_text_print(out, f->limit->text);
	fputs(f->has_figures || f->n_tests ? "  " : "", out);
	sp_check_print_figures(out, f, level);
	print_sites(out, f);
	putc('\n', out);
	if (f->why[0])
		fprintf(out, "              %s\n", f->why);
	print_reach(out, f);
	sp_check_print_culprits(out, f, level, "              ");
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
	for (size_t i = 0; i < check->comparable.n_notes; i++) {
		fputs("note: ", out);
		sp_text_print(out, check->comparable.note[i]);
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

static size_t count(const struct sp_check *check, enum sp_verdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < check->n_findings; i++)
		n += check->findings[i].verdict == verdict;
	return n;
}

int sp_check_text_write(FILE *out, const struct sp_result *result)
{
	const struct sp_check *check = result->check;

	print_head(out, result);
	print_notes(out, check);
	for (size_t i = 0; i < check->n_findings; i++)
		print_finding(out, &check->findings[i], check->level);
	fprintf(out, "%s: %zu of %zu limit%s exceeded", word_of(check->verdict),
		count(check, SP_VERDICT_REGRESSION) +
			count(check, SP_VERDICT_IMPROVED),
		check->n_findings, sp_text_plural(check->n_findings));
	if (count(check, SP_VERDICT_CANNOT_TELL))
		fprintf(out, ", %zu undecided",
			count(check, SP_VERDICT_CANNOT_TELL));
	putc('\n', out);
	if (result->evidence) {
		fputs("evidence: ", out);
		sp_text_print(out, result->evidence);
		putc('\n', out);
	}
	return 0;
}
