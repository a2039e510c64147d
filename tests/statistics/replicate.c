/* SPDX-License-Identifier: MIT */
/*
 * A sample's terms depend on its size and period alone, but for the offset of
 * its hit byte, so that k samples of one kind are a sum over the bits of k of
 * sums that were made once, by merging.
 */
#include "replicate.h"

#include <stdlib.h>
#include <string.h>

#include "agent/thread/sampler.h"
#include "stats/size_class_sums.h"

#define BITS 40

/* The sums of the subset or of the rest, in room of its own. */
struct side {
	struct sp_acc of_class[SP_FORMAT_CLASSES];
	struct sp_class_sums_class classes[SP_FORMAT_CLASSES];
	struct sp_class_sums sums;
};

struct replicator {
	const struct program *program;
	struct sp_law law[2];
	struct sp_acc power[KINDS_MAX][BITS]; /* sums over 2^bit samples */
	uint64_t hits[KINDS_MAX];
	uint64_t offsets[KINDS_MAX]; /* sum over the hits */
	struct side side[2];         /* subset, rest */
	struct side both;
	struct sp_population population;
};

static const struct sp_law *law_of(const struct replicator *r,
				   const struct kind *k)
{
	return &r->law[k->period_bytes != r->law[0].period_bytes];
}

/* Take whole objects off the class that has the most bytes. */
static void be_late(struct sp_profile *profile, uint64_t late_bytes)
{
	struct sp_class_total *most = &profile->classes[0];
	uint64_t size, n;

	for (unsigned int c = 1; c < SP_FORMAT_CLASSES; c++)
		if (profile->classes[c].bytes > most->bytes)
			most = &profile->classes[c];
	size = most->bytes / most->objects;
	n = late_bytes / (size + 1);
	if (n > most->objects)
		n = most->objects;
	most->objects -= n;
	most->bytes -= n * size;
	profile->class_slack_bytes = late_bytes;
}

/* A profile that has exact totals and no samples yet. */
static void count_classes(struct replicator *r, uint64_t late_bytes)
{
	static struct sp_profile profile;
	const struct program *p = r->program;

	profile = (struct sp_profile){.has_classes = true};
	profile.period_bytes = r->law[0].period_bytes;
	for (unsigned int i = 0; i < p->runs; i++) {
		const struct kind *k = &p->kind[p->run[i].kind];
		const uint64_t n = p->run[i].count * p->turns;
		struct sp_class_total *total =
			&profile.classes[sp_format_class(k->size_bytes)];

		total->bytes += n * k->size_bytes;
		total->objects += n;
		profile.exact_alloc_bytes += n * k->size_bytes;
	}
	be_late(&profile, late_bytes);
	/* Totals that are too late for what there is of them are not used. */
	if (sp_population_init(&r->population, &profile) < 0 ||
	    (!r->population.has_totals && !late_bytes))
		abort();
}

struct replicator *replicator_new(const struct program *p, uint64_t late_bytes)
{
	const struct sp_law_used used = {.always_large = true};
	struct replicator *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->program = p;
	for (unsigned int i = 0; i < p->kinds; i++) {
		const struct kind *k = &p->kind[i];
		struct sp_acc *power = r->power[i];

		if (i == 0)
			sp_law_init(&r->law[0], SP_LAW_EXPONENTIAL,
				    k->period_bytes);
		else if (k->period_bytes != r->law[0].period_bytes)
			sp_law_init(&r->law[1], SP_LAW_EXPONENTIAL,
				    k->period_bytes);
		sp_acc_init(&power[0], k->period_bytes);
		sp_acc_add(&power[0], &used, k->size_bytes, 0, k->period_bytes);
		for (int bit = 1; bit < BITS; bit++) {
			power[bit] = power[bit - 1];
			sp_acc_merge(&power[bit], &power[bit - 1]);
		}
	}
	count_classes(r, late_bytes);
	return r;
}

void replicator_free(struct replicator *r)
{
	free(r);
}

static void pass_run(struct replicator *r, struct sp_sampler *sampler,
		     const struct run *run)
{
	const struct kind *k = &r->program->kind[run->kind];
	const struct sp_law *law = law_of(r, k);
	uint64_t left = run->count;

	if (sampler->law != law)
		sp_sampler_change(sampler, law);
	if (k->size_bytes >= law->always_bytes) {
		r->hits[run->kind] += left;
		return;
	}
	while (left) {
		uint64_t missed = sampler->gap / k->size_bytes, offset;

		if (missed >= left) {
			sp_sampler_skip(sampler, left * k->size_bytes);
			return;
		}
		if (sp_sampler_pass(sampler, missed * k->size_bytes,
				    k->size_bytes, &offset)) {
			r->hits[run->kind]++;
			r->offsets[run->kind] += offset;
		}
		left -= missed + 1;
	}
}

static void side_init(struct side *s, uint64_t period_bytes)
{
	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++)
		s->of_class[c].samples = 0;
	sp_class_sums_init(&s->sums, period_bytes);
	s->sums.classes = s->classes;
	s->sums.room = SP_FORMAT_CLASSES;
}

/* Add the samples of one kind. */
static void side_add(struct side *s, const struct replicator *r,
		     unsigned int kind)
{
	const struct kind *k = &r->program->kind[kind];
	struct sp_acc *acc = &s->of_class[sp_format_class(k->size_bytes)];

	if (!r->hits[kind])
		return;
	if (!acc->samples)
		sp_acc_init(acc, s->sums.all.period_bytes);
	for (int bit = 0; bit < BITS; bit++)
		if (r->hits[kind] >> bit & 1)
			sp_acc_merge(acc, &r->power[kind][bit]);
	acc->tail_bytes -= r->offsets[kind];
}

static void side_finish(struct side *s)
{
	for (unsigned int c = 0; c < SP_FORMAT_CLASSES; c++) {
		if (!s->of_class[c].samples)
			continue;
		s->classes[s->sums.n_classes++] =
			(struct sp_class_sums_class){c, s->of_class[c]};
		sp_acc_merge(&s->sums.all, &s->of_class[c]);
	}
}

void replicator_run(struct replicator *r, uint64_t seed, uint32_t run,
		    struct recording *ret)
{
	const struct program *p = r->program;
	struct sp_sampler sampler;

	memset(r->hits, 0, sizeof(r->hits));
	memset(r->offsets, 0, sizeof(r->offsets));
	sp_sampler_begin(&sampler, &r->law[0], seed, 1, run);
	for (uint64_t turn = 0; turn < p->turns; turn++)
		for (unsigned int i = 0; i < p->runs; i++)
			pass_run(r, &sampler, &p->run[i]);
	side_init(&r->side[0], r->law[0].period_bytes);
	side_init(&r->side[1], r->law[0].period_bytes);
	side_init(&r->both, r->law[0].period_bytes);
	for (unsigned int i = 0; i < p->kinds; i++) {
		side_add(&r->side[p->kind[i].in_rest], r, i);
		side_add(&r->both, r, i);
	}
	side_finish(&r->side[0]);
	side_finish(&r->side[1]);
	side_finish(&r->both);
	r->population.all = r->both.sums;
	ret->subset = r->side[0].sums;
	ret->rest = r->side[1].sums;
	ret->population = &r->population;
}
