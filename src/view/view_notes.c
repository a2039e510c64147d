/* SPDX-License-Identifier: MIT */
#include "view/view_notes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "text/text.h"

#define PROBLEMS_MAX 10

/* Samples that a suggested period should give, at least: about 25 % off. */
#define WANTED_SAMPLES 64

struct notes {
	FILE *out;
	unsigned int count;
	unsigned int problems;
};

/* Begin a note; the caller writes the rest of the line. */
static FILE *note(struct notes *notes)
{
	if (!notes->count++)
		fputs("\nnotes:\n", notes->out);
	fputs("  - ", notes->out);
	return notes->out;
}

/* A power of two as SAMPLEPROF_PERIOD takes it. */
static void print_period(FILE *out, uint64_t bytes)
{
	static const char *const suffixes[] = {"", "K", "M", "G", "T"};
	size_t unit = 0;

	while (bytes >= 1024 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	fprintf(out, "SAMPLEPROF_PERIOD=%" PRIu64 "%s", bytes, suffixes[unit]);
}

static void note_no_samples(struct notes *notes, const struct sp_profile *p)
{
	uint64_t period = 1;
	FILE *out;

	if (sp_profile_samples(p))
		return;
	out = note(notes);
	if (!p->exact_alloc_bytes) {
		fprintf(out, "0 samples: no allocation was %s\n",
			p->end == SP_PROFILE_END_CLEAN
				? "seen"
				: "seen yet that is published");
		return;
	}
	while (period <= p->exact_alloc_bytes / WANTED_SAMPLES / 2)
		period *= 2;
	fprintf(out, "0 samples: %s allocated, period %s",
		sp_text_bytes((double)p->exact_alloc_bytes).text,
		sp_text_size(p->period_bytes).text);
	if (period < p->period_bytes) {
		fputs("; to see more use ", out);
		print_period(out, period);
	}
	putc('\n', out);
}

/* That there is no sample bounds the bytes. */
static void note_empty_view(struct notes *notes, const struct sp_analysis *a)
{
	const struct sp_interval bytes =
		sp_estimate_bytes(&a->how, &a->view->all);

	if (a->view->all.all.samples || !sp_profile_samples(a->profile))
		return;
	fputs("nothing in this view was sampled", note(notes));
	if (bytes.hi > 0) {
		fputs(": it has ", notes->out);
		sp_text_print_estimate(notes->out, bytes, 0, a->how.confidence);
		fprintf(notes->out, ", which is %.1f periods",
			bytes.hi / (double)a->profile->period_bytes);
	}
	putc('\n', notes->out);
}

static void note_diagnosis(struct notes *notes, const struct sp_profile *p)
{
	const char *diagnosis = sp_profile_info(p, "diagnosis");

	if (!diagnosis || !*diagnosis)
		return;
	sp_text_print(note(notes), diagnosis);
	putc('\n', notes->out);
}

static void note_programs(struct notes *notes, const struct sp_profile *p)
{
	const char *first;

	for (size_t i = 1; i < p->n_parts; i++) {
		first = sp_text_base_name(p->parts[0].program);
		if (strcmp(first, sp_text_base_name(p->parts[i].program)) == 0)
			continue;
		fputs("files of different programs are added up: ",
		      note(notes));
		sp_text_print(notes->out, first);
		fputs(", ", notes->out);
		sp_text_print(notes->out,
			      sp_text_base_name(p->parts[i].program));
		fputs(i + 1 < p->n_parts ? ", ...\n" : "\n", notes->out);
		return;
	}
}

static void note_outside(struct notes *notes, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;
	const struct sp_estimation how = {.method = SP_METHOD_P3,
					  .confidence = a->how.confidence};
	struct sp_interval estimate =
		sp_estimate_bytes(&how, &a->population.all);
	double least = (double)(p->exact_alloc_bytes - p->unsampled_bytes);
	double most = least + (double)p->missing_bytes_max;

	if (least > estimate.hi || most < estimate.lo)
		fprintf(note(notes),
			"the exact total lies outside the %s interval of its "
			"estimate: chance in up to one run of %.0f, else a "
			"sign of losses\n",
			sp_text_level(how.confidence).text,
			nearbyint(1 / (1 - how.confidence)));
}

/* Exact totals by size would have made intervals narrower. */
static void note_without_totals(struct notes *notes,
				const struct sp_analysis *a)
{
	const struct sp_population *population = &a->population;

	if (a->how.method != SP_METHOD_P3T || population->has_totals ||
	    !sp_profile_samples(a->profile))
		return;
	fprintf(note(notes),
		"exact totals per size class are not used, intervals are wider "
		"for it: %s\n",
		population->why_without ? population->why_without
					: "the file has none");
}

/* Rows of the peak are sums, its value is kept within its limits (E25). */
static void note_peak(struct notes *notes, const struct sp_analysis *a)
{
	const double rows = sp_estimate_bytes_value(&a->how, &a->view->all);

	if (a->selection.view != SP_VIEW_PEAK ||
	    fabs(rows - a->peak.bytes.value) <= 0.005 * rows)
		return;
	fprintf(note(notes), "rows do not add up to the peak above: %s\n",
		a->filter ? "they are of the moment at which most of all was "
			    "alive"
		: a->profile->n_parts
			? "several processes need not have had theirs at one "
			  "time"
			: "it is moved to the nearer of its limits");
}

static void note_live(struct notes *notes, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;

	if (!a->live)
		return;
	if (sp_profile_info(p, "forked"))
		fputs("this is a forked child: what its parent had allocated "
		      "before the fork is not among its live bytes\n",
		      note(notes));
	if (p->unmatched_frees)
		fprintf(note(notes),
			"%s frees are of samples that the file does not have\n",
			sp_text_count(p->unmatched_frees).text);
}

static void note_losses(struct notes *notes, const struct sp_profile *p)
{
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++)
		if (p->losses[i])
			fprintf(note(notes), "%s %s: %s\n",
				sp_text_count(p->losses[i]).text,
				sp_loss_name(i), sp_loss_help(i));
}

static void note_damage(struct notes *notes, const struct sp_profile *p)
{
	if (!p->damaged_records && !p->ignored_bytes && !*p->damage)
		return;
	fprintf(note(notes), "the file is damaged: %s bad record%s, %s ignored",
		sp_text_count(p->damaged_records).text,
		sp_text_plural(p->damaged_records),
		sp_text_size(p->ignored_bytes).text);
	if (*p->damage) {
		fputs("; first: ", notes->out);
		sp_text_print(notes->out, p->damage);
	}
	putc('\n', notes->out);
}

static void note_unfinished(struct notes *notes, const struct sp_profile *p)
{
	if (!p->unfinished_records)
		return;
	fprintf(note(notes),
		"%s record%s unfinished when the process %s: nothing else is "
		"missing for it\n",
		sp_text_count(p->unfinished_records).text,
		p->unfinished_records == 1 ? " was" : "s were",
		p->end == SP_PROFILE_END_KILLED ? "was killed" : "ended");
}

/* Stacks with a flag, of what the report is about. */
static void note_stacks(struct notes *notes,
			const struct sp_aggregate *aggregate, uint32_t flag,
			const char *text)
{
	double flagged = 0;

	for (size_t i = 0; i < aggregate->n_stacks; i++)
		if (aggregate->stacks[i].stack->flags & flag)
			flagged += aggregate->stacks[i].tally->all.est_bytes;
	if (flagged > 0)
		fprintf(note(notes), "%s of the bytes are in stacks %s\n",
			sp_text_percent(
				flagged,
				aggregate->analysis->view->all.all.est_bytes)
				.text,
			text);
}

static void note_cut_stacks(struct notes *notes,
			    const struct sp_aggregate *aggregate)
{
	const char *unwinder =
		sp_profile_info(aggregate->analysis->profile, "unwinder");

	note_stacks(notes, aggregate, SP_STACK_TRUNCATED,
		    "deeper than the limit: cum of their outer functions is "
		    "low; raise SAMPLEPROF_DEPTH");
	note_stacks(notes, aggregate, SP_STACK_NO_POINTER,
		    unwinder && strcmp(unwinder, "fp") == 0
			    ? "that end at code whose callers cannot be found: "
			      "functions are missing; "
			      "SAMPLEPROF_UNWIND=tables finds them"
			    : "that end at code whose callers cannot be found: "
			      "outer functions are missing");
}

static void note_problem(void *arg, const struct sp_module *module,
			 const char *reason)
{
	struct notes *notes = arg;

	if (++notes->problems > PROBLEMS_MAX)
		return;
	fputs("no symbols for ", note(notes));
	sp_text_print(notes->out, module->path);
	fputs(": ", notes->out);
	sp_text_print(notes->out, reason);
	putc('\n', notes->out);
}

static void note_problems(struct notes *notes,
			  const struct sp_aggregate *aggregate)
{
	sp_symbolizer_problems(aggregate->symbolizer, note_problem, notes);
	if (notes->problems > PROBLEMS_MAX)
		fprintf(note(notes), "no symbols for %u more (see --json)\n",
			notes->problems - PROBLEMS_MAX);
}

/* Such names are as good as the machine they were looked up on. */
static void note_stored(struct notes *notes,
			const struct sp_aggregate *aggregate)
{
	size_t named, stored;

	sp_symbolizer_count(aggregate->symbolizer, &named, &stored);
	if (stored)
		fprintf(note(notes),
			"names of %s of %s addresses are those that are stored "
			"in the profile (sampleprof-report symbolize)\n",
			sp_text_count(stored).text, sp_text_count(named).text);
}

static void note_times(struct notes *notes, const struct sp_profile *p)
{
	if (!p->time_error_ns)
		return;
	fputs("times are right to within ", note(notes));
	fputs(sp_text_duration(p->time_error_ns).text, notes->out);
	fputs(": the file was packed (sampleprof-report symbolize)\n",
	      notes->out);
}

void sp_view_notes_print_completeness(FILE *out, const struct sp_profile *p)
{
	fputs("\nfile: ", out);
	switch (p->end) {
	case SP_PROFILE_END_CLEAN:
		fputs("complete, the process ended cleanly", out);
		break;
	case SP_PROFILE_END_KILLED:
		fputs("ends where the process was killed or left without "
		      "exit()",
		      out);
		break;
	case SP_PROFILE_END_EXEC:
		fputs("ends where the process executed another program", out);
		break;
	case SP_PROFILE_END_RUNNING:
		fputs("the process is still running: figures as of now", out);
		break;
	}
	if (p->missing_bytes_max)
		fprintf(out, "; up to %s may be missing from exact totals",
			sp_text_bytes((double)p->missing_bytes_max).text);
	putc('\n', out);
}

void sp_view_notes_print(FILE *out, const struct sp_analysis *analysis,
			 const struct sp_aggregate *aggregate)
{
	const struct sp_profile *p = analysis->profile;
	struct notes notes = {.out = out};

	note_no_samples(&notes, p);
	note_empty_view(&notes, analysis);
	note_diagnosis(&notes, p);
	note_programs(&notes, p);
	note_outside(&notes, analysis);
	note_peak(&notes, analysis);
	note_without_totals(&notes, analysis);
	note_live(&notes, analysis);
	note_losses(&notes, p);
	note_damage(&notes, p);
	note_unfinished(&notes, p);
	note_times(&notes, p);
	if (!aggregate)
		return;
	note_cut_stacks(&notes, aggregate);
	note_problems(&notes, aggregate);
	note_stored(&notes, aggregate);
}
