/* SPDX-License-Identifier: MIT */
#include "report/leak_sites.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MIB 1048576.0

static struct sp_interval divide_interval(struct sp_interval i, double by)
{
	return (struct sp_interval){i.value / by, i.lo / by, i.hi / by};
}

/* No allocator's objects are smaller: below it, nearly all are recorded, and
 * what is not decided then wants a longer run. */
#define SHORTEST_PERIOD 16

/* As it may be set: a power of two that is not longer; 0: none would do. */
static uint64_t shorter_period(const struct sp_profile *p, double by)
{
	const double period = exp2(floor(log2((double)p->period_bytes / by)));

	return period >= SHORTEST_PERIOD ? (uint64_t)period : 0;
}

static void describe_site(const struct sp_leak_sites *s,
			  const struct sp_profile *p, struct sp_leak_site *site)
{
	const struct sp_leak *leak = site->leak;
	const struct sp_growth *g = &leak->growth[SP_LEAK_BY_TIME];
	const uint64_t *edge = s->leaks->clock.edge_ns;
	const double run_ns = (double)(edge[SP_GROWTH_WINDOWS] - edge[0]);

	site->per_s = divide_interval(leak->bytes, s->seconds);
	/* without an allocation there is no rate by these */
	site->per_mib = divide_interval(leak->bytes,
					fmax(s->leaks->alloc_bytes, 1) / MIB);
	site->samples = g->gained[0].samples + g->lost[0].samples;
	if (leak->longer > 0)
		site->longer_ns = (uint64_t)((leak->longer - 1) * run_ns);
	if (leak->shorter > 0)
		site->period_bytes = shorter_period(p, leak->shorter);
}

/* ---- which call stack ---- */

static void find_stacks(const struct sp_aggregate *aggregate,
			struct sp_leak_sites *s)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	double *all = calloc(s->n_sites + 1, sizeof(*all));
	double *most = calloc(s->n_sites + 1, sizeof(*most));

	for (size_t i = 0; all && most && i < aggregate->n_stacks; i++) {
		const struct sp_aggregate_stack *stack = &aggregate->stacks[i];
		const size_t at = (size_t)(stack->stack - p->stacks);
		const double gained = s->leaks->gained_bytes[at];
		const uint32_t row = aggregate->row_of_stack[at];

		if (row >= s->n_sites)
			continue;
		all[row] += gained;
		if (gained <= most[row])
			continue;
		most[row] = gained;
		s->sites[row].stack = stack;
	}
	for (size_t i = 0; all && most && i < s->n_sites; i++)
		if (all[i] > 0)
			s->sites[i].stack_share = most[i] / all[i];
	free(all);
	free(most);
}

/* ---- order ---- */

/* Functions without a sample of their own. */
static void drop_callers(struct sp_leak_sites *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_sites; i++)
		if (s->sites[i].leak->growth[SP_LEAK_BY_TIME].samples)
			s->sites[n++] = s->sites[i];
	s->n_sites = n;
}

static int rank_of(const struct sp_leak *leak)
{
	switch (leak->verdict) {
	case SP_LEAK_LEAK:
		return 0;
	case SP_LEAK_FILLING:
		return 2;
	case SP_LEAK_STEADY:
		return 4;
	default:
		return leak->grows ? 1 : 3;
	}
}

static int compare_sites(const void *a, const void *b)
{
	const struct sp_leak_site *x = a, *y = b;
	const int by_rank = rank_of(x->leak) - rank_of(y->leak);
	const int by_bytes = sp_aggregate_compare_values(x->leak->bytes.value,
							 y->leak->bytes.value);

	if (by_rank)
		return by_rank;
	return by_bytes ? by_bytes
			: sp_aggregate_compare(x->function, y->function);
}

/* ---- all of it ---- */

static int make_sites(const struct sp_aggregate *aggregate,
		      struct sp_leak_sites *s)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	const uint64_t *edge = s->leaks->clock.edge_ns;

	s->n_sites = s->leaks->n_rows;
	s->sites = calloc(s->n_sites + 1, sizeof(*s->sites));
	if (!s->sites)
		return -ENOMEM;
	s->seconds = (double)(edge[SP_GROWTH_WINDOWS] - edge[SP_GROWTH_START]) *
		     1e-9;
	for (size_t i = 0; i < s->n_sites; i++) {
		s->sites[i].function = sp_aggregate_at(aggregate, (uint32_t)i);
		s->sites[i].leak = &s->leaks->rows[i];
		describe_site(s, p, &s->sites[i]);
	}
	s->all.leak = &s->leaks->rows[s->n_sites];
	describe_site(s, p, &s->all);
	find_stacks(aggregate, s);
	drop_callers(s);
	qsort(s->sites, s->n_sites, sizeof(*s->sites), compare_sites);
	return 0;
}

int sp_leak_sites_new(const struct sp_aggregate *aggregate, uint64_t from_ns,
		      uint64_t to_ns, struct sp_leak_sites **ret,
		      struct sp_error *err)
{
	const struct sp_profile *p = aggregate->analysis->profile;
	struct sp_leak_sites *s;
	int r = -ENOMEM;

	if (p->duration_ns < SP_PROFILE_RATE_NS && !p->is_timeless)
		return sp_error_set(err, -ENODATA, p->path,
				    "the run is too short for rates: less than "
				    "a millisecond");
	s = calloc(1, sizeof(*s));
	if (!s)
		return sp_error_memory(err, p->path);
	r = sp_leaks_new(p, aggregate->row_of_stack, aggregate->n_functions,
			 from_ns, to_ns, &s->leaks, err);
	if (r >= 0 && make_sites(aggregate, s) < 0)
		r = sp_error_memory(err, p->path);
	if (r < 0) {
		sp_leak_sites_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void sp_leak_sites_free(struct sp_leak_sites *sites)
{
	if (!sites)
		return;
	sp_leaks_free(sites->leaks);
	free(sites->sites);
	free(sites);
}
