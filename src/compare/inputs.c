/* SPDX-License-Identifier: MIT */
#include "compare/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare/baseline.h"
#include "read/load.h"
#include "report/load.h"
#include "symbols/images.h"
#include "symbols/symbol_cache.h"

/* Names beyond that are looked up once more in each run. */
#define CACHE_BYTES ((size_t)64 << 20)

static void free_runs(struct sp_summary **runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sp_summary_free(runs[i]);
	free(runs);
}

void sp_inputs_done(struct sp_inputs *s)
{
	free_runs(s->old, s->n_old);
	free_runs(s->new, s->n_new);
	sp_paths_done(&s->paths);
	sp_symbol_cache_free(s->cache);
	sp_images_free(s->images);
}

bool sp_inputs_is_baseline(const char *path)
{
	const size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

/* One recording is one run, and no run its own baseline: what is the same on
 * both sides has neither changed nor noise. */
static int check_repeats(const struct sp_summary *run,
			 struct sp_summary *const *others, size_t n,
			 struct sp_error *err)
{
	for (size_t i = 0; i < n; i++)
		if (sp_summary_shares_recording(run, others[i]))
			return sp_error_set(
				err, -EINVAL, run->path,
				strcmp(run->path, others[i]->path) != 0
					? "is the same recording as %.150s: "
					  "name each once, and compare "
					  "different runs"
					: "is named twice, or has a recording "
					  "twice: name each once, and compare "
					  "different runs",
				others[i]->path);
	return 0;
}

/* Runs of one side are looked at as independent.  Those of two sides need not
 * be, and it is said: alike samples make their difference smaller. */
static int check_seeds(const struct sp_summary *run,
		       struct sp_summary *const *others, size_t n,
		       struct sp_error *err)
{
	for (size_t i = 0; i < n; i++)
		if (sp_summary_shares_seed(run, others[i]))
			return sp_error_set(
				err, -EINVAL, run->path,
				"was recorded with the seed of %.150s "
				"(SAMPLEPROF_SEED): the samples of runs have "
				"to be independent, so record each run with "
				"a seed of its own, or with none",
				others[i]->path);
	return 0;
}

static const struct sp_question *question_of(const struct sp_inputs *s,
					     bool is_new)
{
	return !is_new && s->old_question ? s->old_question : s->question;
}

static int check_all_repeats(const struct sp_inputs *s, bool is_new,
			     struct sp_summary *const *more, size_t n_more,
			     struct sp_error *err)
{
	const bool may_share = s->is_update || s->old_question;
	int r = 0;

	for (size_t i = 0; !r && i < n_more; i++) {
		r = check_repeats(more[i], more, i, err);
		if (!r && (is_new || !may_share))
			r = check_repeats(more[i], s->new, s->n_new, err);
		if (!r && (!is_new || !may_share))
			r = check_repeats(more[i], s->old, s->n_old, err);
		if (!r)
			r = check_seeds(more[i], more, i, err);
		if (!r)
			r = check_seeds(more[i], is_new ? s->new : s->old,
					is_new ? s->n_new : s->n_old, err);
	}
	return r;
}

/* The runs go to that side, or away. */
static int append_runs(struct sp_inputs *s, bool is_new,
		       struct sp_summary **more, size_t n_more,
		       const char *path, struct sp_error *err)
{
	struct sp_summary ***runs = is_new ? &s->new : &s->old;
	size_t *n = is_new ? &s->n_new : &s->n_old;
	struct sp_summary **grown = NULL;
	int r = check_all_repeats(s, is_new, more, n_more, err);

	if (!r)
		grown = realloc(*runs, (*n + n_more) * sizeof(**runs));
	if (!grown) {
		for (size_t i = 0; i < n_more; i++)
			sp_summary_free(more[i]);
		if (!r)
			return sp_error_memory(err, path);
		err->file = path; /* not the run's, which went */
		return r;
	}
	memcpy(grown + *n, more, n_more * sizeof(*more));
	*runs = grown;
	*n += n_more;
	s->pair = (struct sp_pair){
		{s->old, s->n_old}, {s->new, s->n_new}, &s->paths};
	return 0;
}

/* What names are and what is seen through is alike on both sides. */
static int prepare_paths(struct sp_inputs *s, struct sp_error *err)
{
	s->pair.paths = &s->paths;
	s->paths.has_full_names = s->symbols->full_names;
	return s->paths.see_through
		       ? 0
		       : sp_see_through_new(&s->symbols->see_through,
					    &s->paths.see_through, err);
}

/* Runs are mostly of one program, whose files are opened once.  Without memory
 * for this each run opens them. */
static struct sp_symbolizer_options share_symbols(struct sp_inputs *s)
{
	struct sp_symbolizer_options symbols = *s->symbols;

	if (!s->images)
		s->images = sp_images_new(&symbols);
	if (!s->cache)
		s->cache = sp_symbol_cache_new(CACHE_BYTES);
	symbols.images = s->images;
	symbols.cache = s->cache;
	return symbols;
}

int sp_inputs_take(struct sp_inputs *s, bool is_new,
		   const struct sp_profile *profile, struct sp_error *err)
{
	const struct sp_symbolizer_options symbols = share_symbols(s);
	struct sp_summary *run;
	int r = prepare_paths(s, err);

	if (r >= 0)
		r = sp_summary_take(profile, &symbols, question_of(s, is_new),
				    &s->wish, &s->paths, &run, err);
	return r < 0 ? r : append_runs(s, is_new, &run, 1, profile->path, err);
}

static int load_profile(struct sp_inputs *s, bool is_new, const char *path,
			struct sp_error *err)
{
	struct sp_profile *profile;
	int r = sp_profile_load(path, NULL, NULL, &profile, err);

	if (r < 0)
		return r;
	r = sp_load_weigh(&path, 1, question_of(s, is_new), profile, err);
	if (r >= 0)
		r = sp_inputs_take(s, is_new, profile, err);
	if (r < 0)
		err->file = path; /* not the profile's, which goes */
	sp_profile_free(profile);
	return r;
}

static int load_baseline(struct sp_inputs *s, bool is_new, const char *path,
			 struct sp_error *err)
{
	struct sp_summary **runs;
	size_t n;
	int r;

	if (!sp_question_is_whole(question_of(s, is_new)))
		return sp_error_set(err, -EINVAL, path,
				    "a baseline has only whole runs: it cannot "
				    "be used with options that choose a part");
	if (s->wish.tables)
		return sp_error_set(err, -EINVAL, path,
				    "a baseline has only call paths: compare "
				    "profiles");
	r = sp_baseline_read(path, &s->paths, &runs, &n, err);
	if (r < 0)
		return r;
	r = append_runs(s, is_new, runs, n, path, err);
	free(runs);
	return r;
}

int sp_inputs_load(struct sp_inputs *s, bool is_new, const char *const *files,
		   size_t n, struct sp_error *err)
{
	int r = prepare_paths(s, err);

	for (size_t i = 0; !r && i < n; i++)
		r = sp_inputs_is_baseline(files[i])
			    ? load_baseline(s, is_new, files[i], err)
			    : load_profile(s, is_new, files[i], err);
	return r;
}

int sp_inputs_see_through(struct sp_inputs *s, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < s->n_old; i++)
		r = sp_summary_see_through(s->old[i], &s->paths);
	for (size_t i = 0; !r && i < s->n_new; i++)
		r = sp_summary_see_through(s->new[i], &s->paths);
	return r < 0 ? sp_error_memory(err, NULL) : 0;
}

int sp_inputs_need(const struct sp_inputs *s, enum sp_view view,
		   struct sp_error *err)
{
	const struct sp_side *const sides[] = {&s->pair.old, &s->pair.new};

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < sides[side]->n; i++)
			if (!sides[side]->run[i]->has_rows[view])
				return sp_error_set(
					err, -ENODATA, NULL,
					"--view %s: run %zu of %s has no such "
					"view (no frees, or a baseline "
					"without it)",
					sp_view_name(view), i + 1,
					side ? "new" : "old");
	return 0;
}
