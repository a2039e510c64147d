/* SPDX-License-Identifier: MIT */
#include "fleet/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fleet/load.h"

/* The processes of a side, by their numbers in the database. */
struct numbers {
	uint64_t *at;
	size_t n, room;
};

static struct sp_fleet_filter filter_of(const struct sp_fleet_options *o,
					bool is_new, struct sp_error *err,
					int *ret)
{
	struct sp_fleet_filter f = o->filter;

	*ret = 0;
	if (f.n_labels + o->n_base > SP_FLEET_LABELS_MAX)
		*ret = sp_error_set(err, -EINVAL, NULL,
				    "--label and --base: too many of them");
	for (size_t i = 0; i < o->n_base && !*ret; i++) {
		if (is_new)
			f.without[f.n_without++] = o->base[i];
		else
			f.labels[f.n_labels++] = o->base[i];
	}
	return f;
}

static int read_numbers(struct sp_fleet_db *db, struct numbers *to,
			struct sp_error *err)
{
	sqlite3_stmt *s = sp_fleet_statement(db, SP_FLEET_GET_CHOSEN, err);
	int r = -EIO;

	while (s && (r = sp_fleet_step(db, s, err)) > 0) {
		if (sp_array_reserve((void **)&to->at, &to->room, to->n,
				     sizeof(*to->at)))
			return sp_error_set(err, -ENOMEM, db->path,
					    "not enough memory");
		to->at[to->n++] = sp_fleet_u64(s, 0);
	}
	return r;
}

static int choose_one(struct sp_fleet_db *db, uint64_t process,
		      struct sp_error *err)
{
	sqlite3_stmt *s;
	int r = sp_fleet_exec(db, SP_FLEET_CHOOSE_NONE, err);

	if (r < 0)
		return r;
	s = sp_fleet_statement(db, SP_FLEET_CHOOSE_ONE, err);
	if (s)
		sp_fleet_bind(s, 1, process);
	return sp_fleet_run(db, s, err);
}

static int take_one(struct sp_fleet_runs *runs, struct sp_inputs *sides,
		    bool is_new, uint64_t process, struct sp_error *err)
{
	struct sp_fleet_part *parts;
	struct sp_profile *profile;
	int r = choose_one(runs->db, process, err);

	if (r >= 0)
		r = sp_fleet_load(runs->db, &profile, &parts, err);
	if (r < 0)
		return r;
	r = sp_inputs_take(sides, is_new, profile, err);
	/* It may borrow the profile's. */
	if (r < 0)
		err->file = runs->db->path;
	sp_profile_free(profile);
	free(parts);
	return r;
}

int sp_fleet_runs_load(void *arg, struct sp_inputs *sides, bool is_new,
		       struct sp_error *err)
{
	struct sp_fleet_runs *runs = arg;
	struct numbers numbers = {.n = 0};
	uint64_t n;
	int r;
	const struct sp_fleet_filter filter =
		filter_of(runs->options, is_new, err, &r);

	if (r >= 0)
		r = sp_fleet_choose(runs->db, &filter, &n, err);
	if (r == -ENOENT)
		sp_error_set(err, r, runs->db->path,
			     "has no process for the %s side: --base says "
			     "which label the old ones have",
			     is_new ? "new" : "old");
	if (r >= 0)
		r = read_numbers(runs->db, &numbers, err);
	for (size_t i = 0; i < numbers.n && r >= 0; i++)
		r = take_one(runs, sides, is_new, numbers.at[i], err);
	free(numbers.at);
	return r;
}
