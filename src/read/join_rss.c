/* SPDX-License-Identifier: MIT */
/* Resident memory of several processes, added up. */
#include <errno.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/wide.h"
#include "read/join.h"

/* A step of one file's resident size: what it was and what it is from then. */
struct step {
	uint64_t time_ns;
	uint64_t before;
	uint64_t after;
};

SP_ORDER(compare_steps, struct step, SP_UP(time_ns));

/* The parts' steps in order of time; *ret_n <= n_rss + n_parts. */
static struct step *make_steps(const struct sp_profile *p, const size_t *counts,
			       size_t *ret_n)
{
	struct step *steps =
		malloc((p->n_rss + p->n_parts + 1) * sizeof(*steps));
	size_t n = 0, k = 0;

	for (size_t i = 0; steps && i < p->n_parts; i++) {
		const struct sp_part *part = &p->parts[i];
		uint64_t last = 0;

		for (size_t left = counts[i]; left--; k++) {
			const uint64_t now = p->rss[k].rss_bytes;

			steps[n++] = (struct step){
				sp_join_time(p->rss[k].time_ns, part->start_ns),
				last, now};
			last = now;
		}
		if (part->stop_ns != SP_NEVER)
			steps[n++] = (struct step){part->stop_ns, last, 0};
	}
	if (steps)
		qsort(steps, n, sizeof(*steps), compare_steps);
	*ret_n = n;
	return steps;
}

int sp_join_add_up_rss(struct sp_profile *p, const size_t *counts)
{
	sp_u128 sum = 0;
	struct sp_rss *rss;
	struct step *steps;
	size_t n;

	if (!p->n_rss)
		return 0;
	steps = make_steps(p, counts, &n);
	rss = malloc((n + 1) * sizeof(*rss));
	if (!steps || !rss) {
		free(steps);
		free(rss);
		return -ENOMEM;
	}
	free(p->rss);
	p->rss = rss;
	p->n_rss = 0;
	for (size_t i = 0; i < n; i++) {
		sum = sum - steps[i].before + steps[i].after;
		if (i + 1 < n && steps[i + 1].time_ns == steps[i].time_ns)
			continue;
		rss[p->n_rss++] = (struct sp_rss){
			steps[i].time_ns,
			sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum};
	}
	free(steps);
	return 0;
}

int sp_join_sum_rss(struct sp_join *j)
{
	struct sp_profile *p = j->p;
	size_t *counts = calloc(p->n_parts + 1, sizeof(*counts));
	int r;

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_parts; i++) {
		counts[i] = j->files[i].spans[SP_JOIN_RSS].n;
		if (!j->files[i].may_have_rss)
			p->n_rss = 0;
	}
	r = sp_join_add_up_rss(p, counts);
	free(counts);
	return r;
}
