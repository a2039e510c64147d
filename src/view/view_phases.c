/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <errno.h>
#include <inttypes.h>

#include "text/lines.h"
#include "text/table.h"
#include "text/text.h"

/* A line of its own, if a moment came later than it had been asked for. */
static void print_late(FILE *out, uint64_t asked_ns, uint64_t ns)
{
	if (asked_ns == ns)
		return;
	fprintf(out, "    asked for at %s,", sp_text_moment(asked_ns).text);
	fprintf(out, " done at %s\n", sp_text_moment(ns).text);
}

static const char *kind_of_totals(const struct sp_profile *p)
{
	return sp_profile_is_exact(p) ? "exact totals"
				      : "lower limits of their totals";
}

static void print_row(FILE *out, const struct sp_phase *phase,
		      const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;

	fprintf(out, "  %12s %11s %6s %14s %9s",
		sp_text_duration(phase->duration_ns).text,
		sp_text_bytes((double)phase->alloc_bytes).text,
		sp_text_percent((double)phase->alloc_bytes,
				(double)p->exact_alloc_bytes)
			.text,
		sp_text_count(phase->alloc_objects).text,
		sp_text_count(phase->sums.all.samples).text);
	fprintf(out, " %6zu  ", phase->n_times);
	sp_text_print(out, sp_phase_name(phase->name));
	if (phase->unsampled_bytes > phase->discarded_bytes)
		fprintf(out, " (%s of it unsampled)",
			sp_text_bytes((double)(phase->unsampled_bytes -
					       phase->discarded_bytes))
				.text);
	if (phase->discarded_bytes)
		fprintf(out, " (%s of it discarded)",
			sp_text_bytes((double)phase->discarded_bytes).text);
	if (phase->slack_bytes)
		fprintf(out, " (up to %s may belong to a neighbour)",
			sp_text_bytes_beyond((double)phase->slack_bytes, true)
				.text);
	putc('\n', out);
	if (phase->late)
		print_late(out, phase->late->asked_ns, phase->late->from_ns);
}

/* A screen has no line to give away. */
static const char *below_title(void)
{
	return sp_lines_is_terminal() ? "" : "\n";
}

static void print_snapshots(FILE *out, const struct sp_profile *p, size_t rows)
{
	const size_t n = rows && rows < p->n_snapshots ? rows : p->n_snapshots;

	if (!n)
		return;
	fprintf(out, "\nSnapshots, with %s (--at NAME looks at one):\n%s",
		kind_of_totals(p), below_title());
	fprintf(out, "  %12s %11s %14s  snapshot\n", "time", "bytes",
		"objects");
	for (size_t i = 0; i < n; i++) {
		const struct sp_snapshot *s = &p->snapshots[i];

		fprintf(out, "  %12s %11s %14s  ",
			sp_text_moment(s->time_ns).text,
			sp_text_bytes((double)s->alloc_bytes).text,
			sp_text_count(s->alloc_objects).text);
		sp_text_print(out, s->name);
		putc('\n', out);
		print_late(out, s->asked_ns, s->time_ns);
	}
	if (n < p->n_snapshots)
		fprintf(out, "  and %zu more: --json has all\n",
			p->n_snapshots - n);
}

int sp_view_phases_print(FILE *out, const struct sp_analysis *analysis,
			 size_t rows, struct sp_error *err)
{
	struct sp_phases *phases;
	int r = sp_phases_new(analysis, false, &phases, err);
	size_t n;

	if (r < 0)
		return r;
	n = rows && rows < phases->n ? rows : phases->n;
	if (phases->has_names) {
		fprintf(out,
			"\nPhases, with %s (--phase NAME looks at "
			"one):\n%s",
			kind_of_totals(analysis->profile), below_title());
		fprintf(out, "  %12s %11s %6s %14s %9s %6s  phase\n", "time",
			"bytes", "%", "objects", "samples", "times");
		for (size_t i = 0; i < n; i++)
			print_row(out, &phases->phases[i], analysis);
		if (n < phases->n)
			fprintf(out, "  and %zu more: --json has all\n",
				phases->n - n);
	}
	print_snapshots(out, analysis->profile, rows);
	sp_phases_free(phases);
	return 0;
}

/* ---- --by phase ---- */

#define ESTIMATE_WIDTH 31

static int view_phases(const struct sp_analysis *analysis,
		       struct sp_phases **ret, struct sp_error *err)
{
	if (!analysis->profile->n_stretches)
		return sp_error_set(err, -ENODATA, analysis->profile->path,
				    "there are no phases: the program marked "
				    "none (sampleprof_mark, sampleprof ctl "
				    "mark)");
	return sp_phases_new(analysis, true, ret, err);
}

int sp_view_phases_print_view(FILE *out, const struct sp_analysis *analysis,
			      struct sp_error *err)
{
	const double whole =
		sp_estimate_bytes(&analysis->how, analysis->whole).value;
	const bool is_exact = sp_profile_is_exact(analysis->profile);
	bool has_few = false, has_bound = false;
	struct sp_phases *phases;
	int r = view_phases(analysis, &phases, err);

	if (r < 0)
		return r;
	fprintf(out, "\n  %*s %6s %12s %14s  phase\n", ESTIMATE_WIDTH,
		"bytes of the view", "%",
		is_exact ? "exact bytes" : "all bytes",
		is_exact ? "exact objects" : "all objects");
	for (size_t i = 0; i < phases->n; i++) {
		const struct sp_phase *phase = &phases->phases[i];
		const struct sp_interval bytes =
			sp_estimate_bytes(&analysis->how, &phase->sums);
		const struct sp_text_estimate text =
			sp_text_estimate(bytes, phase->sums.all.samples);

		has_few |= text.order == SP_TEXT_INTERVAL_FIRST;
		has_bound |= text.order == SP_TEXT_BOUND;
		fprintf(out, "  %*s %6s %12s %14s  ", ESTIMATE_WIDTH,
			sp_text_estimate_cell(bytes, phase->sums.all.samples)
				.text,
			sp_text_percent(bytes.value, whole).text,
			sp_text_bytes((double)phase->alloc_bytes).text,
			sp_text_count(phase->alloc_objects).text);
		sp_lines_print_name(out, sp_phase_name(phase->name));
		putc('\n', out);
	}
	sp_text_print_legend(out, has_few, has_bound, analysis->how.confidence);
	fprintf(out,
		"  %s that was allocated in the phase, whatever the view\n",
		is_exact ? "exact is all" : "all is the least");
	sp_phases_free(phases);
	return 0;
}

int sp_view_phases_csv(FILE *out, const struct sp_analysis *analysis,
		       struct sp_error *err)
{
	struct sp_phases *phases;
	int r = view_phases(analysis, &phases, err);

	if (r < 0)
		return r;
	fputs("phase,bytes,bytes_lo,bytes_hi,samples,exact_bytes,"
	      "exact_objects,unsampled_bytes,duration_ns,stretches\n",
	      out);
	for (size_t i = 0; i < phases->n; i++) {
		const struct sp_phase *phase = &phases->phases[i];

		sp_table_csv_text(out, phase->name);
		sp_table_csv_interval(
			out, sp_estimate_bytes(&analysis->how, &phase->sums));
		fprintf(out,
			",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64 ",%zu\n",
			phase->sums.all.samples, phase->alloc_bytes,
			phase->alloc_objects, phase->unsampled_bytes,
			phase->duration_ns, phase->n_stretches);
	}
	sp_phases_free(phases);
	return 0;
}

/* ---- JSON ---- */

static void put_phase(struct sp_json *json, const struct sp_phase *phase,
		      const struct sp_estimation *how)
{
	sp_json_open(json, NULL, '{');
	sp_json_string(json, "name", phase->name);
	sp_json_u64(json, "stretches", phase->n_stretches);
	sp_json_u64(json, "duration_ns", phase->duration_ns);
	sp_json_u64(json, "alloc_bytes", phase->alloc_bytes);
	sp_json_u64(json, "alloc_objects", phase->alloc_objects);
	sp_json_u64(json, "unsampled_bytes", phase->unsampled_bytes);
	sp_json_u64(json, "discarded_bytes", phase->discarded_bytes);
	sp_json_u64(json, "slack_bytes", phase->slack_bytes);
	sp_json_u64(json, "samples", phase->sums.all.samples);
	sp_json_interval(json, "estimated_bytes",
			 sp_estimate_bytes(how, &phase->sums));
	sp_json_close(json, '}');
}

static void put_stretch(struct sp_json *json, const struct sp_stretch *s)
{
	sp_json_open_flat(json, NULL, '{');
	sp_json_string(json, "phase", s->phase);
	sp_json_u64(json, "part", s->part);
	sp_json_u64(json, "from_ns", s->from_ns);
	sp_json_u64(json, "asked_ns", s->asked_ns);
	sp_json_time(json, "to_ns", s->to_ns);
	sp_json_u64(json, "period_bytes", s->period_bytes);
	sp_json_u64(json, "alloc_bytes", s->alloc_bytes);
	sp_json_u64(json, "alloc_objects", s->alloc_objects);
	sp_json_u64(json, "unsampled_bytes", s->unsampled_bytes);
	sp_json_u64(json, "discarded_bytes", s->discarded_bytes);
	sp_json_u64(json, "unsampled_objects", s->unsampled_objects);
	sp_json_u64(json, "slack_bytes", s->slack_bytes);
	sp_json_close(json, '}');
}

void sp_view_phases_json(struct sp_json *json,
			 const struct sp_analysis *analysis,
			 const struct sp_phases *phases)
{
	/* From the samples alone: the exact total stands beside it. */
	const struct sp_estimation how = sp_analysis_total_how(analysis);
	const struct sp_profile *p = analysis->profile;

	sp_json_open(json, "phases", '[');
	for (size_t i = 0; i < phases->n; i++)
		put_phase(json, &phases->phases[i], &how);
	sp_json_close(json, ']');
	sp_json_open(json, "stretches", '[');
	for (size_t i = 0; i < p->n_stretches; i++)
		put_stretch(json, &p->stretches[i]);
	sp_json_close(json, ']');
	sp_json_open(json, "snapshots", '[');
	for (size_t i = 0; i < p->n_snapshots; i++) {
		const struct sp_snapshot *s = &p->snapshots[i];

		sp_json_open_flat(json, NULL, '{');
		sp_json_string(json, "name", s->name);
		sp_json_u64(json, "part", s->part);
		sp_json_u64(json, "time_ns", s->time_ns);
		sp_json_u64(json, "asked_ns", s->asked_ns);
		sp_json_u64(json, "alloc_bytes", s->alloc_bytes);
		sp_json_u64(json, "alloc_objects", s->alloc_objects);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}
