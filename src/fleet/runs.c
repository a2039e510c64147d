/* SPDX-License-Identifier: MIT */
#include "fleet/runs.h"

#include <errno.h>

#include "fleet/choose.h"
#include "fleet/load.h"

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

/* A mean over runs is that of all processes of its side if each was as likely
 * to be recorded as the others. */
static int check_fraction(struct sp_fleet_runs *runs, bool is_new,
			  double fraction, struct sp_error *err)
{
	double *of_side = &runs->fraction[is_new];

	if (!(*of_side > 0))
		*of_side = fraction;
	if (*of_side == fraction)
		return 0;
	return sp_error_set(err, -EINVAL, runs->db->path,
			    "of the %s side some processes were recorded with "
			    "the probability %g and others with %g "
			    "(SAMPLEPROF_FRACTION), so that their mean is not "
			    "that of all: choose with --label or --host",
			    is_new ? "new" : "old", *of_side, fraction);
}

struct taking {
	struct sp_fleet_runs *runs;
	struct sp_inputs *inputs;
	bool is_new;
};

static int take_one(void *arg, const struct sp_profile *profile,
		    const struct sp_fleet_part *part, struct sp_error *err)
{
	const struct taking *t = arg;
	int r = check_fraction(t->runs, t->is_new, part->fraction, err);

	if (r >= 0)
		r = sp_inputs_take(t->inputs, t->is_new, profile, err);
	/* It may borrow the profile's. */
	if (r < 0)
		err->file = t->runs->db->path;
	return r;
}

/* The processes of a side. */
static int choose_side(struct sp_fleet_runs *runs, bool is_new,
		       struct sp_fleet_chosen *ret, struct sp_error *err)
{
	int r;
	const struct sp_fleet_filter filter =
		filter_of(runs->options, is_new, err, &r);

	if (r >= 0)
		r = sp_fleet_choose(runs->db, &filter, ret, err);
	if (r == -ENOENT)
		sp_error_set(err, r, runs->db->path,
			     "has no process for the %s side: --base says "
			     "which label the old ones have",
			     is_new ? "new" : "old");
	return r;
}

int sp_fleet_runs_load(void *arg, struct sp_inputs *inputs, bool is_new,
		       struct sp_error *err)
{
	struct sp_fleet_runs *runs = arg;
	struct taking taking = {runs, inputs, is_new};
	struct sp_fleet_chosen chosen = {.n = 0};
	int r = 0;

	/* The old side may take long: first see that there is a new one. */
	if (!is_new) {
		r = choose_side(runs, true, &chosen, err);
		sp_fleet_chosen_done(&chosen);
		chosen = (struct sp_fleet_chosen){.n = 0};
	}
	if (r >= 0)
		r = choose_side(runs, is_new, &chosen, err);
	if (r >= 0)
		r = sp_fleet_load_each(runs->db, &chosen, take_one, &taking,
				       err);
	sp_fleet_chosen_done(&chosen);
	return r;
}
