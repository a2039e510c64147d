/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/phases.h"
#include "report/question.h"
#include "text/figures.h"
#include "text/lack.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "view/view_memory.h"

/* A longer command line would push the figures out of sight. */
#define COMMAND_BYTES_MAX 240

static void print_command(FILE *out, const char *command)
{
	char shown[COMMAND_BYTES_MAX + 1];
	size_t n = strnlen(command, COMMAND_BYTES_MAX);
	bool is_cut = command[n] != '\0';

	/* Never in the middle of a character. */
	while (is_cut && n && ((unsigned char)command[n] & 0xc0) == 0x80)
		n--;
	memcpy(shown, command, n);
	shown[n] = '\0';
	/* One line of a screen is enough of it. */
	if (sp_lines_is_terminal())
		sp_lines_print_name(out, shown);
	else
		sp_text_print(out, shown);
	if (is_cut)
		fputs(" ...", out);
}

#define PIDS_MAX 8u

/* A program that executes another one leaves it its number. */
static bool has_pid(const uint64_t *pids, size_t n, uint64_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void print_pids(FILE *out, const struct sp_profile *p)
{
	uint64_t shown[PIDS_MAX];
	size_t n = 0, n_shown = 0;

	fprintf(out, "\n  pid%s ", p->n_parts > 1 ? "s" : "");
	for (; n < p->n_parts; n++) {
		const uint64_t pid = p->parts[n].pid;

		if (has_pid(shown, n_shown, pid))
			continue;
		if (n_shown == PIDS_MAX)
			break;
		fprintf(out, "%s%" PRIu64, n ? ", " : "", pid);
		shown[n_shown++] = pid;
	}
	if (n < p->n_parts)
		fprintf(out, " and %zu more", p->n_parts - n);
}

/* Numbers of processes by kind of end, if they differ. */
static void print_ends(FILE *out, const struct sp_profile *p)
{
	static const char *const texts[] = {
		[SP_PROFILE_END_RUNNING] = "still running",
		[SP_PROFILE_END_CLEAN] = "ended cleanly",
		[SP_PROFILE_END_EXEC] = "executed another program",
		[SP_PROFILE_END_KILLED] = "without an end: killed, or _exit",
		[SP_PROFILE_END_DETACHED] = "detached",
	};
	size_t n[sizeof(texts) / sizeof(*texts)] = {0};
	const char *between = "";

	for (size_t i = 0; i < p->n_parts; i++)
		n[p->parts[i].end]++;
	if (n[p->end] == p->n_parts || p->n_parts == 1) {
		fputs(sp_lack_end_of(p).text, out);
		return;
	}
	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++) {
		if (!n[i])
			continue;
		fprintf(out, "%s%s %s", between, sp_text_count(n[i]).text,
			texts[i]);
		between = ", ";
	}
}

static void print_run(FILE *out, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;

	sp_style_begin(out, SP_STYLE_HEAD);
	fputs("sampleprof report: ", out);
	print_command(out, *p->command ? p->command : p->program);
	sp_style_begin(out, SP_STYLE_PLAIN);
	print_pids(out, p);
	if (*p->host) {
		fputs(" on ", out);
		sp_text_print(out, p->host);
	}
	fprintf(out, ", %s, ran %s, ", sp_text_time(p->start_unix_ns).text,
		sp_figure_length(p->duration_ns).text);
	print_ends(out, p);
	putc('\n', out);
}

/* Those that all files have. */
static void print_labels(FILE *out, const struct sp_profile *p)
{
	const char *key, *value;

	for (size_t i = 0; (key = sp_profile_label(p, i, &value)); i++) {
		fputs(i ? ", " : "  labels    ", out);
		sp_text_print(out, key);
		putc('=', out);
		sp_text_print(out, value);
	}
	if (sp_profile_label(p, 0, &value))
		putc('\n', out);
}

/* The process stands for others that were not recorded. */
static void print_fraction(FILE *out, const struct sp_profile *p)
{
	if (sp_profile_fraction(p) == 1)
		return;
	fprintf(out,
		"  fraction  %s of the processes were recorded: the figures "
		"below lack the others\n",
		sp_profile_info(p, "setting.fraction"));
}

/* The bytes that were discarded to limit the file's size. */
static void print_window(FILE *out, const struct sp_profile *p)
{
	if (!p->discarded_bytes)
		return;
	fprintf(out, "  discarded %s of that",
		sp_text_bytes((double)p->discarded_bytes).text);
	if (p->window_ns)
		fprintf(out, ", allocated before %s",
			sp_text_duration(p->window_ns).text);
	fputs(": estimates of allocations cover the rest", out);
	if (p->window_ns)
		fprintf(out, ", the last %s",
			sp_text_duration(p->duration_ns > p->window_ns
						 ? p->duration_ns - p->window_ns
						 : 0)
				.text);
	fputs(p->has_frees ? "; live objects are there from the start\n" : "\n",
	      out);
}

/* Instead of allocated bytes. */
static void print_made(FILE *out, const struct sp_profile *p)
{
	const struct sp_mapped *m = &p->mapped;

	fprintf(out, "  mapped    %s in %s mapping%s by the program itself%s\n",
		sp_text_bytes((double)m->made_bytes).text,
		sp_text_count(m->made).text, sp_text_plural(m->made),
		p->window_ns ? ", as far as the file has them" : ", in all");
	if (m->reserved_bytes && p->samples_of == SP_SAMPLES_MAPPED)
		fprintf(out,
			"  reserved  %s more, without access: --view "
			"reserved\n",
			sp_text_bytes((double)m->reserved_bytes).text);
}

/* Then there is no figure of the heap. */
static bool has_seen_none(const struct sp_profile *p)
{
	return p->has_unseen && !p->exact_alloc_objects;
}

static void print_exact(FILE *out, const struct sp_profile *p)
{
	const bool is_exact = sp_profile_is_exact(p);
	const double more = (double)p->missing_bytes_max;

	if (p->samples_of != SP_SAMPLES_ALLOCATED) {
		print_made(out, p);
		return;
	}
	if (has_seen_none(p)) {
		fputs("  allocated not seen: see the notes\n", out);
		return;
	}
	if (p->missing_bytes_max == UINT64_MAX && !p->exact_alloc_bytes) {
		fputs("  allocated not known: the file lacks totals\n", out);
		return;
	}
	fprintf(out, "  allocated %s in %s allocation%s%s",
		sp_figure_counted(p->exact_alloc_bytes, is_exact).text,
		sp_text_count(p->exact_alloc_objects).text,
		sp_text_plural(p->exact_alloc_objects),
		is_exact ? ", exact" : "");
	if (more > 0 && p->missing_bytes_max != UINT64_MAX && !p->is_cut)
		fprintf(out, " (up to %s more)",
			sp_text_bytes_beyond(more, true).text);
	putc('\n', out);
	if (sp_profile_off_bytes(p))
		fprintf(out,
			"  unsampled %s of that: sampling was off, and the "
			"estimates below lack it\n",
			sp_text_bytes((double)sp_profile_off_bytes(p)).text);
	print_window(out, p);
}

/* Of the phase that was asked for. */
static void print_phase(FILE *out, const struct sp_analysis *a)
{
	const struct sp_class_total total =
		sp_phase_total(a->profile, a->selection.phase);
	const bool is_exact = sp_profile_is_exact(a->profile);

	fprintf(out, "  phase     %s in %s allocation%s%s: ",
		sp_figure_counted(total.bytes, is_exact).text,
		sp_text_count(total.objects).text,
		sp_text_plural(total.objects), is_exact ? ", exact" : "");
	sp_text_print(out, sp_phase_name(a->selection.phase));
	putc('\n', out);
}

static void print_when(FILE *out, uint64_t at_ns, const struct sp_profile *p)
{
	fprintf(out, " %s", sp_lack_when(p, at_ns).text);
}

/* Chosen from the samples' times, which a packed file knows less well. */
static void print_peak_moment(FILE *out, const struct sp_profile *p,
			      uint64_t ns)
{
	if (ns == SP_NEVER)
		print_when(out, SP_NEVER, p);
	else
		fprintf(out, " at %s",
			sp_text_moment_within(ns, p->time_error_ns).text);
}

static void print_sums(FILE *out, const struct sp_analysis *a,
		       const struct sp_class_sums *sums)
{
	const struct sp_estimation *how = &a->how;

	fputs(sp_text_estimate_cell(sp_estimate_bytes(how, sums),
				    sums->all.samples)
		      .text,
	      out);
	if (!sums->all.samples)
		return;
	fputs(" in ", out);
	if (a->profile->samples_of != SP_SAMPLES_ALLOCATED) {
		fprintf(out, "%s mapping%s",
			sp_text_count(sums->all.samples).text,
			sp_text_plural(sums->all.samples));
		return;
	}
	sp_text_print_objects(out, sp_estimate_objects(how, sums));
}

/* If only some of the allocations are selected. */
static void print_chosen(FILE *out, const struct sp_analysis *a)
{
	if (!sp_selection_is_subset(&a->selection))
		return;
	fputs("  chosen    ", out);
	print_sums(out, a, &a->alloc->all);
	fputs(" of that\n", out);
}

/* Nothing is said of when that is which is not known at all. */
static void print_live_sums(FILE *out, const struct sp_analysis *a,
			    const struct sp_whole *whole)
{
	const struct sp_class_sums *sums = &a->live->all;

	if (sums->is_unknown && !sums->all.samples) {
		fputs("not known", out);
		if (whole->known_ns && whole->known_ns != SP_NEVER)
			fprintf(out, " after %s",
				sp_text_moment(whole->known_ns).text);
		return;
	}
	if (sums->is_unknown)
		fputs(sp_text_bytes(sp_estimate_bytes_value(&a->how, sums))
			      .text,
		      out);
	else
		print_sums(out, a, sums);
	print_when(out, a->live_at_ns, a->profile);
}

static void print_live(FILE *out, const struct sp_analysis *a)
{
	const struct sp_whole whole = sp_whole_of(a->profile);

	if (!a->live || has_seen_none(a->profile))
		return;
	fputs(a->profile->resident ? "  resident  " : "  live      ", out);
	print_live_sums(out, a, &whole);
	putc('\n', out);
	if (a->profile->is_timeless) {
		fputs("  peak      not known from hourly sums: see "
		      "`sampleprof fleet report`\n",
		      out);
		return;
	}
	fputs("  peak      ", out);
	if (isfinite(a->peak.bytes.hi))
		fputs(sp_text_estimate_cell(a->peak.bytes, a->peak.samples)
			      .text,
		      out);
	else
		fputs(sp_text_interval(a->peak.bytes).text, out);
	if (a->peak.samples &&
	    (isfinite(a->peak.bytes.hi) || a->peak.bytes.lo > 0))
		print_peak_moment(out, a->profile, a->peak.rows_ns);
	if (a->profile->window_ns && whole.is_turned)
		fprintf(out, "; before %s it is not known",
			sp_text_duration(a->profile->window_ns).text);
	putc('\n', out);
}

static void print_view_peak(FILE *out, const struct sp_analysis *a)
{
	const uint64_t at_ns = a->selection.at_ns;
	const bool is_peak = at_ns == a->peak.time_ns || a->filter;

	fprintf(out, "peak: what was alive%s",
		is_peak ? " at the peak of live bytes," : "");
	print_peak_moment(out, a->profile, a->selection.peak_ns);
	fputs(is_peak                     ? ""
	      : at_ns == a->peak.other_ns ? ", which may be the peak as well"
					  : ", not the peak of live bytes",
	      out);
}

static void print_view_moment(FILE *out, const struct sp_analysis *a)
{
	const struct sp_selection *s = &a->selection;
	const struct sp_profile *p = a->profile;

	switch (s->view) {
	case SP_VIEW_ALLOC:
		fputs("alloc: what was allocated", out);
		return;
	case SP_VIEW_LIVE:
		fputs(p->samples_of == SP_SAMPLES_MAPPED
			      ? "mapped: what is mapped"
		      : p->samples_of == SP_SAMPLES_RESERVED
			      ? "reserved: what is mapped without access"
		      : p->resident ? "resident: what is alive in resident "
				      "pages"
				    : "live: what is alive",
		      out);
		print_when(out, s->at_ns, p);
		return;
	case SP_VIEW_PEAK:
		print_view_peak(out, a);
		return;
	case SP_VIEW_LEAKS:
		fprintf(out, "leaks: what is older than %s and alive%s",
			sp_text_moment(s->tail_ns).text,
			p->resident ? " in resident pages" : "");
		print_when(out, s->at_ns, p);
		return;
	case SP_VIEW_TEMPORARY:
		break;
	}
	if (s->within_ns != SP_NEVER)
		fprintf(out, "temporary: freed by its own thread within %s",
			sp_text_moment(s->within_ns).text);
	else if (s->within_bytes)
		fprintf(out,
			"temporary: freed by its own thread within %s of "
			"allocations",
			sp_text_size(s->within_bytes).text);
	else
		fputs("temporary: freed before its thread allocated anything "
		      "else",
		      out);
}

/* Rows are of one moment: how to see those of the other. */
static void print_other_peak(FILE *out, const struct sp_analysis *a)
{
	const struct sp_selection *s = &a->selection;

	if (s->view != SP_VIEW_PEAK || a->filter ||
	    a->peak.other_ns == SP_NEVER || s->at_ns != a->peak.time_ns)
		return;
	fprintf(out, "  or        %s",
		sp_text_estimate_cell(a->peak.other_bytes, a->peak.samples)
			.text);
	print_peak_moment(out, a->profile, a->peak.other_ns);
	fprintf(out, ", see --view peak --at %" PRIu64 "ns\n",
		a->peak.other_ns);
}

static void print_subset(FILE *out, const struct sp_analysis *a)
{
	const struct sp_selection *s = &a->selection;

	if (s->from_ns)
		fprintf(out, ", born from %s on",
			sp_text_moment(s->from_ns).text);
	if (s->to_ns != SP_NEVER)
		fprintf(out, ", born before %s", sp_text_moment(s->to_ns).text);
	if (s->min_size_bytes > 1)
		fprintf(out, ", of %s and more",
			sp_text_size(s->min_size_bytes).text);
	if (s->max_size_bytes != UINT64_MAX)
		fprintf(out, ", of %s at most",
			sp_text_size(s->max_size_bytes).text);
	if (s->phase) {
		fputs(", in phase ", out);
		sp_text_print(out, sp_phase_name(s->phase));
	}
	if (s->thread)
		fprintf(out, ", by thread %" PRIu32, s->thread);
}

/* The total of the rows below, unless a line above has it. */
static void print_selected(FILE *out, const struct sp_analysis *a)
{
	if (a->view == a->alloc || a->view == a->live)
		return;
	fputs("  rows      ", out);
	print_sums(out, a, &a->view->all);
	if (a->selection.view == SP_VIEW_TEMPORARY && a->view->all.all.samples)
		fprintf(out, ", %s of the allocated bytes",
			sp_text_percent(
				sp_estimate_bytes_value(&a->how, &a->view->all),
				sp_estimate_bytes_value(&a->how,
							&a->alloc->all))
				.text);
	putc('\n', out);
}

static size_t count_stacks(const struct sp_sums *sums, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += sums->stacks[i].all.samples != 0;
	return count;
}

void sp_view_summary_print_filter(FILE *out, const struct sp_analysis *a)
{
	const size_t n = a->profile->n_stacks;
	const struct sp_filter_patterns *patterns;
	size_t n_all;

	if (!a->filter)
		return;
	patterns = sp_filter_patterns_of(a->filter);
	n_all = count_stacks(a->unfiltered, n);
	fputs("  filter   ", out);
	for (int i = 0; i < SP_FILTER_COUNT; i++) {
		if (!patterns->text[i] || !*patterns->text[i])
			continue;
		fprintf(out, " %s ", sp_filter_name((enum sp_filter_kind)i));
		sp_text_print_shell(out, patterns->text[i]);
	}
	fprintf(out, ": %s of %s call stack%s, %s of the bytes\n",
		sp_text_count(count_stacks(a->view, n)).text,
		sp_text_count(n_all).text, sp_text_plural(n_all),
		sp_text_percent(sp_estimate_bytes_value(&a->how, &a->view->all),
				sp_estimate_bytes_value(&a->how, a->whole))
			.text);
}

static void print_level(FILE *out, const struct sp_analysis *a,
			const struct sp_estimation *how)
{
	fprintf(out, "intervals %s", sp_text_level(a->how.confidence).text);
	if (how->confidence > a->how.confidence)
		fprintf(out,
			", of rows %s, so that all rows of a column hold "
			"together",
			sp_text_level(how->confidence).text);
	fprintf(out, ", method %s", sp_method_name(how->method));
	if (how->method != SP_METHOD_P3T)
		fprintf(out, " (%s)", sp_method_assumes(how->method));
}

static void print_places(FILE *out, const struct sp_profile *p, size_t n_stacks)
{
	fprintf(out, " %s stack%s, %s thread%s", sp_text_count(n_stacks).text,
		sp_text_plural(n_stacks), sp_text_count(p->threads).text,
		sp_text_plural(p->threads));
}

static void end_method(FILE *out)
{
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc('\n', out);
}

/* It may have changed: by an order, or near the limit of memory. */
static void print_period(FILE *out, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;
	const struct sp_acc *all = &a->alloc->all.all;

	fputs("period ", out);
	if (sp_profile_rate(p))
		fputs("up to ", out);
	else if (all->samples && all->period_min_bytes < p->period_bytes)
		fprintf(out, "%s to ",
			sp_text_size(all->period_min_bytes).text);
	fprintf(out, "%s%s%s", sp_text_size(p->period_bytes).text,
		p->period_bytes == 1 ? " (every allocation)" : "",
		p->law.is_dotnet ? " by .NET's law" : "");
}

void sp_view_summary_print_method(FILE *out, const struct sp_analysis *a,
				  const struct sp_estimation *how)
{
	const struct sp_profile *p = a->profile;
	const size_t n_stacks = count_stacks(a->alloc, p->n_stacks);
	const struct sp_whole whole = sp_whole_of(p);

	putc('\n', out);
	sp_style_begin(out, SP_STYLE_QUIET);
	if (p->samples_of != SP_SAMPLES_ALLOCATED) {
		fprintf(out, "every mapping of %s and more%s,",
			sp_text_size(SP_FORMAT_MAP_BYTES_MIN).text,
			sp_whole_is_all(&whole) ? ", exact" : "");
		print_places(out, p, n_stacks);
		end_method(out);
		return;
	}
	if (sp_profile_samples(p)) {
		print_level(out, a, how);
		fputs("; ", out);
	}
	print_period(out, a);
	fprintf(out, ", %s sample%s,",
		sp_text_count(sp_profile_samples(p)).text,
		sp_text_plural(sp_profile_samples(p)));
	print_places(out, p, n_stacks);
	/* At the end, which a low screen may cut. */
	if (sp_profile_samples(p) && how->method == SP_METHOD_P3T &&
	    !a->population.has_totals)
		fprintf(out, "; without totals by size (%s)",
			a->population.why_without);
	end_method(out);
}

void sp_view_summary_print_header(FILE *out, const struct sp_analysis *a)
{
	print_run(out, a);
	print_labels(out, a->profile);
	print_fraction(out, a->profile);
	sp_view_memory_print_limit(out, a->profile);
	print_exact(out, a->profile);
	if (a->selection.phase)
		print_phase(out, a);
	print_chosen(out, a);
	print_live(out, a);
	sp_view_memory_print_mapped(out, a);
	sp_view_memory_print_rss(out, a);
}

void sp_view_summary_print_view(FILE *out, const struct sp_analysis *a)
{
	fputs("  view      ", out);
	print_view_moment(out, a);
	print_subset(out, a);
	putc('\n', out);
	print_other_peak(out, a);
	sp_view_summary_print_filter(out, a);
	print_selected(out, a);
}
