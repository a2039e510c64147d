/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>

#include "format/layout.h"
#include "lab/other_estimators.h"
#include "replicate.h"

const double levels[LEVELS] = {0.95, 0.90, 0.99, 0.999, 0.9999};

static const struct {
	const char *name;
	enum sp_method method; /* of those that the report has */
	double slack; /* below the confidence is claimed, times 1 - confidence
		       */
	bool is_valid;
} answers[ANSWERS] = {
	[ANSWER_P3] = {"p3", SP_METHOD_P3, 0, true},
	[ANSWER_P3T] = {"p3t", SP_METHOD_P3T, 0, true},
	[ANSWER_NEGBINOM] = {"negbinom", 0, 0, true},
	[ANSWER_AS_WRITTEN] = {"as-written", 0, 0, false},
	[ANSWER_OBJECTS] = {"objects", SP_METHOD_P3, 0.1, true},
	[ANSWER_OBJECTS_P3T] = {"objects-p3t", SP_METHOD_P3T, 0.1, true},
	[ANSWER_SHARE] = {"share", SP_METHOD_P3, 0, true},
};

const char *answer_name(enum answer answer)
{
	return answers[answer].name;
}

double answer_claim(enum answer answer, double confidence)
{
	if (!answers[answer].is_valid)
		return 0;
	return confidence - answers[answer].slack * (1 - confidence);
}

/* What is true of the subset, and the variance of its estimates. */
struct truth {
	double bytes, objects, share;
	double var_bytes, var_objects;
};

static void find_truth(const struct program *p, struct truth *t)
{
	t->bytes = program_bytes(p, false);
	t->objects = program_objects(p, false);
	t->share = t->bytes / (t->bytes + program_bytes(p, true));
	t->var_bytes = 0;
	t->var_objects = 0;
	for (unsigned int i = 0; i < p->runs; i++) {
		const struct kind *k = &p->kind[p->run[i].kind];
		const double z = (double)k->size_bytes;
		const double n = (double)(p->run[i].count * p->turns);

		if (k->in_rest ||
		    k->size_bytes >= sp_format_always_bytes(k->period_bytes))
			continue;
		t->var_objects += n / expm1(z / (double)k->period_bytes);
		t->var_bytes += n * z * z / expm1(z / (double)k->period_bytes);
	}
}

/* Every other run of objects under a quarter of the period. */
static void change_periods(struct program *p)
{
	for (unsigned int i = 1; i < p->kinds; i += 2)
		p->kind[i].period_bytes = PERIOD / 4;
}

static struct sp_interval answer_of(enum answer answer, double confidence,
				    const struct recording *rec)
{
	const struct sp_estimation how = {answers[answer].method, confidence,
					  rec->population, 0};

	switch (answer) {
	case ANSWER_NEGBINOM:
		return sp_other_negbinom(&rec->subset.all, SP_COMPENSATE_END,
					 confidence);
	case ANSWER_AS_WRITTEN:
		return sp_other_negbinom(&rec->subset.all, SP_COMPENSATE_NONE,
					 confidence);
	case ANSWER_OBJECTS:
	case ANSWER_OBJECTS_P3T:
		return sp_estimate_objects(&how, &rec->subset);
	case ANSWER_SHARE:
		return sp_estimate_share(&rec->subset.all, &rec->rest.all,
					 confidence);
	default:
		return sp_estimate_bytes(&how, &rec->subset);
	}
}

static double truth_of(enum answer answer, const struct truth *t)
{
	switch (answer) {
	case ANSWER_OBJECTS:
	case ANSWER_OBJECTS_P3T:
		return t->objects;
	case ANSWER_SHARE:
		return t->share;
	default:
		return t->bytes;
	}
}

static void score(const struct question *q, const struct recording *rec,
		  const struct truth *t, struct measured *m)
{
	for (enum answer a = 0; a < ANSWERS; a++) {
		const double truth = truth_of(a, t);
		/* Sums of floating-point numbers. */
		const double rounding = 1e-9 * truth;

		if (!(q->answers >> a & 1))
			continue;
		for (unsigned int l = 0; l < q->levels; l++) {
			const struct sp_interval i =
				answer_of(a, levels[l], rec);

			m->covered[a][l] += i.lo <= truth + rounding &&
					    truth <= i.hi + rounding;
			m->width[a][l] += (i.hi - i.lo) / truth;
		}
	}
}

static void finish(const struct truth *t, double bytes, double objects,
		   struct measured *m)
{
	const double n = m->replicates;

	for (enum answer a = 0; a < ANSWERS; a++)
		for (unsigned int l = 0; l < LEVELS; l++)
			m->width[a][l] /= n;
	m->samples /= n;
	m->periods = t->bytes / PERIOD;
	if (!(t->var_bytes > 0))
		return;
	m->z_bytes = (bytes - n * t->bytes) / sqrt(n * t->var_bytes);
	m->z_objects = (objects - n * t->objects) / sqrt(n * t->var_objects);
}

bool measure(const struct question *q, unsigned int replicates, uint64_t seed,
	     struct measured *ret)
{
	static struct program p;
	struct replicator *r;
	struct truth t;
	double bytes = 0, objects = 0;

	*ret = (struct measured){.replicates = replicates};
	program_init(&p);
	program_add(&p, q->subset, q->periods * q->share * PERIOD, false);
	if (q->rest)
		program_add(&p, q->rest, q->periods * (1 - q->share) * PERIOD,
			    true);
	if (q->two_periods)
		change_periods(&p);
	find_truth(&p, &t);
	if (fabs(t.bytes / (q->periods * q->share * PERIOD) - 1) > 0.6)
		return false;
	r = replicator_new(&p, (uint64_t)(q->late * PERIOD));
	for (unsigned int i = 0; i < replicates; i++) {
		struct recording rec;

		replicator_run(r, seed, i, &rec);
		score(q, &rec, &t, ret);
		ret->samples += (double)rec.subset.all.samples;
		bytes += rec.subset.all.est_bytes;
		objects += rec.subset.all.est_count;
	}
	replicator_free(r);
	finish(&t, bytes, objects, ret);
	return true;
}
