/* SPDX-License-Identifier: MIT */
#include "fleet/drawn.h"

#include <errno.h>
#include <stdlib.h>

#include "base/order.h"

/* A function's sums of the unit that is being added up. */
struct sums {
	struct sp_acc flat, cum;
	bool is_touched;
};

struct adder {
	struct sp_fleet_drawn *d;
	const struct sp_fleet_part *parts;
	size_t *order;     /* parts, those of a unit together */
	size_t *first;     /* of each part's samples; one more for the end */
	struct sums *sums; /* by a function's `row` */
	uint32_t *touched; /* rows */
	size_t n_touched;
	struct sp_fleet_row *rows; /* by a function's `row` */
	size_t n_by_row;
	const struct sp_aggregate_stack **stacks; /* by position */
	struct sp_acc view;
};

bool sp_fleet_is_drawn(const struct sp_fleet_part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (parts[i].fraction < 1)
			return true;
	return false;
}

/* ---- units ---- */

static bool is_same_unit(const struct sp_fleet_part *a,
			 const struct sp_fleet_part *b)
{
	return a->draw && a->draw == b->draw;
}

static int compare_draws(const void *a, const void *b, void *arg)
{
	const struct sp_fleet_part *parts = arg;
	const size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (parts[i].draw != parts[k].draw)
		return parts[i].draw < parts[k].draw ? -1 : 1;
	return (i > k) - (i < k);
}

static const struct sp_profile *profile_of(const struct adder *a)
{
	return a->d->aggregate->analysis->profile;
}

static void touch_row(struct adder *a, uint32_t row)
{
	struct sums *s = &a->sums[row];
	const uint64_t period = profile_of(a)->period_bytes;

	if (s->is_touched)
		return;
	*s = (struct sums){.is_touched = true};
	sp_acc_init(&s->flat, period);
	sp_acc_init(&s->cum, period);
	a->touched[a->n_touched++] = row;
}

static void add_sample(struct adder *a, const struct sp_sample *s)
{
	const struct sp_aggregate *g = a->d->aggregate;
	const struct sp_aggregate_stack *stack = a->stacks[s->stack];
	const struct sp_alike of = sp_alike_one(s);
	const struct sp_acc one =
		sp_selection_terms(&g->analysis->selection, profile_of(a), &of);
	const uint32_t flat = g->row_of_stack[s->stack];

	sp_acc_merge(&a->view, &one);
	if (!stack || flat == UINT32_MAX)
		return;
	touch_row(a, flat);
	sp_acc_merge(&a->sums[flat].flat, &one);
	for (uint32_t i = 0; i < stack->n_rows; i++) {
		const uint32_t row = g->rows[stack->first_row + i];
		bool is_again = false;

		/* Recursion counts once. */
		for (uint32_t k = 0; k < i && !is_again; k++)
			is_again = g->rows[stack->first_row + k] == row;
		if (is_again)
			continue;
		touch_row(a, row);
		sp_acc_merge(&a->sums[row].cum, &one);
	}
}

static void finish_unit(struct adder *a, double fraction)
{
	for (size_t i = 0; i < a->n_touched; i++) {
		const uint32_t row = a->touched[i];

		if (a->sums[row].flat.samples)
			sp_two_stage_add(&a->rows[row].flat, &a->sums[row].flat,
					 fraction);
		if (a->sums[row].cum.samples)
			sp_two_stage_add(&a->rows[row].cum, &a->sums[row].cum,
					 fraction);
		a->sums[row].is_touched = false;
	}
	a->n_touched = 0;
	if (a->view.samples)
		sp_two_stage_add(&a->d->view, &a->view, fraction);
}

/* The parts order[from..to) were drawn together. */
static void add_unit(struct adder *a, size_t from, size_t to)
{
	const struct sp_profile *p = profile_of(a);
	const double fraction = a->parts[a->order[from]].fraction;
	double bytes = 0, objects = 0;

	sp_acc_init(&a->view, p->period_bytes);
	for (size_t i = from; i < to; i++) {
		const size_t part = a->order[i];

		bytes += (double)p->parts[part].exact_alloc_bytes;
		objects += (double)p->parts[part].exact_alloc_objects;
		for (size_t k = a->first[part]; k < a->first[part + 1]; k++)
			if (sp_selection_has(
				    &a->d->aggregate->analysis->selection, p,
				    &p->samples[k]))
				add_sample(a, &p->samples[k]);
	}
	finish_unit(a, fraction);
	sp_two_stage_add_exact(&a->d->processes, (double)(to - from), fraction);
	sp_two_stage_add_exact(&a->d->exact_bytes, bytes, fraction);
	sp_two_stage_add_exact(&a->d->exact_objects, objects, fraction);
	a->d->n_units++;
}

/* ---- all of them ---- */

static size_t count_by_row(const struct sp_aggregate *g)
{
	return g->n_functions + g->n_dropped;
}

static bool adder_init(struct adder *a)
{
	const struct sp_aggregate *g = a->d->aggregate;
	const struct sp_profile *p = profile_of(a);
	size_t k = 0;

	a->n_by_row = count_by_row(g);
	a->order = calloc(p->n_parts + 1, sizeof(*a->order));
	a->first = calloc(p->n_parts + 1, sizeof(*a->first));
	a->sums = calloc(a->n_by_row + 1, sizeof(*a->sums));
	a->touched = calloc(a->n_by_row + 1, sizeof(*a->touched));
	a->rows = calloc(a->n_by_row + 1, sizeof(*a->rows));
	a->stacks = calloc(p->n_stacks + 1, sizeof(*a->stacks));
	if (!a->order || !a->first || !a->sums || !a->touched || !a->rows ||
	    !a->stacks)
		return false;
	for (size_t i = 0; i < g->n_stacks; i++)
		a->stacks[g->stacks[i].stack - p->stacks] = &g->stacks[i];
	/* Samples are in the order of their parts. */
	for (size_t i = 0; i <= p->n_parts; i++) {
		while (k < p->n_samples && p->samples[k].part < i)
			k++;
		a->first[i] = k;
		if (i < p->n_parts)
			a->order[i] = i;
	}
	qsort_r(a->order, p->n_parts, sizeof(*a->order), compare_draws,
		(void *)(uintptr_t)a->parts);
	return true;
}

static void adder_done(struct adder *a)
{
	free(a->order);
	free(a->first);
	free(a->sums);
	free(a->touched);
	free(a->rows);
	free(a->stacks);
}

static double smallest_fraction(const struct sp_fleet_part *parts, size_t n)
{
	double least = 1;

	for (size_t i = 0; i < n; i++)
		if (parts[i].fraction < least)
			least = parts[i].fraction;
	return least;
}

static void init_sums(struct adder *a)
{
	struct sp_fleet_drawn *d = a->d;
	const struct sp_profile *p = profile_of(a);
	const double f = smallest_fraction(a->parts, p->n_parts);

	for (size_t i = 0; i < a->n_by_row; i++) {
		sp_two_stage_init(&a->rows[i].flat, p->period_bytes, f);
		sp_two_stage_init(&a->rows[i].cum, p->period_bytes, f);
	}
	sp_two_stage_init(&d->view, p->period_bytes, f);
	sp_two_stage_init(&d->processes, 1, f);
	sp_two_stage_init(&d->exact_bytes, 1, f);
	sp_two_stage_init(&d->exact_objects, 1, f);
}

static int check_fractions(const struct adder *a, struct sp_error *err)
{
	const struct sp_profile *p = profile_of(a);

	for (size_t i = 1; i < p->n_parts; i++) {
		const struct sp_fleet_part *one = &a->parts[a->order[i - 1]];
		const struct sp_fleet_part *other = &a->parts[a->order[i]];

		if (is_same_unit(one, other) &&
		    one->fraction != other->fraction)
			return sp_error_set(err, -EINVAL, p->path,
					    "processes of one draw have "
					    "different fractions: one of the "
					    "files is forged; leave it out "
					    "with --label, --host, --from or "
					    "--to");
	}
	return 0;
}

static void add_all(struct adder *a)
{
	const size_t n = profile_of(a)->n_parts;

	for (size_t from = 0, to; from < n; from = to) {
		to = from + 1;
		while (to < n && is_same_unit(&a->parts[a->order[from]],
					      &a->parts[a->order[to]]))
			to++;
		add_unit(a, from, to);
	}
}

/* The largest first; of equal ones as before. */
SP_ORDER(compare_rows, struct sp_fleet_row,
	 SP_DOWN(flat.bytes.est_bytes) || SP_UP(function));

int sp_fleet_drawn_init(struct sp_fleet_drawn *drawn,
			const struct sp_aggregate *aggregate,
			const struct sp_fleet_part *parts, struct sp_error *err)
{
	struct adder a = {.d = drawn, .parts = parts};
	int r = 0;

	*drawn = (struct sp_fleet_drawn){.aggregate = aggregate};
	drawn->rows = calloc(aggregate->n_functions + 1, sizeof(*drawn->rows));
	if (!drawn->rows || !adder_init(&a))
		r = sp_error_memory(err, NULL);
	if (r >= 0)
		r = check_fractions(&a, err);
	if (r >= 0) {
		init_sums(&a);
		add_all(&a);
		for (size_t i = 0; i < aggregate->n_functions; i++) {
			const struct sp_aggregate_function *f =
				&aggregate->functions[i];

			drawn->rows[i] = a.rows[f->row];
			drawn->rows[i].function = f;
		}
		drawn->n_rows = aggregate->n_functions;
		qsort(drawn->rows, drawn->n_rows, sizeof(*drawn->rows),
		      compare_rows);
	}
	adder_done(&a);
	return r;
}

void sp_fleet_drawn_done(struct sp_fleet_drawn *drawn)
{
	free(drawn->rows);
	drawn->rows = NULL;
}
