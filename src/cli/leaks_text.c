/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/leaks.h"
#include "report/callers.h"
#include "stats/estimate.h"
#include "text/lack.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "view/view_row.h"
#include "view/view.h"

#define LEVEL      0.95
#define RATE_WIDTH 31
/* Windows in one column of the curve, of those after the start. */
#define PER_COLUMN 2u
#define COLUMNS    ((SP_GROWTH_WINDOWS - SP_GROWTH_START) / PER_COLUMN)
/* Below that a period records about as much as each allocation. */
#define PERIOD_MIN 1024
/* Where callers begin. */
#define INDENT 14

struct page {
	FILE *out;
	const struct sp_aggregate *aggregate;
	const struct sp_leak_sites *sites;
	const struct sp_profile *profile;
	uint64_t top;
};

/* What is alive over time, from 0 to the most. */
static void print_curve(FILE *out, const struct sp_growth *g)
{
	static const char *const marks[2][9] = {
		{" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		 "\u2586", "\u2587", "\u2588"},
		{" ", "_", ".", "-", "-", "=", "=", "#", "#"},
	};
	double most = 0;

	for (unsigned int i = SP_GROWTH_START; i < SP_GROWTH_WINDOWS; i++)
		most = g->alive[i] > most ? g->alive[i] : most;
	for (unsigned int i = SP_GROWTH_START + PER_COLUMN - 1;
	     i < SP_GROWTH_WINDOWS; i += PER_COLUMN) {
		const double share = most > 0 ? g->alive[i] / most : 0;
		int mark = (int)(share * 8 + 0.5);

		if (!mark && share > 0)
			mark = 1;
		fputs(marks[sp_text_is_ascii()][mark], out);
	}
}

/* ---- the head ---- */

static void print_rate(const struct page *page, const struct sp_leak_site *s)
{
	FILE *out = page->out;
	const struct sp_interval rate = s->per_s;

	if (s->leak->verdict == SP_LEAK_STEADY)
		fprintf(out, "at most %s/s more at the end",
			sp_text_bytes_beyond(fmax(s->leak->half_bytes.hi, 0) /
						     (page->sites->seconds / 2),
					     true)
				.text);
	else if (rate.lo > 0 && !(rate.lo < rate.hi))
		fprintf(out, "%s/s more, exact",
			sp_text_bytes(rate.value).text);
	else if (rate.lo > 0)
		fprintf(out, "%s/s more (%s: %s)",
			sp_text_bytes(rate.value).text,
			sp_text_level(LEVEL).text, sp_text_interval(rate).text);
	else if (rate.hi > 0)
		fprintf(out, "at most %s/s more",
			sp_text_bytes_beyond(rate.hi, true).text);
	else
		fprintf(out, "%s/s less", sp_text_bytes(-rate.value).text);
}

static const char *words_of(const struct sp_leak *leak)
{
	switch (leak->verdict) {
	case SP_LEAK_LEAK:
		return "grows, and does not slow down";
	case SP_LEAK_FILLING:
		return "grows, and slows down";
	case SP_LEAK_STEADY:
		return "steady";
	default:
		return leak->grows ? "grows; undecided whether it slows down"
				   : "undecided whether it grows";
	}
}

static void print_head(const struct page *page)
{
	const struct sp_leak_sites *s = page->sites;
	const struct sp_profile *p = page->profile;
	const struct sp_whole whole = sp_whole_of(p);
	const uint64_t *edge = s->leaks->clock.edge_ns;
	FILE *out = page->out;

	sp_style_begin(out, SP_STYLE_HEAD);
	fputs("sampleprof leaks: ", out);
	sp_text_print(out, p->program);
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc('\n', out);
	if (!sp_whole_is_all(&whole)) {
		fputs("  lacks     ", out);
		sp_lack_print(out, &whole);
		if (whole.known_ns && whole.known_ns != SP_NEVER)
			fputs("; nothing is judged beyond", out);
		putc('\n', out);
	}
	fprintf(out, "  judged    %s of %s%s, from %s on",
		sp_text_duration((uint64_t)(s->seconds * 1e9)).text,
		sp_text_duration(p->duration_ns).text,
		p->end == SP_PROFILE_END_RUNNING ? " so far" : "",
		sp_text_moment(edge[SP_GROWTH_START]).text);
	fprintf(out, ", in %u windows\n", SP_GROWTH_WINDOWS - SP_GROWTH_START);
	sp_view_summary_print_filter(out, page->aggregate->analysis);
	fprintf(out, "  %-9s %s",
		page->aggregate->analysis->filter ? "these" : "all",
		words_of(s->all.leak));
	if (s->all.samples) {
		fputs(": ", out);
		print_rate(page, &s->all);
	}
	putc('\n', out);
}

/* ---- tables ---- */

static void print_name(const struct page *page,
		       const struct sp_aggregate_function *f)
{
	FILE *out = page->out;

	sp_lines_print_name(out, f->name);
	if (page->aggregate->granularity == SP_BY_LINE && f->line)
		fprintf(out, ":%" PRIu32, f->line);
	putc('\n', out);
}

enum section { LEAKS, GROWING, FILLING, OTHERS, STEADY, SECTIONS };

static enum section section_of(const struct sp_leak *leak)
{
	switch (leak->verdict) {
	case SP_LEAK_LEAK:
		return LEAKS;
	case SP_LEAK_FILLING:
		return FILLING;
	case SP_LEAK_STEADY:
		return STEADY;
	default:
		return leak->grows ? GROWING : OTHERS;
	}
}

/* What would decide, in a column; of others by allocated MiB. */
static struct sp_text_cell second_cell(const struct sp_leak_site *s,
				       enum section section)
{
	struct sp_text_cell cell = {"in steps"};

	if (section != GROWING)
		return sp_text_bytes(s->per_mib.value);
	if (s->longer_ns)
		return sp_text_duration(s->longer_ns);
	if (!s->leak->in_steps)
		snprintf(cell.text, sizeof(cell.text), "-");
	return cell;
}

static void print_section(const struct page *page, size_t first, size_t n,
			  enum section section)
{
	static const char *const heads[SECTIONS] = {
		[LEAKS] = "Leaks: they grow, and do not slow down",
		[GROWING] = ("Undecided: they grow; whether they slow down "
			     "cannot be told yet"),
		[FILLING] = "Filling: they grow, and slow down",
	};
	const size_t shown = page->top && page->top < n ? (size_t)page->top : n;
	FILE *out = page->out;

	sp_style_begin(out, SP_STYLE_HEAD);
	fprintf(out, "\n%s", heads[section]);
	sp_style_begin(out, SP_STYLE_PLAIN);
	fprintf(out, "\n\n  %*s %10s  %-*s  %s\n", RATE_WIDTH,
		"bytes a second, with 95 %",
		section == GROWING ? "run longer" : "per MiB", (int)COLUMNS,
		"alive", sp_granularity_name(page->aggregate->granularity));
	for (size_t i = first; i < first + shown; i++) {
		const struct sp_leak_site *s = &page->sites->sites[i];

		fprintf(out, "  %*s %10s  ", RATE_WIDTH,
			sp_text_estimate_cell(s->per_s, s->samples).text,
			second_cell(s, section).text);
		print_curve(out, &s->leak->growth[SP_LEAK_BY_TIME]);
		fputs("  ", out);
		print_name(page, s->function);
		if (s->stack)
			sp_callers_print(out, page->aggregate, s->stack, INDENT,
					 s->stack_share);
	}
	if (shown < n)
		fprintf(out, "  and %zu more: --top 0 has all\n", n - shown);
}

/* The period that tells of half of them; 0: of fewer. */
static uint64_t usual_period(const struct sp_leak_site *sites, size_t n)
{
	uint64_t *periods = calloc(n + 1, sizeof(*periods)), usual;

	if (!periods)
		return 0;
	for (size_t i = 0; i < n; i++)
		periods[i] = sites[i].period_bytes;
	qsort(periods, n, sizeof(*periods), sp_array_compare_u64);
	usual = periods[n / 2];
	free(periods);
	return usual;
}

static void print_most(const struct page *page, double most,
		       const struct sp_leak_site *site)
{
	fprintf(page->out,
		"at most %s/s more: ", sp_text_bytes_beyond(most, true).text);
	print_name(page, site->function);
}

/* Of those, the one that may grow most. */
static const struct sp_leak_site *largest_of(const struct sp_leak_site *s,
					     size_t n)
{
	const struct sp_leak_site *largest = s;

	for (size_t i = 1; i < n; i++)
		if (s[i].per_s.hi > largest->per_s.hi)
			largest = &s[i];
	return largest;
}

static void print_others(const struct page *page, size_t first, size_t n)
{
	const struct sp_leak_site *s = &page->sites->sites[first];
	const struct sp_leak_site *largest = largest_of(s, n);
	const uint64_t period = usual_period(s, n);
	FILE *out = page->out;

	fprintf(out,
		"\nUndecided whether they grow, for too few samples: "
		"%zu %s.\n",
		n, sp_view_row_noun(page->aggregate->granularity, n));
	if (largest->per_s.hi > 0) {
		fputs("  ", out);
		print_most(page, largest->per_s.hi, largest);
	}
	fputs(n > 1 ? "  to tell of half of them, run longer"
		    : "  to tell, run longer",
	      out);
	if (period >= PERIOD_MIN)
		fprintf(out, " or with --period %" PRIu64 "K\n",
			period / PERIOD_MIN);
	else if (period)
		fputs(" or with --period 1 (every allocation)\n", out);
	else
		fputs(": no period helps\n", out);
}

static void print_steady(const struct page *page, size_t first, size_t n)
{
	const struct sp_leak_site *s = &page->sites->sites[first];
	const struct sp_leak_site *largest = s;
	double most;

	/* in the second half: what grew before has stopped */
	for (size_t i = 1; i < n; i++)
		if (s[i].leak->half_bytes.hi > largest->leak->half_bytes.hi)
			largest = &s[i];
	most = largest->leak->half_bytes.hi / (page->sites->seconds / 2);
	fprintf(page->out, "\nSteady: %zu %s", n,
		sp_view_row_noun(page->aggregate->granularity, n));
	fputs(".\n", page->out);
	if (!(most > 0))
		return;
	fputs("  at the end ", page->out);
	print_most(page, most, largest);
}

/* Nothing that may be one is called none. */
static void print_no_leak(const struct page *page)
{
	const struct sp_leak_sites *s = page->sites;
	double largest = 0, most = 0;
	size_t n = 0, n_others = 0;

	for (size_t i = 0; i < s->n_sites; i++) {
		const struct sp_leak_site *site = &s->sites[i];
		const enum section section = section_of(site->leak);

		if (section == GROWING) {
			largest = fmax(largest, site->per_s.value);
			n++;
		} else if (section == OTHERS) {
			most = fmax(most, site->per_s.hi);
			n_others++;
		}
	}
	if (!n && most > 0)
		fprintf(page->out,
			"\nNo leak is certain: %zu %s ha%s too few samples (at "
			"most %s/s more).\n",
			n_others,
			sp_view_row_noun(page->aggregate->granularity,
					 n_others),
			n_others == 1 ? "s" : "ve",
			sp_text_bytes_beyond(most, true).text);
	else if (n)
		fprintf(page->out,
			"\nNo leak is certain: %zu %s may leak, %s %s/s.\n", n,
			sp_view_row_noun(page->aggregate->granularity, n),
			n == 1 ? "at" : "the largest at",
			sp_text_bytes(largest).text);
	else
		fprintf(page->out, "\nNo leak was found%s.\n",
			page->aggregate->analysis->filter
				? " in these call stacks"
				: "");
}

static void print_sections(const struct page *page)
{
	const struct sp_leak_sites *s = page->sites;
	size_t first = 0, n;

	if (!s->leaks->judging.n_leaks)
		print_no_leak(page);
	for (enum section at = LEAKS; at < SECTIONS; at++, first += n) {
		for (n = 0; first + n < s->n_sites &&
			    section_of(s->sites[first + n].leak) == at;)
			n++;
		if (!n)
			continue;
		if (at == OTHERS)
			print_others(page, first, n);
		else if (at == STEADY)
			print_steady(page, first, n);
		else
			print_section(page, first, n, at);
	}
}

/* ---- notes ---- */

static void print_notes(const struct page *page)
{
	const struct sp_profile *p = page->profile;
	const struct sp_leaks *l = page->sites->leaks;
	const uint64_t *edge = l->clock.edge_ns;
	const uint64_t lost = sp_profile_lost_samples(p);
	FILE *out = page->out;
	bool in_steps = false;

	for (size_t i = 0; i < page->sites->n_sites; i++)
		in_steps |= page->sites->sites[i].leak->in_steps;
	fputs("\nnotes:\n", out);
	if (l->judging.n_leaks)
		fprintf(out,
			"  - on average at most %.0f %% of the sites called "
			"leaks do not leak\n"
			"  - a cache below its limit looks like a leak, and so "
			"do data that a program\n"
			"    builds up until it ends\n",
			SP_LEAK_RATE * 100);
	fputs("  - objects that lived for less than a window are in no "
	      "figure\n",
	      out);
	if (in_steps)
		fputs("  - in steps: by few objects, or in few of the "
		      "windows\n",
		      out);
	if (l->teardown_ns != SP_NEVER)
		fprintf(out,
			"  - from %s on the program freed what it had: that "
			"part is not judged\n",
			sp_text_moment(l->teardown_ns).text);
	if (l->left_idle) {
		fputs("  - not judged: ", out);
		if (edge[0])
			fprintf(out, "before %s and ",
				sp_text_moment(edge[0]).text);
		fprintf(out, "after %s, when it allocated next to nothing\n",
			sp_text_moment(edge[SP_GROWTH_WINDOWS]).text);
	}
	if (l->is_uneven)
		fputs("  - it allocated unevenly: windows were also cut by "
		      "bytes\n",
		      out);
	if (sp_profile_off_bytes(p))
		fprintf(out,
			"  - %s were allocated while nothing was sampled, and "
			"are not judged\n",
			sp_text_bytes((double)sp_profile_off_bytes(p)).text);
	if (p->discarded_bytes)
		fprintf(out,
			"  - the samples of %s were discarded to keep the file "
			"to its size, and are not judged\n",
			sp_text_bytes((double)p->discarded_bytes).text);
	if (lost)
		fprintf(out, "  - %s sample%s lost\n", sp_text_count(lost).text,
			lost == 1 ? " was" : "s were");
}

void sp_leaks_write_text(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_leak_sites *sites,
			 const struct sp_leaks_options *options)
{
	const struct page page = {
		.out = out,
		.aggregate = aggregate,
		.sites = sites,
		.profile = aggregate->analysis->profile,
		.top = options->top,
	};

	print_head(&page);
	print_sections(&page);
	print_notes(&page);
}
