/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "compare/baseline.h"
#include "report/question.h"
#include "text/json.h"

/* Seven digits say more than the samples do. */
static double rounded_value(double value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%.7g", value);
	return strtod(digits, NULL);
}

static void put_interval(struct sp_json *json, const char *key,
			 struct sp_interval i)
{
	sp_json_interval(json, key,
			 (struct sp_interval){rounded_value(i.value),
					      rounded_value(i.lo),
					      rounded_value(i.hi)});
}

static void put_phases(struct sp_json *json, const struct sp_summary *run)
{
	sp_json_open(json, "phases", '{');
	for (size_t i = 0; i < run->n_phases; i++) {
		const struct sp_phase_sum *p = &run->phases[i];

		sp_json_open(json, p->name, '{');
		sp_json_u64(json, "alloc_bytes", p->exact_alloc_bytes);
		sp_json_u64(json, "alloc_objects", p->exact_alloc_objects);
		sp_json_u64(json, "slack_bytes", p->slack_bytes);
		sp_json_close(json, '}');
	}
	sp_json_close(json, '}');
}

static void put_number(struct sp_json *json, const char *key, uint64_t number)
{
	char digits[17];

	snprintf(digits, sizeof(digits), "%016" PRIx64, number);
	sp_json_string(json, key, digits);
}

static void put_run(struct sp_json *json, const struct sp_summary *run)
{
	sp_json_open_flat(json, NULL, '{');
	/* one: the files of several would be added up */
	if (run->n_recordings)
		put_number(json, "recording", run->recordings[0]);
	if (run->seeds && run->seeds[0])
		put_number(json, "seed", run->seeds[0]);
	sp_json_u64(json, "alloc_bytes", run->exact_alloc_bytes);
	sp_json_u64(json, "alloc_objects", run->exact_alloc_objects);
	if (run->has_frees) {
		put_interval(json, "peak_bytes", run->bytes[SP_VIEW_PEAK]);
		put_interval(json, "live_bytes", run->bytes[SP_VIEW_LIVE]);
		put_interval(json, "temporary_bytes",
			     run->bytes[SP_VIEW_TEMPORARY]);
	}
	if (run->n_phases)
		put_phases(json, run);
	sp_json_close(json, '}');
}

/* [samples, their bytes], and the sums of (E3, E4) unless nothing was left to
 * chance and each counts as one, which the mean of two moments (E43) does not
 * do. */
static void put_acc(struct sp_json *json, const struct sp_acc *acc)
{
	if (!acc->samples) {
		sp_json_null(json, NULL);
		return;
	}
	sp_json_open(json, NULL, '[');
	sp_json_u64(json, NULL, acc->samples);
	sp_json_u64(json, NULL, acc->size_bytes);
	if (acc->samples > acc->sure_samples ||
	    acc->est_count < (double)acc->samples) {
		const double sums[] = {acc->est_bytes, acc->k2,        acc->k3,
				       acc->kz,        acc->est_count, acc->c2,
				       acc->c3};

		for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
			sp_json_double(json, NULL, rounded_value(sums[i]));
	}
	sp_json_close(json, ']');
}

/* ---- paths ---- */

struct line {
	const struct sp_paths *paths;
	uint32_t path;
	double bytes;
	struct sp_acc *runs;
};

SP_ORDER(by_bytes, struct line, SP_DOWN(bytes) || SP_UP(path));

static int by_names(const void *a, const void *b)
{
	const struct line *la = a, *lb = b;
	const struct sp_path pa = sp_paths_at(la->paths, la->path);
	const struct sp_path pb = sp_paths_at(lb->paths, lb->path);
	int c = 0;

	for (size_t i = 0; !c && i < pa.n && i < pb.n; i++)
		c = strcmp(sp_paths_name(la->paths, pa.frame[i]),
			   sp_paths_name(lb->paths, pb.frame[i]));
	return c ? c : (pa.n > pb.n) - (pa.n < pb.n);
}

/* The path that stands for what calls the function from elsewhere. */
static int fold_path(struct sp_paths *paths, uint32_t *path)
{
	static const char name[] = SP_PATHS_OTHER_CALLERS;
	uint32_t *frames;
	size_t flat;
	int r = sp_paths_find_flat(paths, *path, &flat);

	if (r < 0)
		return r;
	frames = malloc((flat + 2) * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	memcpy(frames, sp_paths_at(paths, *path).frame,
	       (flat + 1) * sizeof(*frames));
	r = sp_intern_add(&paths->frames, name, sizeof(name) - 1,
			  &frames[flat + 1]);
	if (!r)
		r = sp_paths_add(paths, frames, flat + 2, path);
	free(frames);
	return r;
}

struct lines {
	struct line *at;
	size_t n;
	struct sp_acc *accs; /* of all lines */
};

static void lines_done(struct lines *lines)
{
	free(lines->at);
	free(lines->accs);
}

/* What the run has in the phase (NULL: whenever). */
static struct sp_path_rows rows_of(const struct sp_summary *run,
				   enum sp_view view, const char *phase)
{
	const struct sp_path_rows *rows = sp_summary_rows(run, view, phase);

	return rows ? *rows : (struct sp_path_rows){NULL, 0};
}

/* One line for each path of any run, the largest first. */
static int gather_lines(struct lines *lines, const struct sp_side *side,
			const struct sp_paths *paths, enum sp_view view,
			const char *phase)
{
	const size_t n_paths = paths->paths.n_entries;
	uint32_t *line_of = calloc(n_paths + 1, sizeof(*line_of));

	*lines = (struct lines){0};
	lines->at = calloc(n_paths + 1, sizeof(*lines->at));
	for (size_t i = 0; line_of && lines->at && i < side->n; i++) {
		const struct sp_path_rows rows =
			rows_of(side->run[i], view, phase);

		for (size_t k = 0; k < rows.n; k++) {
			uint32_t *line = &line_of[rows.at[k].path];

			if (!*line) {
				lines->at[lines->n] = (struct line){
					paths, rows.at[k].path, 0, NULL};
				*line = (uint32_t)++lines->n;
			}
			lines->at[*line - 1].bytes += rows.at[k].acc.est_bytes;
		}
	}
	lines->accs = calloc(lines->n * side->n + 1, sizeof(*lines->accs));
	if (!line_of || !lines->at || !lines->accs) {
		free(line_of);
		lines_done(lines);
		return -ENOMEM;
	}
	for (size_t i = 0; i < lines->n; i++)
		lines->at[i].runs = &lines->accs[i * side->n];
	for (size_t i = 0; i < side->n; i++) {
		const struct sp_path_rows rows =
			rows_of(side->run[i], view, phase);

		for (size_t k = 0; k < rows.n; k++)
			lines->at[line_of[rows.at[k].path] - 1].runs[i] =
				rows.at[k].acc;
	}
	free(line_of);
	if (lines->n)
		qsort(lines->at, lines->n, sizeof(*lines->at), by_bytes);
	return 0;
}

/* By names; lines of the same names together. */
static void settle_lines(struct lines *lines, size_t n_runs)
{
	size_t n = 0;

	if (!lines->n)
		return;
	qsort(lines->at, lines->n, sizeof(*lines->at), by_names);
	for (size_t i = 1; i < lines->n; i++) {
		if (lines->at[i].path != lines->at[n].path) {
			lines->at[++n] = lines->at[i];
			continue;
		}
		for (size_t run = 0; run < n_runs; run++)
			sp_acc_merge(&lines->at[n].runs[run],
				     &lines->at[i].runs[run]);
	}
	lines->n = n + 1;
}

static void put_line(struct sp_json *json, const struct line *line,
		     size_t n_runs)
{
	const struct sp_path p = sp_paths_at(line->paths, line->path);

	sp_json_open_flat(json, NULL, '{');
	sp_json_open(json, "path", '[');
	for (size_t i = 0; i < p.n; i++)
		sp_json_string(json, NULL,
			       sp_paths_name(line->paths, p.frame[i]));
	sp_json_close(json, ']');
	sp_json_open(json, "runs", '[');
	for (size_t i = 0; i < n_runs; i++)
		put_acc(json, &line->runs[i]);
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

/* Under the name of the phase, or of the view. */
static int put_paths(struct sp_json *json, const struct sp_side *side,
		     struct sp_paths *paths, enum sp_view view,
		     const char *phase)
{
	const size_t most = phase ? SP_BASELINE_PHASE_PATHS : SP_BASELINE_PATHS;
	struct lines lines;
	int r = gather_lines(&lines, side, paths, view, phase);

	if (r < 0)
		return r;
	for (size_t i = most; !r && i < lines.n; i++)
		r = fold_path(paths, &lines.at[i].path);
	if (!r) {
		settle_lines(&lines, side->n);
		sp_json_open(json, phase ? phase : sp_view_name(view), '[');
		for (size_t i = 0; i < lines.n; i++)
			put_line(json, &lines.at[i], side->n);
		sp_json_close(json, ']');
	}
	lines_done(&lines);
	return r;
}

/* Was one of that name put for a run before number `run`? */
static bool was_put(const struct sp_side *side, size_t run, const char *name)
{
	for (size_t i = 0; i < run; i++)
		if (sp_summary_phase(side->run[i], name))
			return true;
	return false;
}

static int put_phase_paths(struct sp_json *json, const struct sp_side *side,
			   struct sp_paths *paths)
{
	int r = 0;

	sp_json_open(json, "phases", '{');
	for (size_t i = 0; i < side->n; i++)
		for (size_t k = 0; !r && k < side->run[i]->n_phases; k++) {
			const char *name = side->run[i]->phases[k].name;

			if (side->run[i]->phases[k].has_rows &&
			    !was_put(side, i, name))
				r = put_paths(json, side, paths, SP_VIEW_ALLOC,
					      name);
		}
	sp_json_close(json, '}');
	return r;
}

int sp_baseline_write(FILE *out, const struct sp_side *side,
		      struct sp_paths *paths, struct sp_error *err)
{
	const struct sp_summary *first = side->run[0];
	struct sp_json json = sp_json_begin(out);
	int r = 0;

	sp_json_string(&json, "schema", "sampleprof-baseline");
	sp_json_u64(&json, "version", SP_BASELINE_VERSION);
	sp_json_string(&json, "program", first->program);
	sp_json_u64(&json, "period_bytes", first->period_bytes);
	sp_json_string(&json, "law",
		       first->law.is_dotnet ? "dotnet" : "exponential");
	sp_json_double(&json, "level", first->level);
	sp_json_open(&json, "runs", '[');
	for (size_t i = 0; i < side->n; i++)
		put_run(&json, side->run[i]);
	sp_json_close(&json, ']');
	sp_json_open(&json, "views", '{');
	for (int v = 0; !r && v < SP_SUMMARY_VIEWS; v++)
		if ((SP_BASELINE_VIEWS & (1u << v)) && first->has_rows[v])
			r = put_paths(&json, side, paths, (enum sp_view)v,
				      NULL);
	sp_json_close(&json, '}');
	if (!r)
		r = put_phase_paths(&json, side, paths);
	sp_json_end(&json);
	return r < 0 ? sp_error_set(err, r, NULL,
				    "not enough memory for a baseline")
		     : 0;
}
