/* SPDX-License-Identifier: MIT */
#include "gate/sides.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline.h"

static void free_runs(struct sp_summary **runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sp_summary_free(runs[i]);
	free(runs);
}

void sp_sides_done(struct sp_sides *s)
{
	free_runs(s->old, s->n_old);
	free_runs(s->new, s->n_new);
	sp_paths_done(&s->paths);
}

bool sp_sides_is_baseline(const char *path)
{
	const size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

/* The runs go to that side, or away. */
static int append(struct sp_sides *s, bool is_new, struct sp_summary **more,
		  size_t n_more, const char *path, struct sp_error *err)
{
	struct sp_summary ***runs = is_new ? &s->new : &s->old;
	size_t *n = is_new ? &s->n_new : &s->n_old;
	struct sp_summary **grown =
		realloc(*runs, (*n + n_more) * sizeof(**runs));

	if (!grown) {
		for (size_t i = 0; i < n_more; i++)
			sp_summary_free(more[i]);
		return sp_error_set(err, -ENOMEM, path, "not enough memory");
	}
	memcpy(grown + *n, more, n_more * sizeof(*more));
	*runs = grown;
	*n += n_more;
	s->pair = (struct sp_pair){
		{s->old, s->n_old}, {s->new, s->n_new}, &s->paths};
	return 0;
}

int sp_sides_take(struct sp_sides *s, bool is_new,
		  const struct sp_profile *profile, struct sp_error *err)
{
	struct sp_summary *run;
	int r = sp_summary_take(profile, s->symbols, s->question, &s->wish,
				&s->paths, &run, err);

	return r < 0 ? r : append(s, is_new, &run, 1, profile->path, err);
}

static int load_profile(struct sp_sides *s, bool is_new, const char *path,
			struct sp_error *err)
{
	struct sp_profile *profile;
	int r = sp_profile_load(path, NULL, NULL, &profile, err);

	if (r < 0)
		return r;
	r = sp_sides_take(s, is_new, profile, err);
	if (r < 0)
		err->file = path; /* not the profile's, which goes */
	sp_profile_free(profile);
	return r;
}

static int load_baseline(struct sp_sides *s, bool is_new, const char *path,
			 struct sp_error *err)
{
	struct sp_summary **runs;
	size_t n;
	int r;

	if (!sp_question_is_whole(s->question))
		return sp_error_set(err, -EINVAL, path,
				    "a baseline has only whole runs: it goes "
				    "without options that choose a part");
	if (s->wish.tables)
		return sp_error_set(err, -EINVAL, path,
				    "a baseline has only call paths: compare "
				    "profiles");
	r = sp_baseline_read(path, &s->paths, &runs, &n, err);
	if (r < 0)
		return r;
	r = append(s, is_new, runs, n, path, err);
	free(runs);
	return r;
}

int sp_sides_load(struct sp_sides *s, bool is_new, const char *const *files,
		  size_t n, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = sp_sides_is_baseline(files[i])
			    ? load_baseline(s, is_new, files[i], err)
			    : load_profile(s, is_new, files[i], err);
	s->pair.paths = &s->paths;
	return r;
}

int sp_sides_need(const struct sp_sides *s, enum sp_view view,
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
