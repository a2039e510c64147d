/* SPDX-License-Identifier: MIT */
#include "report/view_summary.h"

#include <inttypes.h>
#include <string.h>

#include "report/text.h"

/* A longer command line would push the figures out of sight. */
#define COMMAND_BYTES_MAX 240

#define PROBLEMS_MAX 10

/* Samples that a suggested period should give, at least: about 25 % off. */
#define WANTED_SAMPLES 64

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
	sp_text_print(out, shown);
	if (is_cut)
		fputs(" ...", out);
}

static const char *describe_end(enum sp_profile_end end)
{
	switch (end) {
	case SP_PROFILE_END_CLEAN:
		return "ended cleanly";
	case SP_PROFILE_END_KILLED:
		return "was killed or left without exit()";
	case SP_PROFILE_END_RUNNING:
		return "still running";
	}
	return "";
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void sp_view_summary_print_header(FILE *out,
				  const struct sp_aggregate *aggregate)
{
	const struct sp_profile *p = aggregate->profile;
	struct sp_interval estimate =
		sp_estimate_bytes(&p->acc, SP_REPORT_CONFIDENCE);

	fputs("sampleprof report: ", out);
	print_command(out, *p->command ? p->command : p->program);
	fprintf(out, "\n  pid %" PRIu64, p->pid);
	if (*p->host) {
		fputs(" on ", out);
		sp_text_print(out, p->host);
	}
	fprintf(out, ", started %s, ran %s, %s\n",
		sp_text_time(p->start_unix_ns).text,
		sp_text_duration(p->duration_ns).text, describe_end(p->end));
	fprintf(out, "  period %s%s, %s sample%s,",
		sp_text_size(p->period_bytes).text,
		p->period_bytes == 1 ? " (every allocation)" : "",
		sp_text_count(p->acc.samples).text, plural(p->acc.samples));
	fprintf(out, " %s distinct stack%s, %s thread%s\n",
		sp_text_count(aggregate->n_stacks).text,
		plural(aggregate->n_stacks), sp_text_count(p->threads).text,
		plural(p->threads));
	fprintf(out, "  EXACT     %s%s in %s allocation%s\n",
		p->end == SP_PROFILE_END_CLEAN ? "" : "at least ",
		sp_text_bytes((double)p->exact_alloc_bytes).text,
		sp_text_count(p->exact_alloc_objects).text,
		plural(p->exact_alloc_objects));
	fprintf(out, "  estimate  %s (%s: %s)\n",
		sp_text_bytes(estimate.value).text, SP_REPORT_CONFIDENCE_TEXT,
		sp_text_interval(estimate).text);
}

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

	if (p->acc.samples)
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

static void note_diagnosis(struct notes *notes, const struct sp_profile *p)
{
	const char *diagnosis = sp_profile_info(p, "diagnosis");

	if (!diagnosis)
		return;
	sp_text_print(note(notes), diagnosis);
	putc('\n', notes->out);
}

static void note_outside(struct notes *notes, const struct sp_profile *p)
{
	struct sp_interval estimate =
		sp_estimate_bytes(&p->acc, SP_REPORT_CONFIDENCE);
	double least = (double)p->exact_alloc_bytes;
	double most = least;

	if (p->end != SP_PROFILE_END_CLEAN)
		most += (double)p->check_in_bytes * (double)p->threads;
	if (least > estimate.hi || most < estimate.lo)
		fputs("the exact total lies outside the interval of its "
		      "estimate: chance in up to one run of 20, else a sign of "
		      "losses\n",
		      note(notes));
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
		plural(p->damaged_records),
		sp_text_size(p->ignored_bytes).text);
	if (*p->damage) {
		fputs("; first: ", notes->out);
		sp_text_print(notes->out, p->damage);
	}
	putc('\n', notes->out);
}

static void note_cut_stacks(struct notes *notes,
			    const struct sp_aggregate *aggregate)
{
	struct sp_acc cut;

	sp_acc_init(&cut, aggregate->profile->period_bytes);
	for (size_t i = 0; i < aggregate->n_stacks; i++)
		if (aggregate->stacks[i]->flags & SP_STACK_TRUNCATED)
			sp_acc_merge(&cut, &aggregate->stacks[i]->acc);
	if (cut.samples)
		fprintf(note(notes),
			"%s of the bytes are in stacks deeper than the limit: "
			"cum of their outer functions is low; raise "
			"SAMPLEPROF_DEPTH\n",
			sp_text_percent(cut.est_bytes,
					aggregate->profile->acc.est_bytes)
				.text);
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

static void print_completeness(FILE *out, const struct sp_profile *p)
{
	fputs("\nfile: ", out);
	switch (p->end) {
	case SP_PROFILE_END_CLEAN:
		fputs("complete, the process ended cleanly\n", out);
		break;
	case SP_PROFILE_END_KILLED:
		fprintf(out,
			"ends where the process was killed or left without "
			"exit(); exact totals may miss up to %s per thread "
			"that was alive\n",
			sp_text_size(p->check_in_bytes).text);
		break;
	case SP_PROFILE_END_RUNNING:
		fprintf(out,
			"the process is still running: figures as of now; "
			"exact totals may miss up to %s per live thread\n",
			sp_text_size(p->check_in_bytes).text);
		break;
	}
}

static void print_next(FILE *out, const struct sp_profile *p,
		       const char *program, bool stacks_shown)
{
	const char *arguments = "--stacks 10 ";

	if (!p->acc.samples)
		arguments = "";
	else if (stacks_shown)
		arguments = "--json ";
	if (!*arguments && p->end != SP_PROFILE_END_RUNNING)
		return;
	fputs("next: ", out);
	sp_text_print_shell(out, program);
	fprintf(out, " %s", arguments);
	/* A name like an option would be taken for one. */
	if (*p->path == '-')
		fputs("./", out);
	sp_text_print_shell(out, p->path);
	putc('\n', out);
}

void sp_view_summary_print_notes(FILE *out,
				 const struct sp_aggregate *aggregate,
				 const char *program, bool stacks_shown)
{
	const struct sp_profile *p = aggregate->profile;
	struct notes notes = {.out = out};

	note_no_samples(&notes, p);
	note_diagnosis(&notes, p);
	note_outside(&notes, p);
	note_losses(&notes, p);
	note_damage(&notes, p);
	note_cut_stacks(&notes, aggregate);
	note_problems(&notes, aggregate);
	print_completeness(out, p);
	print_next(out, p, program, stacks_shown);
}
