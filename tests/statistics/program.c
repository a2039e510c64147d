/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <math.h>
#include <stdlib.h>

#include "stats/special.h"

/* Objects of a distribution that stand for themselves; the others are in
 * groups, each by an eighth larger than the one before. */
#define SINGLE_OBJECTS 32

void program_init(struct program *p)
{
	p->turns = 1;
	p->kinds = 0;
	p->runs = 0;
}

static void add_run(struct program *p, double size, uint64_t count,
		    bool in_rest)
{
	if (p->kinds == KINDS_MAX || p->runs == RUNS_MAX)
		abort();
	p->kind[p->kinds] =
		(struct kind){(uint64_t)fmax(1, size), PERIOD, in_rest};
	p->run[p->runs++] = (struct run){p->kinds++, count};
}

static uint64_t objects_in(double bytes, double size)
{
	return (uint64_t)fmax(1, round(bytes / size));
}

/* Size that a share `upper` of the objects has at least. */
static double size_at(const struct workload *w, double upper)
{
	if (w->sizes == SIZES_PARETO)
		return 16 * pow(upper, -1 / w->a);
	return 64 * exp(-w->a * sp_special_normal_quantile(upper));
}

/* The quantiles of n objects, the largest first; adds them to `p` unless that
 * is NULL.  Returns their bytes. */
static double quantiles(struct program *p, const struct workload *w, double n,
			bool in_rest)
{
	double rank = 0, bytes = 0;

	while (rank < n) {
		const double left = n - rank;
		const double group =
			rank < SINGLE_OBJECTS ? 1 : floor(rank / 8);
		const double count = fmin(left, group);
		const double size =
			fmax(1, floor(size_at(w, (rank + count / 2) / n)));

		if (p)
			add_run(p, size, (uint64_t)count, in_rest);
		bytes += size * count;
		rank += count;
	}
	return bytes;
}

/* As many objects as have about those bytes. */
static void add_distribution(struct program *p, const struct workload *w,
			     double bytes, bool in_rest)
{
	double low = 1, high = 1;

	while (quantiles(NULL, w, high, in_rest) < bytes)
		high *= 2;
	while (high - low > 1 && high > low * 1.001) {
		const double middle = floor((low + high) / 2);

		if (quantiles(NULL, w, middle, in_rest) < bytes)
			low = middle;
		else
			high = middle;
	}
	quantiles(p, w, high, in_rest);
}

/* One object of the subset in each period's worth of bytes. */
static void add_periodic(struct program *p, const struct workload *w,
			 double bytes, bool in_rest)
{
	p->turns = objects_in(bytes, w->a);
	add_run(p, w->a, 1, in_rest);
	add_run(p, w->a, objects_in(PERIOD - w->a, w->a), !in_rest);
}

void program_add(struct program *p, const struct workload *w, double bytes,
		 bool in_rest)
{
	switch (w->sizes) {
	case SIZES_FIXED:
		add_run(p, w->a, objects_in(bytes, w->a), in_rest);
		break;
	case SIZES_PARETO:
	case SIZES_LOGNORMAL:
		add_distribution(p, w, bytes, in_rest);
		break;
	case SIZES_PAIR:
		add_run(p, w->a, objects_in(bytes / 2, w->a), in_rest);
		add_run(p, w->b, objects_in(bytes / 2, w->b), in_rest);
		break;
	case SIZES_JEMALLOC:
		add_run(p, 8, objects_in(bytes / 2, 8), in_rest);
		add_run(p, bytes / 2, 1, in_rest);
		break;
	case SIZES_SINGLE:
		add_run(p, bytes, 1, in_rest);
		break;
	case SIZES_PERIODIC:
		add_periodic(p, w, bytes, in_rest);
		break;
	}
}

double program_bytes(const struct program *p, bool in_rest)
{
	double bytes = 0;

	for (unsigned int i = 0; i < p->runs; i++) {
		const struct kind *k = &p->kind[p->run[i].kind];

		if (k->in_rest == in_rest)
			bytes +=
				(double)k->size_bytes * (double)p->run[i].count;
	}
	return bytes * (double)p->turns;
}

double program_objects(const struct program *p, bool in_rest)
{
	double n = 0;

	for (unsigned int i = 0; i < p->runs; i++)
		if (p->kind[p->run[i].kind].in_rest == in_rest)
			n += (double)p->run[i].count;
	return n * (double)p->turns;
}
