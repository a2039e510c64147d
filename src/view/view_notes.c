/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "text/lack.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "view/view_note.h"

/* Samples that a suggested period should give, at least: about 25 % off. */
#define WANTED_SAMPLES 64

/* A smaller part of the bytes is no news. */
#define SHARE_MIN 0.001

/* Beyond the interval of that level samples must have been lost: by chance the
 * exact total is there in one run of 10,000. */
#define SELF_CHECK_CONFIDENCE 0.9999

FILE *sp_view_note(struct sp_view_notes *notes)
{
	if (!notes->count++) {
		putc('\n', notes->out);
		sp_style_begin(notes->out, SP_STYLE_WARNING);
		fputs("notes:", notes->out);
		sp_style_begin(notes->out, SP_STYLE_PLAIN);
		putc('\n', notes->out);
	}
	fputs("  - ", notes->out);
	return notes->out;
}

bool sp_view_note_matters(double part, double whole)
{
	return part > SHARE_MIN * whole && part > 0;
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

static void note_no_mapping(struct sp_view_notes *notes,
			    const struct sp_profile *p)
{
	if (sp_profile_samples(p))
		return;
	/* Writers that record mappings have that setting. */
	if (!sp_profile_info(p, "setting.ledger"))
		fputs("this profile does not say what the program mapped: the "
		      "library that wrote it did not record mappings; record "
		      "again\n",
		      sp_view_note(notes));
	else
		fprintf(sp_view_note(notes),
			"no anonymous mapping of %s and more was seen: what "
			"the C library maps (malloc, stacks of threads), what "
			"an allocator maps, and what Go maps is not recorded\n",
			sp_text_size(SP_FORMAT_MAP_BYTES_MIN).text);
}

static void note_no_samples(struct sp_view_notes *notes,
			    const struct sp_profile *p)
{
	const uint64_t seen = p->exact_alloc_bytes - p->unsampled_bytes;
	uint64_t period = 1;
	FILE *out;

	if (sp_profile_samples(p) || p->is_cut || p->brought)
		return;
	out = sp_view_note(notes);
	if (!p->exact_alloc_bytes) {
		fprintf(out,
			"0 samples: no %s; memory that a program takes by "
			"mmap, or from a malloc of its own, is not seen\n",
			sp_profile_has_ended(p->end)
				? "allocation was seen"
				: "thread has published an allocation yet");
		return;
	}
	if (!seen && !sp_profile_off_bytes(p)) {
		fputs("0 samples: all were discarded to keep the file to its "
		      "size; a larger SAMPLEPROF_MAX_FILE keeps more\n",
		      out);
		return;
	}
	if (!seen) {
		fputs("0 samples: sampling was off all the time; while the "
		      "process runs, `sampleprof ctl ",
		      out);
		if (p->end == SP_PROFILE_END_RUNNING)
			fprintf(out, "%" PRIu64, p->pid);
		else
			fputs("PID", out);
		fputs(" start` switches it on\n", out);
		return;
	}
	while (period <= seen / WANTED_SAMPLES / 2)
		period *= 2;
	fprintf(out, "0 samples: %s allocated, period %s",
		sp_text_bytes((double)seen).text,
		sp_text_size(p->period_bytes).text);
	if (period < p->period_bytes) {
		fputs("; to see more use ", out);
		print_period(out, period);
	}
	putc('\n', out);
}

/* That there is no sample bounds the bytes. */
static void note_empty_view(struct sp_view_notes *notes,
			    const struct sp_analysis *a)
{
	const struct sp_interval bytes =
		sp_estimate_bytes(&a->how, &a->view->all);

	if (a->view->all.all.samples || !sp_profile_samples(a->profile))
		return;
	fputs("nothing in this view was sampled", sp_view_note(notes));
	if (!isfinite(bytes.hi)) {
		fputs(", and how much it has is not known", notes->out);
	} else if (bytes.hi > 0) {
		fputs(": it has ", notes->out);
		sp_text_print_estimate(notes->out, bytes, 0, a->how.confidence);
	}
	putc('\n', notes->out);
}

static void note_diagnosis(struct sp_view_notes *notes,
			   const struct sp_profile *p)
{
	const char *diagnosis = sp_profile_info(p, "diagnosis");

	if (!diagnosis || !*diagnosis)
		return;
	sp_text_print(sp_view_note(notes), diagnosis);
	putc('\n', notes->out);
}

static void note_linked(struct sp_view_notes *notes, const struct sp_profile *p)
{
	const char *linked = sp_profile_info(p, "allocator.linked");

	const char *missed = sp_profile_info(p, "allocator.missed");

	if (!linked || !*linked)
		return;
	fputs("linked into the program, and seen at its entries: ",
	      sp_view_note(notes));
	sp_text_print(notes->out, linked);
	if (missed) {
		fputs("; what was allocated before sampleprof's start is in "
		      "no total: by ",
		      notes->out);
		sp_text_print(notes->out, missed);
	}
	putc('\n', notes->out);
}

static void note_python(struct sp_view_notes *notes, const struct sp_profile *p)
{
	const char *version = sp_profile_info(p, "python.unread");

	if (!version || !*version)
		return;
	fputs("the functions of this Python have no names: sampleprof reads "
	      "those of 3.9 to 3.15 and 3.14t, and this is ",
	      sp_view_note(notes));
	sp_text_print(notes->out, version);
	putc('\n', notes->out);
}

/* Of a process that was running before. */
static void note_attached(struct sp_view_notes *notes,
			  const struct sp_profile *p)
{
	const char *age = sp_profile_info(p, "attached.age_ms");
	const char *before = sp_profile_info(p, "attached.before_bytes");
	uint64_t ms, bytes;

	if (!age || !sp_parse_u64(age, &ms) || ms > UINT64_MAX / 1000000)
		return;
	fprintf(sp_view_note(notes),
		"attached %s after the process began: all figures are of what "
		"it allocated since",
		sp_text_duration(ms * 1000000).text);
	if (before && sp_parse_u64(before, &bytes))
		fprintf(notes->out, "; %s were alive then",
			sp_text_bytes((double)bytes).text);
	putc('\n', notes->out);
}

static void note_programs(struct sp_view_notes *notes,
			  const struct sp_profile *p)
{
	const char *first;

	for (size_t i = 1; i < p->n_parts; i++) {
		first = sp_text_base_name(p->parts[0].program);
		if (strcmp(first, sp_text_base_name(p->parts[i].program)) == 0)
			continue;
		fputs("processes of different programs are added up: ",
		      sp_view_note(notes));
		sp_text_print(notes->out, first);
		fputs(", ", notes->out);
		sp_text_print(notes->out,
			      sp_text_base_name(p->parts[i].program));
		fputs(i + 1 < p->n_parts ? ", ...\n" : "\n", notes->out);
		return;
	}
}

static void note_seeds(struct sp_view_notes *notes, const struct sp_profile *p)
{
	const size_t n = sp_profile_repeated_seeds(p);

	if (n)
		fprintf(sp_view_note(notes),
			"%zu of %zu processes %s the seed of another "
			"(SAMPLEPROF_SEED): if they do the same, intervals of "
			"their sum are too narrow\n",
			n, p->n_parts, n == 1 ? "has" : "have");
}

/* The estimate of all that was allocated checks the whole: its total is known.
 */
static void note_self_check(struct sp_view_notes *notes,
			    const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;
	const struct sp_estimation how = {.method = SP_METHOD_P3,
					  .confidence = SELF_CHECK_CONFIDENCE};
	const struct sp_whole whole = sp_whole_of(p);
	struct sp_interval estimate =
		sp_estimate_bytes(&how, &a->population.all);
	double least = (double)(p->exact_alloc_bytes - p->unsampled_bytes);
	double most = least + (double)p->missing_bytes_max;

	/* Another note says why. */
	if (!sp_whole_is_all(&whole) ||
	    (least <= estimate.hi && most >= estimate.lo))
		return;
	fprintf(sp_view_note(notes),
		"the samples do not fit the exact total: they estimate %s (%s: "
		"%s); samples were lost, or counted twice\n",
		sp_text_bytes(estimate.value).text,
		sp_text_level(how.confidence).text,
		sp_text_interval(estimate).text);
}

/* Rows are of one moment, the peak's value is kept within its limits (E25). */
static void note_peak(struct sp_view_notes *notes, const struct sp_analysis *a)
{
	const double rows = sp_estimate_bytes_value(&a->how, &a->view->all);
	const bool is_at_another =
		!a->filter && a->selection.at_ns != a->peak.time_ns;

	if (a->selection.view != SP_VIEW_PEAK ||
	    fabs(rows - a->peak.bytes.value) <= 0.005 * rows)
		return;
	fprintf(sp_view_note(notes),
		"rows do not add up to the peak above: %s\n",
		is_at_another ? "they are of another moment (--at)"
		: a->filter   ? "they are of the moment at which the whole "
				"program had most live bytes"
			    : "the peak was moved to the nearer of its limits");
}

static void note_live(struct sp_view_notes *notes, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;
	const char *unseen = sp_lack_unseen(sp_profile_unseen(p));

	if (!a->live)
		return;
	if (p->n_parts > 1 && unseen)
		fprintf(sp_view_note(notes),
			"live bytes of some processes do not contain %s\n",
			unseen);
	else if (sp_profile_unseen(p) == SP_UNSEEN_FORK)
		fputs("this is a forked child: its live bytes do not contain "
		      "what its parent had allocated before the fork\n",
		      sp_view_note(notes));
	if (p->end != SP_PROFILE_END_RUNNING &&
	    sp_view_note_matters((double)p->unmatched_frees,
				 (double)sp_profile_samples(p)))
		fprintf(sp_view_note(notes),
			"%s free%s of samples that the file does not have\n",
			sp_text_count(p->unmatched_frees).text,
			p->unmatched_frees == 1 ? " is" : "s are");
}

/* Before all others: what the figures above do not say. */
static void note_lack(struct sp_view_notes *notes, const struct sp_profile *p)
{
	const struct sp_whole whole = sp_whole_of(p);

	if (sp_whole_is_all(&whole))
		return;
	sp_lack_print(sp_view_note(notes), &whole);
	putc('\n', notes->out);
}

static void note_full(struct sp_view_notes *notes, const struct sp_profile *p)
{
	/* Else a loss says so. */
	if (!p->full_ns || p->losses[SP_LOSS_PAGE])
		return;
	fprintf(sp_view_note(notes),
		"the file or its disk was full at %s (limit %s): later "
		"allocations and frees are missing, and live bytes are those "
		"of that moment; set SAMPLEPROF_MAX_FILE (by default 64G or a "
		"quarter of the free disk), or SAMPLEPROF_PERIOD to more than "
		"1\n",
		sp_text_moment(p->full_ns).text,
		sp_text_size(p->max_file_bytes).text);
}

static void note_crowded(struct sp_view_notes *notes,
			 const struct sp_profile *p)
{
	const char *text = sp_profile_info(p, "crowded_ns");
	const char *period = sp_profile_info(p, "setting.period");
	uint64_t ns, asked;

	if (!text || !period || !sp_parse_u64(text, &ns) ||
	    !sp_parse_u64(period, &asked))
		return;
	fprintf(sp_view_note(notes),
		"live samples took a sixth of the file (limit %s) at %s: since "
		"then the period is longer, at most %s instead of %s; a larger "
		"SAMPLEPROF_MAX_FILE prevents that\n",
		sp_text_size(p->max_file_bytes).text, sp_text_moment(ns).text,
		sp_text_size(p->period_bytes).text, sp_text_size(asked).text);
}

/* The unit of a loss, if it is a part of the allocations. */
static const enum loss_unit {
	EVENTS,
	SAMPLES,
	OBJECTS,
	BYTES,
} loss_units[SP_LOSS_COUNT] = {
	[SP_LOSS_NO_LANE] = SAMPLES,      [SP_LOSS_FILE_FULL] = SAMPLES,
	[SP_LOSS_NO_FILE] = SAMPLES,      [SP_LOSS_STACK_TABLE] = SAMPLES,
	[SP_LOSS_UNWIND_EARLY] = SAMPLES, [SP_LOSS_UNWIND_FAILED] = SAMPLES,
	[SP_LOSS_LIVE_TABLE] = SAMPLES,   [SP_LOSS_FREE_DROPPED] = SAMPLES,
	[SP_LOSS_FREE_MISSED] = SAMPLES,  [SP_LOSS_LEFT] = SAMPLES,
	[SP_LOSS_INIT_RACE] = OBJECTS,    [SP_LOSS_NESTED] = OBJECTS,
	[SP_LOSS_FORK_RESET] = BYTES,     [SP_LOSS_PAUSED] = BYTES,
	[SP_LOSS_AFTER_EXIT] = BYTES,     [SP_LOSS_UNRECORDED] = SAMPLES,
};

static double whole_of(const struct sp_profile *p, enum loss_unit unit)
{
	switch (unit) {
	case EVENTS:
		break;
	case SAMPLES:
		return (double)sp_profile_samples(p);
	case OBJECTS:
		return (double)p->exact_alloc_objects;
	case BYTES:
		return (double)p->exact_alloc_bytes;
	}
	return 0;
}

/* What a loss means, after its number: it begins with a plural. */
static void print_events(FILE *out, uint64_t n, const char *help)
{
	size_t noun = 0;

	while (n == 1 && !(help[noun] == 's' && strchr(" ,", help[noun + 1])))
		noun++;
	fprintf(out, "%s %.*s%s\n", sp_text_count(n).text, (int)noun, help,
		help + noun + (n == 1));
}

static void note_losses(struct sp_view_notes *notes, const struct sp_profile *p)
{
	for (unsigned int i = 0; i < SP_LOSS_COUNT; i++) {
		const double lost = (double)p->losses[i];
		const double whole = whole_of(p, loss_units[i]) + lost;
		const char *unit =
			loss_units[i] == OBJECTS ? "allocations" : "bytes";
		const char *help = sp_loss_help(i);
		const bool is_same = strncmp(help, unit, strlen(unit)) == 0;

		if (!sp_view_note_matters(lost, whole))
			continue;
		if (loss_units[i] == EVENTS)
			print_events(sp_view_note(notes), p->losses[i], help);
		else
			fprintf(sp_view_note(notes),
				"about %s of the %s: %s%s\n",
				sp_text_percent(lost, whole).text, unit,
				is_same ? "those" : "",
				is_same ? help + strlen(unit) : help);
	}
}

static void note_damage(struct sp_view_notes *notes, const struct sp_profile *p)
{
	if (!p->damaged_records && !p->ignored_bytes && !*p->damage)
		return;
	fprintf(sp_view_note(notes),
		"the file is damaged: %s bad record%s, %s ignored",
		sp_text_count(p->damaged_records).text,
		sp_text_plural(p->damaged_records),
		sp_text_size(p->ignored_bytes).text);
	if (*p->damage) {
		fputs("; first: ", notes->out);
		sp_text_print(notes->out, p->damage);
	}
	putc('\n', notes->out);
}

/* Stacks of the view that have a flag. */
static void note_stacks(struct sp_view_notes *notes,
			const struct sp_aggregate *aggregate, uint32_t flag,
			const char *text)
{
	const double whole = aggregate->analysis->view->all.all.est_bytes;
	double flagged = 0;

	for (size_t i = 0; i < aggregate->n_stacks; i++)
		if (aggregate->stacks[i].stack->flags & flag)
			flagged += aggregate->stacks[i].sums->all.est_bytes;
	if (sp_view_note_matters(flagged, whole))
		fprintf(sp_view_note(notes),
			"%s of the bytes are in stacks %s\n",
			sp_text_percent(flagged, whole).text, text);
}

static void note_cut_stacks(struct sp_view_notes *notes,
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

static void note_times(struct sp_view_notes *notes, const struct sp_profile *p)
{
	if (!sp_view_note_matters((double)p->time_error_ns,
				  (double)p->duration_ns))
		return;
	fputs("times are right to within ", sp_view_note(notes));
	fputs(sp_text_duration(p->time_error_ns).text, notes->out);
	fputs(": the file was packed (sampleprof-report symbolize)\n",
	      notes->out);
}

static void print_end(FILE *out, const struct sp_profile *p)
{
	switch (p->end) {
	case SP_PROFILE_END_CLEAN:
		fputs("complete, the process ended cleanly", out);
		break;
	case SP_PROFILE_END_DETACHED:
		fputs("complete until it was detached; the process went on",
		      out);
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
}

void sp_view_notes_print_completeness(FILE *out, const struct sp_profile *p)
{
	const struct sp_whole whole = sp_whole_of(p);

	if (sp_whole_is_all(&whole))
		print_end(out, p);
	else
		sp_lack_print(out, &whole);
	if (p->missing_bytes_max && p->missing_bytes_max != UINT64_MAX)
		fprintf(out, "; up to %s may be missing from exact totals",
			sp_text_bytes_beyond((double)p->missing_bytes_max, true)
				.text);
}

void sp_view_notes_print(FILE *out, const struct sp_analysis *analysis,
			 const struct sp_aggregate *aggregate)
{
	const struct sp_profile *p = analysis->profile;
	struct sp_view_notes notes = {.out = out};

	if (p->samples_of == SP_SAMPLES_ALLOCATED)
		note_no_samples(&notes, p);
	else
		note_no_mapping(&notes, p);
	note_lack(&notes, p);
	note_empty_view(&notes, analysis);
	sp_view_note_brought(&notes, p);
	note_diagnosis(&notes, p);
	note_python(&notes, p);
	note_linked(&notes, p);
	note_attached(&notes, p);
	note_programs(&notes, p);
	note_seeds(&notes, p);
	note_self_check(&notes, analysis);
	note_peak(&notes, analysis);
	note_live(&notes, analysis);
	note_full(&notes, p);
	note_crowded(&notes, p);
	note_losses(&notes, p);
	note_damage(&notes, p);
	note_times(&notes, p);
	sp_view_note_runtime(&notes, p, aggregate);
	if (!aggregate)
		return;
	note_cut_stacks(&notes, aggregate);
	sp_view_note_unnamed(&notes, aggregate);
}

/* Lines of the notes that begin with `mark`, without what only a screen needs.
 */
static void put_lines(struct sp_json *json, const char *key, char *text,
		      const char *mark)
{
	const size_t n = strlen(mark);

	sp_json_open(json, key, '[');
	for (char *line = text, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (!strncmp(line, mark, n)) {
			const char last = *end;

			*end = '\0';
			sp_json_string(json, NULL, line + n);
			*end = last;
		}
		end += *end == '\n';
	}
	sp_json_close(json, ']');
}

void sp_view_notes_json(struct sp_json *json,
			const struct sp_analysis *analysis,
			const struct sp_aggregate *aggregate)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out)
		sp_view_notes_print(out, analysis, aggregate);
	if (!out || fclose(out)) {
		sp_json_null(json, "notes");
		sp_json_null(json, "remedies");
	} else {
		sp_lines_unmark(text);
		put_lines(json, "notes", text, "  - ");
		put_lines(json, "remedies", text, "    ");
	}
	free(text);
}
