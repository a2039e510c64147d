/* SPDX-License-Identifier: MIT */
#include "rss/left.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/order.h"

/* Pairs that are kept before those that are alike become one. */
#define PAIRS_MAX (1u << 20)

struct pair {
	uint32_t row, left; /* rows of the two aggregates */
	double bytes;
};

struct pairs {
	struct pair *list;
	size_t n, room;
};

SP_ORDER(compare_pairs, struct pair, SP_UP(row) || SP_UP(left));

static void join_pairs(struct pairs *p)
{
	size_t n = 0;

	if (p->n)
		qsort(p->list, p->n, sizeof(*p->list), compare_pairs);
	for (size_t i = 0; i < p->n; i++) {
		if (n && compare_pairs(&p->list[n - 1], &p->list[i]) == 0)
			p->list[n - 1].bytes += p->list[i].bytes;
		else
			p->list[n++] = p->list[i];
	}
	p->n = n;
}

static int add_pair(struct pairs *p, uint32_t row, uint32_t left, double bytes)
{
	if (p->n >= PAIRS_MAX)
		join_pairs(p);
	if (sp_array_reserve((void **)&p->list, &p->room, p->n,
			     sizeof(*p->list)) < 0)
		return -ENOMEM;
	p->list[p->n++] = (struct pair){row, left, bytes};
	return 0;
}

static double sample_weight(uint64_t size_bytes, uint64_t period_bytes)
{
	return 1 / sp_inclusion_probability(size_bytes, period_bytes);
}

static size_t first_place(const struct sp_rss_places *p, uint64_t address)
{
	size_t at;

	SP_LOWER_BOUND(at, p->n, p->list[at].end <= address);
	return at;
}

static int add_place(const struct sp_rss_pins *pins,
		     const struct sp_rss_alive *alive,
		     const struct sp_rss_place *place, uint32_t left,
		     double bytes, struct pairs *pairs)
{
	const uint32_t *row_of_stack = pins->aggregate->row_of_stack;
	int r = 0;

	for (size_t i = place->first; i < place->first + place->n && r == 0;
	     i++) {
		const struct sp_rss_object *o = &alive->list[i];
		const struct sp_sample *s = &o->sample;
		const uint32_t row = row_of_stack[s->stack];

		if (!o->is_gone && row != UINT32_MAX)
			r = add_pair(pairs, row, left,
				     bytes * place->share *
					     sample_weight(s->size_bytes,
							   s->period_bytes));
	}
	return r;
}

static int add_freed(const struct sp_rss_pins *pins,
		     const struct sp_rss_alive *alive,
		     const struct sp_rss_places *places,
		     const struct sp_rss_freed *f, struct pairs *pairs)
{
	const uint64_t end = f->address + f->size_bytes;
	const uint32_t left = pins->left_aggregate->row_of_stack[f->stack];
	const double many = sample_weight(f->size_bytes, f->period_bytes);
	int r = 0;

	if (left == UINT32_MAX)
		return 0;
	for (size_t i = first_place(places, f->address);
	     i < places->n && places->list[i].start < end && r == 0; i++) {
		const struct sp_rss_place *p = &places->list[i];
		const uint64_t from =
			p->start > f->address ? p->start : f->address;
		const uint64_t to = p->end < end ? p->end : end;

		r = add_place(pins, alive, p, left, (double)(to - from) * many,
			      pairs);
	}
	return r;
}

/* Those of one row: the largest, and their shares in all of it. */
static void take_left(struct sp_rss_pins *pins, struct sp_rss_pin_site *site,
		      const struct pair *list, size_t n)
{
	double all = 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = site->n_left;

		all += list[i].bytes;
		while (at && site->left[at - 1].share < list[i].bytes)
			at--;
		if (at == SP_RSS_PINS_LEFT)
			continue;
		if (site->n_left < SP_RSS_PINS_LEFT)
			site->n_left++;
		for (size_t k = site->n_left - 1; k > at; k--)
			site->left[k] = site->left[k - 1];
		site->left[at].function =
			sp_aggregate_at(pins->left_aggregate, list[i].left);
		site->left[at].share = list[i].bytes;
	}
	for (size_t i = 0; i < site->n_left; i++)
		site->left[i].share /= all;
}

static void take_pairs(struct sp_rss_pins *pins, const struct pairs *pairs)
{
	for (size_t k = 0; k < pins->n_sites; k++) {
		struct sp_rss_pin_site *site = &pins->sites[k];
		size_t at, end;

		SP_LOWER_BOUND(at, pairs->n,
			       pairs->list[at].row < site->function->row);
		for (end = at; end < pairs->n &&
			       pairs->list[end].row == site->function->row;)
			end++;
		take_left(pins, site, pairs->list + at, end - at);
	}
}

int sp_rss_left_find(struct sp_rss_pins *pins, const struct sp_rss_alive *alive,
		     const struct sp_rss_places *places)
{
	struct pairs pairs = {.n = 0};
	int r = 0;

	for (size_t i = 0; i < alive->n_freed && r == 0; i++)
		r = add_freed(pins, alive, places, &alive->freed[i], &pairs);
	join_pairs(&pairs);
	if (r == 0)
		take_pairs(pins, &pairs);
	free(pairs.list);
	return r;
}
