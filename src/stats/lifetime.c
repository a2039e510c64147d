/* SPDX-License-Identifier: MIT */
/*
 * Lifetimes (E26).  Leaving out what is still alive would be simpler, and would
 * call a leak short-lived: only its few objects that were freed would be left.
 */
#include "stats/lifetime.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/order.h"

/* Rounding of a product of fractions must not move a quantile that is met
 * exactly. */
#define ROUNDING 1e-12

struct life {
	uint64_t ns; /* lived that long, or at least that long */
	uint64_t samples;
	double at_risk; /* objects that lived no less; first its own weight */
	uint32_t row;
	bool freed;
};

/* By row and length; at the same length those that were freed come first, for
 * the others lived longer. */
SP_ORDER(compare_lives, struct life, SP_UP(row) || SP_UP(ns) || SP_DOWN(freed));

/* Objects that n such samples stand for. */
static double weight_of(const struct sp_profile *profile,
			const struct sp_sample *s, uint64_t n)
{
	struct sp_acc acc;

	sp_acc_init(&acc, s->period_bytes);
	sp_acc_add_many(&acc, &profile->law, s->size_bytes, n, 0,
			s->period_bytes);
	return acc.est_count;
}

/* As long as the process went on, of what is alive. */
static uint64_t mean_life_ns(const struct sp_profile *profile,
			     const struct sp_alike *of)
{
	const struct sp_sample *s = of->one;
	const uint64_t end = s->freed_ns != SP_NEVER
				     ? s->freed_ns
				     : sp_sample_stop_ns(profile, s);

	if (of->group)
		return of->group->lived_ns / of->samples;
	return end > s->born_ns ? end - s->born_ns : 0;
}

static size_t collect_lives(const struct sp_profile *profile,
			    const struct sp_selection *births,
			    const uint32_t *row_of_stack, size_t n_rows,
			    struct life *lives)
{
	size_t n = 0;

	for (size_t i = 0; i < sp_alike_n(profile); i++) {
		const struct sp_alike of = sp_alike_at(profile, i);
		const struct sp_sample *s = of.one;
		const uint32_t row = row_of_stack[s->stack];

		if (row >= n_rows || !sp_selection_has(births, profile, s))
			continue;
		lives[n++] = (struct life){
			.ns = mean_life_ns(profile, &of),
			.samples = of.samples,
			.at_risk = weight_of(profile, s, of.samples),
			.row = row,
			.freed = of.group || s->freed_ns != SP_NEVER,
		};
	}
	qsort(lives, n, sizeof(*lives), compare_lives);
	return n;
}

/*
 * Between two that are only known to have lived longer, the factors of the
 * curve cancel out: it is then the share that is left of those at risk at
 * `start`, so that few divisions are made.
 */
static void describe_row(struct life *lives, size_t n, struct sp_lifetime *row)
{
	double alive = 0, survival = 1, start = 1, at_start;

	for (size_t i = n; i--;) {
		row->samples += lives[i].samples;
		if (!lives[i].freed) {
			row->alive++;
			alive += lives[i].at_risk;
		}
		if (i + 1 < n)
			lives[i].at_risk += lives[i + 1].at_risk;
	}
	row->alive_share = alive / lives[0].at_risk;
	at_start = lives[0].at_risk;
	for (size_t i = 0; i < n; i++) {
		const double after = i + 1 < n ? lives[i + 1].at_risk : 0;

		if (!lives[i].freed) {
			start = survival;
			at_start = after;
			continue;
		}
		survival = start * (after / at_start);
		if (survival <= 0.5 + ROUNDING && row->median_ns == SP_NEVER)
			row->median_ns = lives[i].ns;
		if (survival <= 0.1 + ROUNDING && row->p90_ns == SP_NEVER)
			row->p90_ns = lives[i].ns;
	}
}

int sp_lifetimes(const struct sp_profile *profile,
		 const struct sp_selection *selection,
		 const uint32_t *row_of_stack, struct sp_lifetime *rows,
		 size_t n_rows, struct sp_error *err)
{
	struct sp_selection births = *selection;
	struct life *lives;
	size_t n;

	lives = calloc(sp_alike_n(profile) + 1, sizeof(*lives));
	if (!lives)
		return sp_error_memory(err, profile->path);
	births.view = SP_VIEW_ALLOC;
	n = collect_lives(profile, &births, row_of_stack, n_rows, lives);
	for (size_t i = 0; i < n_rows; i++)
		rows[i] = (struct sp_lifetime){
			.median_ns = SP_NEVER,
			.p90_ns = SP_NEVER,
		};
	for (size_t begin = 0, end; begin < n; begin = end) {
		for (end = begin;
		     end < n && lives[end].row == lives[begin].row;)
			end++;
		describe_row(&lives[begin], end - begin,
			     &rows[lives[begin].row]);
	}
	free(lives);
	return 0;
}
