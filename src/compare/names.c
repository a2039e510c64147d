/* SPDX-License-Identifier: MIT */
#include "compare/names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* Samples with which it is no chance that none, or all, have names. */
#define SAMPLES_MIN 12

/* The bytes of one run on paths through one module. */
struct share {
	double bytes, unnamed_bytes;
	size_t unnamed_paths;
	uint64_t samples;
	const struct sp_nameless *why; /* NULL: its names could be read */
};

struct looker {
	const struct sp_pair *pair;
	size_t n_frames, n_runs;
	struct sp_intern modules;
	uint32_t *module_of; /* of each frame; NO_MODULE */
	uint32_t *frame_of;  /* of each module, one of its frames */
	uint32_t *seen;      /* of each module: 1 + a path of it */
	uint32_t *seen_unnamed;
	struct share *shares; /* of each module, those of all runs */
	double *bytes;        /* of each run, of all paths */
	bool *is_mixed;       /* of each module */
};

#define NO_MODULE UINT32_MAX

static const struct sp_summary *run_at(const struct looker *l, size_t run)
{
	const size_t n_old = l->pair->old.n;

	return run < n_old ? l->pair->old.run[run]
			   : l->pair->new.run[run - n_old];
}

static struct share *share_at(const struct looker *l, uint32_t module,
			      size_t run)
{
	return &l->shares[module * l->n_runs + run];
}

static bool is_unnamed(const struct sp_paths *paths, uint32_t frame)
{
	size_t bytes;

	return strcmp(sp_paths_function(sp_paths_name(paths, frame), &bytes),
		      SP_PATHS_UNKNOWN) == 0;
}

/* "[no stack]" and "[anonymous]" are in no module. */
static int find_modules(struct looker *l)
{
	const struct sp_paths *paths = l->pair->paths;
	int r = 0;

	for (uint32_t i = 0; !r && i < l->n_frames; i++) {
		const char *name = sp_paths_name(paths, i);
		size_t bytes;

		sp_paths_function(name, &bytes);
		l->module_of[i] = NO_MODULE;
		if (!bytes && *name == '[' && !is_unnamed(paths, i))
			continue;
		r = sp_intern_add(&l->modules, name, bytes, &l->module_of[i]);
		if (!r)
			l->frame_of[l->module_of[i]] = i;
	}
	return r;
}

static const struct sp_nameless *find_nameless(const struct looker *l,
					       const struct sp_summary *run,
					       uint32_t module)
{
	for (size_t i = 0; i < run->n_nameless; i++)
		if (strcmp(run->nameless[i].module,
			   sp_intern_bytes(&l->modules, module)) == 0)
			return &run->nameless[i];
	return NULL;
}

static void add_path(struct looker *l, size_t run,
		     const struct sp_path_row *row)
{
	const struct sp_paths *paths = l->pair->paths;
	const struct sp_path p = sp_paths_at(paths, row->path);

	l->bytes[run] += row->acc.est_bytes;
	for (size_t d = 0; d < p.n; d++) {
		const uint32_t frame = p.frame[d];
		const uint32_t module = l->module_of[frame];
		struct share *s;

		if (module == NO_MODULE)
			continue;
		s = share_at(l, module, run);
		if (l->seen[module] != row->path + 1) {
			s->bytes += row->acc.est_bytes;
			s->samples += row->acc.samples;
		}
		l->seen[module] = row->path + 1;
		if (l->seen_unnamed[module] == row->path + 1 ||
		    !is_unnamed(paths, frame))
			continue;
		l->seen_unnamed[module] = row->path + 1;
		s->unnamed_bytes += row->acc.est_bytes;
		s->unnamed_paths++;
	}
}

/* The first view that was taken stands for the others. */
static const struct sp_path_rows *rows_of(const struct sp_summary *run)
{
	unsigned int view = 0;

	while (view + 1 < SP_SUMMARY_VIEWS && !run->has_rows[view])
		view++;
	return &run->rows[view];
}

static void look_at_run(struct looker *l, size_t run)
{
	const struct sp_summary *summary = run_at(l, run);
	const struct sp_path_rows *rows = rows_of(summary);

	memset(l->seen, 0, l->n_frames * sizeof(*l->seen));
	memset(l->seen_unnamed, 0, l->n_frames * sizeof(*l->seen_unnamed));
	for (size_t i = 0; i < rows->n; i++)
		add_path(l, run, &rows->at[i]);
	for (uint32_t m = 0; m < l->modules.n_entries; m++)
		share_at(l, m, run)->why = find_nameless(l, summary, m);
}

/* Are there runs of which one has names of it and another has none? */
static bool is_mixed(const struct looker *l, uint32_t module)
{
	double least = 1, most = 0, least_sure = 1, most_known = 0;

	for (size_t run = 0; run < l->n_runs; run++) {
		const struct share *s = share_at(l, module, run);
		const double share = s->unnamed_bytes / s->bytes;

		if (!(s->bytes > 0))
			continue;
		least = fmin(least, share);
		if (s->why)
			most_known = fmax(most_known, share);
		if (s->samples < SAMPLES_MIN)
			continue;
		least_sure = fmin(least_sure, share);
		most = fmax(most, share);
	}
	return most_known - least > 0.5 || most - least_sure > 0.5;
}

/* ---- what is to be said of it ---- */

/* The run of [first, end) that lacks most of the module's names. */
static bool find_gap(const struct looker *l, uint32_t module, size_t first,
		     size_t end, struct sp_names_gap *ret)
{
	*ret = (struct sp_names_gap){0};
	for (size_t run = first; run < end; run++) {
		const struct share *s = share_at(l, module, run);
		const double share = s->unnamed_bytes / l->bytes[run];
		const bool is_gap = s->unnamed_bytes > s->bytes / 2 || s->why;

		if (!s->unnamed_paths || !is_gap)
			continue;
		if (ret->run && share <= ret->share) {
			ret->n_more++;
			continue;
		}
		*ret = (struct sp_names_gap){
			.run = run_at(l, run),
			.module = s->why ? s->why->path
					 : sp_intern_bytes(&l->modules, module),
			.reason = s->why ? s->why->reason : NULL,
			.share = share,
			.paths = s->unnamed_paths,
			.of = rows_of(run_at(l, run))->n,
			.n_more = ret->n_more + (ret->run != NULL)};
	}
	return ret->run && (l->is_mixed[module] || ret->reason);
}

SP_ORDER(compare_gaps, struct sp_names_gap, SP_DOWN(share));

static int say_gaps(const struct looker *l, struct sp_names *names,
		    size_t first, size_t end,
		    void (*say)(void *arg, const struct sp_names_gap *gap),
		    void *arg)
{
	struct sp_names_gap *gaps =
		calloc(l->modules.n_entries + 1, sizeof(*gaps));
	size_t n = 0;

	if (!gaps)
		return -ENOMEM;
	for (uint32_t m = 0; m < l->modules.n_entries; m++)
		n += find_gap(l, m, first, end, &gaps[n]);
	qsort(gaps, n, sizeof(*gaps), compare_gaps);
	for (size_t i = 0; i < n; i++)
		say(arg, &gaps[i]);
	names->are_missing |= n > 0;
	free(gaps);
	return 0;
}

/* ---- all of it ---- */

static int looker_init(struct looker *l, const struct sp_pair *pair)
{
	const size_t n = pair->paths->frames.n_entries;

	*l = (struct looker){.pair = pair,
			     .n_frames = n,
			     .n_runs = pair->old.n + pair->new.n};
	l->module_of = calloc(n + 1, sizeof(*l->module_of));
	l->frame_of = calloc(n + 1, sizeof(*l->frame_of));
	l->seen = calloc(n + 1, sizeof(*l->seen));
	l->seen_unnamed = calloc(n + 1, sizeof(*l->seen_unnamed));
	l->is_mixed = calloc(n + 1, sizeof(*l->is_mixed));
	l->bytes = calloc(l->n_runs + 1, sizeof(*l->bytes));
	if (!l->module_of || !l->frame_of || !l->seen || !l->seen_unnamed ||
	    !l->is_mixed || !l->bytes || find_modules(l) < 0)
		return -ENOMEM;
	l->shares = calloc(l->modules.n_entries * l->n_runs + 1,
			   sizeof(*l->shares));
	return l->shares ? 0 : -ENOMEM;
}

static void looker_done(struct looker *l)
{
	sp_intern_done(&l->modules);
	free(l->module_of);
	free(l->frame_of);
	free(l->seen);
	free(l->seen_unnamed);
	free(l->is_mixed);
	free(l->bytes);
	free(l->shares);
}

int sp_names_init(struct sp_names *ret, const struct sp_pair *pair,
		  void (*say)(void *arg, const struct sp_names_gap *gap),
		  void *arg)
{
	struct looker l;
	int r = looker_init(&l, pair);

	*ret = (struct sp_names){0};
	for (size_t run = 0; !r && run < l.n_runs; run++)
		look_at_run(&l, run);
	if (!r) {
		ret->mixed =
			calloc(l.modules.n_entries + 1, sizeof(*ret->mixed));
		r = ret->mixed ? 0 : -ENOMEM;
	}
	for (uint32_t m = 0; !r && m < l.modules.n_entries; m++) {
		l.is_mixed[m] = is_mixed(&l, m);
		if (l.is_mixed[m])
			ret->mixed[ret->n_mixed++] = l.frame_of[m];
	}
	if (!r)
		r = say_gaps(&l, ret, 0, pair->old.n, say, arg);
	if (!r)
		r = say_gaps(&l, ret, pair->old.n, l.n_runs, say, arg);
	looker_done(&l);
	return r;
}

bool sp_names_is_mixed(const struct sp_names *names,
		       const struct sp_paths *paths, uint32_t frame)
{
	const char *name = sp_paths_name(paths, frame);

	if (*name == '[' && !is_unnamed(paths, frame))
		return false;
	for (size_t i = 0; i < names->n_mixed; i++)
		if (sp_paths_same_module(paths, names->mixed[i], frame))
			return true;
	return false;
}

bool sp_names_is_mixed_path(const struct sp_names *names,
			    const struct sp_paths *paths, uint32_t path)
{
	const struct sp_path p = sp_paths_at(paths, path);

	for (size_t d = 0; names->n_mixed && d < p.n; d++)
		if (sp_names_is_mixed(names, paths, p.frame[d]))
			return true;
	return false;
}

void sp_names_done(struct sp_names *names)
{
	free(names->mixed);
}
