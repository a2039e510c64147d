/* SPDX-License-Identifier: MIT */
#include "compare/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/place.h"
#include "compare/amount.h"
#include "compare/baseline.h"
#include "compare/diff.h"
#include "compare/inputs.h"
#include "compare/evidence.h"
#include "text/lines.h"
#include "text/output.h"
#include "text/text.h"

/* ---- both sides ---- */

static int load_side(const struct sp_gate_options *o, struct sp_inputs *s,
		     bool is_new, struct sp_error *err)
{
	if (o->source)
		return o->source(o->source_arg, s, is_new, err);
	return is_new ? sp_inputs_load(s, true, o->files, o->n_files, err)
		      : sp_inputs_load(s, false, o->baselines.at,
				       o->baselines.n, err);
}

/* ---- diff ---- */

static int add_tables(struct sp_diff *diff, const struct sp_pair *pair,
		      const struct sp_gate_options *o)
{
	const struct sp_diff_plan functions = {
		.key = "functions",
		.what = "function (flat)",
		.noun = "functions",
		.rows = SP_DIFF_FLAT,
		.of = {.table = diff->view},
		.shown = o->top,
	};
	const struct sp_diff_plan paths = {
		.key = "paths",
		.what = "call path",
		.noun = "call paths",
		.rows = SP_DIFF_PATHS,
		.of = {.table = diff->view},
		.shown = o->stacks,
	};
	int r = sp_diff_add(diff, pair, &functions);

	if (!r && (o->has_stacks || o->json))
		r = sp_diff_add(diff, pair, &paths);
	return r;
}

static void write_diff(FILE *out, const struct sp_diff *diff,
		       const struct sp_gate_options *o)
{
	if (o->json)
		sp_diff_json_write(out, diff);
	else if (o->csv)
		sp_diff_csv_write(out, diff);
	else
		sp_diff_text_write(out, diff);
}

int sp_gate_diff(FILE *out, const struct sp_gate_options *o,
		 struct sp_error *err)
{
	const enum sp_view view =
		o->question.has_view ? o->question.view : SP_VIEW_ALLOC;
	const bool whole =
		sp_question_is_whole(&o->question) && !o->has_base_part;
	/* for the totals of whole runs, all of them */
	struct sp_inputs s = {
		.question = &o->question,
		.old_question = o->has_base_part ? &o->old_question : NULL,
		.symbols = &o->symbols,
		.wish.views = 1u << view | (whole ? SP_BASELINE_VIEWS : 0)};
	struct sp_diff *diff = NULL;
	int r = load_side(o, &s, false, err);

	if (r >= 0)
		r = load_side(o, &s, true, err);
	if (r >= 0)
		r = sp_inputs_see_through(&s, err);
	if (r >= 0)
		r = sp_inputs_need(&s, view, err);
	if (r >= 0)
		r = sp_diff_new(&s.pair, view, o->question.confidence, whole,
				&diff, err);
	if (r >= 0 && add_tables(diff, &s.pair, o) < 0)
		r = sp_error_memory(err, NULL);
	if (r >= 0)
		write_diff(out, diff, o);
	sp_diff_free(diff);
	sp_inputs_done(&s);
	return r;
}

/* ---- check ---- */

static void amounts_done(struct sp_result *result)
{
	for (size_t i = 0; i < result->n_amounts; i++)
		free(result->amounts[i].runs);
	free(result->amounts);
}

static int add_amount(struct sp_result *result, const struct sp_inputs *s,
		      const struct sp_limit *limit, struct sp_error *err)
{
	struct sp_amount *a = &result->amounts[result->n_amounts];
	struct sp_frame_set only;
	struct sp_runs runs;
	int r = sp_amount_frames(&s->paths, limit, &only, err);

	if (r < 0)
		return r;
	a->name = limit->name;
	a->is_bytes = sp_limit_is_bytes(limit);
	a->runs = calloc(s->n_new, sizeof(*a->runs));
	r = a->runs ? 0 : -ENOMEM;
	result->n_amounts++;
	for (size_t i = 0; !r && i <= s->n_new; i++) {
		const struct sp_side side = {s->new + (i < s->n_new ? i : 0),
					     i < s->n_new ? 1 : s->n_new};

		r = sp_amount_sum(&side, &s->paths, limit->kind, NULL, &only,
				  &runs);
		if (r < 0)
			break;
		*(i < s->n_new ? &a->runs[i] : &a->value) =
			sp_runs_mean(&runs, SP_SUMMARY_LEVEL);
	}
	free(only.has);
	return r < 0 ? sp_error_memory(err, NULL) : 0;
}

static bool has_amount(const struct sp_result *result, const char *name)
{
	for (size_t i = 0; i < result->n_amounts; i++)
		if (strcmp(result->amounts[i].name, name) == 0)
			return true;
	return false;
}

/* The five of every run, and those that only limits name. */
static int add_amounts(struct sp_result *result, const struct sp_inputs *s,
		       const struct sp_limits *always, struct sp_error *err)
{
	const struct sp_limits *const lists[] = {always, result->limits};
	int r = 0;

	result->amounts = calloc(always->n + result->limits->n + 1,
				 sizeof(*result->amounts));
	if (!result->amounts)
		return sp_error_memory(err, NULL);
	for (int list = 0; list < 2; list++)
		for (size_t i = 0; !r && i < lists[list]->n; i++) {
			const struct sp_limit *l = &lists[list]->at[i];
			const enum sp_view view = sp_amount_view(l->kind);

			if (l->kind != SP_LIMIT_SITES &&
			    l->kind != SP_LIMIT_LEAK_RATE && !l->phase &&
			    (view == SP_VIEW_ALLOC ||
			     result->check->caveats.new_has_frees) &&
			    !has_amount(result, l->name))
				r = add_amount(result, s, l, err);
		}
	return r;
}

/* The figures that every run has, as limits that nothing exceeds. */
static int add_always(struct sp_limits *limits, struct sp_error *err)
{
	static const char *const names[] = {
		"alloc_bytes=+0", "alloc_objects=+0", "peak_bytes=+0",
		"live_bytes=+0", "temporary_bytes=+0"};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(names) / sizeof(names[0]); i++)
		r = sp_limits_add(limits, names[i], err);
	return r;
}

static int write_one(FILE *out, const struct sp_check_output *output,
		     const struct sp_result *result, struct sp_error *err)
{
	const int r = output->format->write(out, result);

	return r < 0 ? sp_error_memory(err, output->path) : 0;
}

static int open_to_append(const char *path, struct sp_error *err)
{
	struct sp_place place;
	int r = sp_place_find(path, &place, err);

	if (r >= 0)
		r = sp_place_open(&place, path, O_WRONLY | O_APPEND | O_CREAT,
				  SP_OUTPUT_TEXT, err);
	sp_place_close(&place);
	return r;
}

static int append_to(const struct sp_check_output *output,
		     const struct sp_result *result, struct sp_error *err)
{
	FILE *file;
	int r, fd = open_to_append(output->path, err);

	if (fd < 0)
		return fd;
	file = fdopen(fd, "a");
	if (!file) {
		close(fd);
		return sp_error_memory(err, output->path);
	}
	r = write_one(file, output, result, err);
	if ((ferror(file) | fclose(file)) != 0 && r >= 0)
		r = sp_error_set(err, -EIO, output->path,
				 "cannot write all of it");
	return r;
}

static int replace_output(const struct sp_check_output *output,
			  const struct sp_result *result, struct sp_error *err)
{
	struct sp_output *file;
	int r = sp_output_open(output->path, SP_OUTPUT_TEXT, &file, err);

	if (r < 0)
		return r;
	r = write_one(file->stream, output, result, err);
	if (r >= 0)
		return sp_output_commit(file, err);
	sp_output_abandon(file);
	return r;
}

static int write_outputs(FILE *out, const struct sp_gate_options *o,
			 const struct sp_result *result, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < o->n_outputs; i++) {
		const struct sp_check_output *output = &o->outputs[i];

		r = !output->path ? write_one(out, output, result, err)
		    : output->format->appends
			    ? append_to(output, result, err)
			    : replace_output(output, result, err);
	}
	return r;
}

static int report_check(FILE *out, const struct sp_gate_options *o,
			const struct sp_inputs *s, const struct sp_check *check,
			struct sp_error *err)
{
	struct sp_result result = {
		.check = check,
		.limits = &o->limits,
		.program = s->new[0]->program,
		.n_old = s->n_old,
		.n_new = s->n_new,
		.period_bytes = s->new[0]->period_bytes,
		.files = o->files,
		.undecided = o->undecided,
		.evidence =
			check->verdict == SP_VERDICT_PASS ? NULL : o->evidence,
	};
	struct sp_limits always = {0};
	int r = add_always(&always, err);

	if (!r)
		r = add_amounts(&result, s, &always, err);
	if (!r && result.evidence)
		r = sp_evidence_keep(&result, o->files, o->n_files,
				     o->baselines.at, o->baselines.n, err);
	if (!r)
		r = write_outputs(out, o, &result, err);
	amounts_done(&result);
	sp_limits_done(&always);
	return r;
}

/* ---- --update-baseline ---- */

static const char *why_not(const struct sp_inputs *s)
{
	for (size_t i = 0; i < s->n_new; i++) {
		if (s->new[i]->why_incomplete)
			return s->new[i]->why_incomplete;
		if (s->new[i]->why_doubtful)
			return s->new[i]->why_doubtful;
		if (s->new[i]->unsampled_bytes)
			return "sampling was off for a part of the run";
		if (strcmp(s->new[i]->program, s->new[0]->program) != 0)
			return "the profiles are of different programs";
		if (s->new[i]->period_bytes != s->new[0]->period_bytes)
			return "the profiles have different periods";
		if (s->new[i]->has_frees != s->new[0]->has_frees)
			return "only some of the profiles have frees";
	}
	return NULL;
}

static int print_notes(FILE *out, const struct sp_pair *pair,
		       struct sp_error *err)
{
	struct sp_caveats c;
	char *lines = NULL;
	size_t size;
	FILE *text = open_memstream(&lines, &size);
	int r = text ? sp_caveats_init(&c, pair) : -ENOMEM;

	for (size_t i = 0; !r && i < c.n_notes; i++) {
		fputs("note: ", text);
		sp_text_print(text, c.note[i]);
		putc('\n', text);
	}
	if (!r)
		sp_caveats_done(&c);
	if (text && sp_lines_close(out, text, &lines) < 0)
		r = -ENOMEM;
	return r < 0 ? sp_error_memory(err, NULL) : 0;
}

static int print_update(FILE *out, struct sp_inputs *s, const char *path,
			struct sp_error *err)
{
	const struct sp_gate_options ten = {.top = 10};
	struct sp_diff *diff;
	int r;

	if (!s->n_old) {
		fprintf(out, "new baseline of %zu run%s: ", s->n_new,
			sp_text_plural(s->n_new));
		sp_text_print(out, path);
		putc('\n', out);
		return print_notes(out, &s->pair, err);
	}
	r = sp_diff_new(&s->pair, SP_VIEW_ALLOC, SP_SUMMARY_LEVEL, true, &diff,
			err);
	if (r < 0)
		return r;
	if (add_tables(diff, &s->pair, &ten) < 0) {
		sp_diff_free(diff);
		return sp_error_memory(err, NULL);
	}
	fputs("updated: ", out);
	sp_text_print(out, path);
	putc('\n', out);
	sp_diff_text_write(out, diff);
	sp_diff_free(diff);
	return 0;
}

static int write_baseline(struct sp_inputs *s, const char *path,
			  struct sp_error *err)
{
	struct sp_output *file;
	int r = sp_output_open(path, SP_OUTPUT_TEXT, &file, err);

	if (r < 0)
		return r;
	r = sp_baseline_write(file->stream, &s->pair.new, &s->paths, err);
	if (r < 0) {
		sp_output_abandon(file);
		return r;
	}
	return sp_output_commit(file, err);
}

/* A baseline that cannot be read is said to be so, not overwritten; one that
 * is not there is new. */
static int update_baseline(FILE *out, const struct sp_gate_options *o,
			   struct sp_inputs *s, enum sp_verdict *ret_verdict,
			   struct sp_error *err)
{
	const char *path = o->baselines.at[0];
	int r = sp_inputs_load(s, false, o->baselines.at, o->baselines.n, err);

	if (r < 0 && r != -ENOENT)
		return r;
	*err = (struct sp_error){0};
	if (why_not(s)) {
		sp_error_set(err, 0, path, "not written: %s", why_not(s));
		*ret_verdict = SP_VERDICT_CANNOT_TELL;
		return 0;
	}
	r = write_baseline(s, path, err);
	if (!r)
		r = sp_inputs_see_through(s, err);
	if (!r)
		r = print_update(out, s, path, err);
	*ret_verdict = SP_VERDICT_PASS;
	return r;
}

int sp_gate_check(FILE *out, const struct sp_gate_options *o,
		  enum sp_verdict *ret_verdict, struct sp_error *err)
{
	struct sp_inputs s = {
		.question = &o->question,
		.symbols = &o->symbols,
		.wish = {.views = SP_BASELINE_VIEWS, .phases = true},
		.is_update = o->update};
	struct sp_check *check;
	int r;

	for (size_t i = 0; i < o->limits.n; i++)
		s.wish.leaks |= o->limits.at[i].kind == SP_LIMIT_LEAK_RATE;
	r = load_side(o, &s, true, err);

	if (r >= 0 && o->update) {
		r = update_baseline(out, o, &s, ret_verdict, err);
		sp_inputs_done(&s);
		return r;
	}
	if (r >= 0)
		r = load_side(o, &s, false, err);
	if (r >= 0)
		r = sp_inputs_see_through(&s, err);
	if (r >= 0)
		r = sp_check_new(&s.pair, &o->limits, o->any_program, &check,
				 err);
	if (r >= 0) {
		r = report_check(out, o, &s, check, err);
		*ret_verdict = check->verdict;
		sp_check_free(check);
	}
	sp_inputs_done(&s);
	return r;
}
