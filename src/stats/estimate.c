/* SPDX-License-Identifier: MIT */
#include "stats/estimate.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/saturate.h"
#include "stats/adjust.h"
#include "stats/bounds.h"
#include "stats/special.h"

static const struct {
	const char *name;
	const char *assumes;
} methods[SP_METHOD_COUNT] = {
	[SP_METHOD_P3T] = {"p3t",
			   "three-cumulant limits, held against the exact "
			   "totals of the size classes; valid for all sizes "
			   "and any number of samples"},
	[SP_METHOD_P3] = {"p3", "three-cumulant limits from the samples alone; "
				"valid for all sizes and any number of "
				"samples"},
};

const char *sp_method_name(enum sp_method method)
{
	return methods[method].name;
}

const char *sp_method_assumes(enum sp_method method)
{
	return methods[method].assumes;
}

bool sp_method_parse(const char *name, enum sp_method *ret)
{
	for (unsigned int i = 0; i < SP_METHOD_COUNT; i++)
		if (strcmp(name, methods[i].name) == 0) {
			*ret = (enum sp_method)i;
			return true;
		}
	return false;
}

/* By chance the samples prove more than there was in one run of 10,000. */
#define GAP_PROBABILITY 1e-4

/* Samples that a size class expects if it is a stratum of its own. */
#define SAMPLES_MIN 16

static_assert(SP_FORMAT_CLASSES < 256 && SP_STRATA_MAX > SP_FORMAT_CLASSES,
	      "strata are numbered with a byte");

/*
 * The slack is added to upper limits, so it may not be more than a small part
 * of what the samples leave open: of everything, sqrt(T R).  Totals decide, not
 * samples.
 */
static bool slack_is_too_wide(const struct sp_profile *profile)
{
	const double open = sqrt((double)profile->exact_alloc_bytes *
				 (double)profile->period_bytes);

	return (double)profile->class_slack_bytes > open / 10;
}

static const char *why_too_wide(enum sp_profile_end end)
{
	switch (end) {
	case SP_PROFILE_END_CLEAN:
	case SP_PROFILE_END_DETACHED:
		return "threads went on while the process ended, so that its "
		       "totals are not known closely enough";
	case SP_PROFILE_END_KILLED:
	case SP_PROFILE_END_EXEC:
		return "the process did not end in an orderly way, so that its "
		       "totals are not known closely enough";
	case SP_PROFILE_END_RUNNING:
		return "the process is still running, so that its totals are "
		       "not known closely enough";
	}
	return NULL;
}

/* Why the totals do not cover what was sampled, or NULL. */
static const char *why_without(const struct sp_profile *profile)
{
	const uint64_t lost = sp_profile_lost_samples(profile);

	if (!profile->has_classes)
		return "the file has no totals by size class";
	if (!sp_whole_may_lack(profile, lost))
		return "more samples were lost than chance hides";
	if (profile->discarded_bytes)
		return "samples of a part of the run were discarded";
	if (profile->unsampled_bytes)
		return "sampling was off for a part of the run";
	if (profile->damaged_records || profile->ignored_bytes)
		return "the file is damaged";
	if (profile->losses[SP_LOSS_FORK_RESET] >
	    profile->exact_alloc_bytes / 1000)
		return "totals include bytes of the parent process";
	if (profile->missing_bytes_max == UINT64_MAX)
		return "the disk had no room for the last totals";
	if (profile->period_bytes > 1 && slack_is_too_wide(profile))
		return why_too_wide(profile->end);
	return NULL;
}

/*
 * Only totals decide which classes are strata of their own.  Strata chosen by
 * samples would be biased: they exist only where the subset was sampled.  A
 * class that expects few samples is no stratum for the same reason.
 */
static void choose_strata(struct sp_population *population,
			  uint64_t period_bytes)
{
	const double enough = SAMPLES_MIN * (double)period_bytes;
	uint8_t n = 1;

	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++)
		if ((double)population->low[i].bytes >= enough)
			population->stratum[i] = n++;
}

static int add_all(struct sp_class_sums *all, const struct sp_profile *profile)
{
	for (size_t i = 0; i < sp_alike_n(profile); i++) {
		const struct sp_alike s = sp_alike_at(profile, i);

		if (!sp_sample_is_survivor(profile, s.one) &&
		    sp_class_sums_add_many(
			    all, &profile->law, s.one->size_bytes, s.samples,
			    s.tail_bytes, s.one->period_bytes) < 0)
			return -ENOMEM;
	}
	return 0;
}

static double gap_of(double most, double unsampled, double least)
{
	return fmax(most - unsampled - least, 0);
}

/*
 * (E61) All that was allocated may be missing, less what the samples prove.  If
 * a part of the file is missing, any row may have it.
 */
static void find_gap(struct sp_population *population,
		     const struct sp_profile *profile)
{
	const struct sp_whole whole = sp_whole_of(profile);
	const struct sp_acc *all = &population->all.all;

	population->gap_bytes = population->gap_objects =
		sp_whole_uncounted_bytes(profile);
	if (!whole.is_damaged && !whole.is_full && !whole.is_starved)
		return;
	population->gap_bytes = population->gap_objects = INFINITY;
	if (whole.is_damaged || profile->missing_bytes_max == UINT64_MAX)
		return;
	population->gap_bytes =
		gap_of((double)profile->exact_alloc_bytes +
			       (double)profile->missing_bytes_max,
		       (double)profile->unsampled_bytes,
		       sp_lower_bytes_p3(all, GAP_PROBABILITY));
	population->gap_objects =
		gap_of((double)profile->exact_alloc_objects +
			       (double)profile->missing_bytes_max,
		       (double)profile->unsampled_objects,
		       sp_lower_objects_p3(all, GAP_PROBABILITY));
}

int sp_population_init(struct sp_population *population,
		       const struct sp_profile *profile)
{
	*population = (struct sp_population){
		.why_without = why_without(profile),
		.slack_bytes = profile->class_slack_bytes,
	};
	population->has_totals = !population->why_without;
	memcpy(population->low, profile->classes, sizeof(population->low));
	sp_class_sums_init(&population->all, profile->period_bytes);
	if (add_all(&population->all, profile) < 0) {
		sp_class_sums_free(&population->all);
		return -ENOMEM;
	}
	sp_bounds_init(population, profile);
	find_gap(population, profile);
	choose_strata(population, population->all.all.period_bytes);
	sp_adjust_init(population);
	return 0;
}

void sp_population_free(struct sp_population *population)
{
	sp_class_sums_free(&population->all);
}

static const struct sp_acc *class_acc(const struct sp_class_sums *sums,
				      uint32_t class, uint32_t *at)
{
	while (*at < sums->n_classes && sums->classes[*at].class < class)
		++*at;
	if (*at < sums->n_classes && sums->classes[*at].class == class)
		return &sums->classes[*at].acc;
	return NULL;
}

/* What the value of bytes needs of a class in which the subset has no samples:
 * the samples of others only lower what is unseen of its total. */
static void add_other_bytes(struct sp_stratum *others,
			    const struct sp_class_total *total,
			    const struct sp_acc *all)
{
	others->total_bytes += (double)total->bytes;
	if (!all)
		return;
	others->rest.samples += all->samples;
	sp_sat_add(&others->rest.size_bytes, all->size_bytes);
}

static void add_class(struct sp_stratum *stratum, uint32_t class,
		      const struct sp_population *population,
		      const struct sp_acc *part, const struct sp_acc *all)
{
	const struct sp_class_total *total = &population->low[class];

	if (all) {
		struct sp_acc rest = *all;

		if (part) {
			sp_acc_subtract(&rest, part);
			sp_acc_merge(&stratum->part, part);
			stratum->objects_gain +=
				population->objects_gain[class].by_k2 *
				part->c2;
		}
		sp_acc_merge(&stratum->rest, &rest);
	}
	stratum->total_bytes += (double)total->bytes;
	stratum->total_objects += (double)total->objects;
}

/* Before its total has the class. */
static void add_smallest(struct sp_stratum *stratum, uint32_t class,
			 const struct sp_population *population)
{
	const struct sp_class_total below = {
		.bytes = (uint64_t)stratum->total_bytes,
		.objects = (uint64_t)stratum->total_objects};

	sp_bounds_add_smallest(
		&stratum->smallest, class, &population->low[class], below,
		(double)population->slack_bytes, stratum->rest.period_bytes);
}

static void stratum_init(struct sp_stratum *stratum, uint64_t period_bytes)
{
	*stratum = (struct sp_stratum){.smallest.bytes = UINT64_MAX};
	sp_acc_init(&stratum->part, period_bytes);
	sp_acc_init(&stratum->rest, period_bytes);
}

/*
 * Counts are held against a total only where no kind of object can outnumber
 * the others unseen: not in several classes, and not among 1 to 16 bytes.
 */
static void restrict_totals(struct sp_stratum *mixed, struct sp_stratum *tiny,
			    const struct sp_class_total *tiny_total,
			    double enough_bytes)
{
	if (tiny && tiny_total->bytes / 16 < tiny_total->objects)
		tiny->objects_alone = true;
	if (!mixed)
		return;
	mixed->objects_alone = true;
	mixed->bytes_alone = mixed->total_bytes < enough_bytes;
}

/*
 * The strata in which the subset has samples, and all the others as one, the
 * first: there the subset has nothing to be estimated from (E17).
 */
static inline __attribute__((always_inline)) uint32_t find_strata(
	const struct sp_population *population,
	const struct sp_class_sums *sums, bool for_bytes_value,
	struct sp_stratum *strata)
{
	const uint64_t period = population->all.all.period_bytes;
	const uint8_t *stratum = population->stratum;
	uint32_t place[SP_STRATA_MAX] = {0}, n = 1, at = 0, at_all = 0;
	bool has_others = false;

	stratum_init(&strata[0], period);
	for (uint32_t i = 0; i < sums->n_classes; i++) {
		uint32_t *p = &place[stratum[sums->classes[i].class]];

		if (!*p) {
			*p = n++;
			stratum_init(&strata[*p], period);
			strata[*p].number = stratum[sums->classes[i].class];
		}
	}
	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++) {
		const struct sp_class_total *total = &population->low[i];
		const struct sp_acc *all =
			class_acc(&population->all, i, &at_all);
		struct sp_stratum *s = &strata[place[stratum[i]]];

		if (!all && !total->objects && !population->slack_bytes)
			continue;
		has_others |= s == strata;
		if (for_bytes_value && s == strata) {
			add_other_bytes(s, total, all);
			continue;
		}
		if (!for_bytes_value)
			add_smallest(s, i, population);
		add_class(s, i, population, class_acc(sums, i, &at), all);
	}
	restrict_totals(place[0] ? &strata[place[0]] : NULL,
			place[stratum[0]] ? &strata[place[stratum[0]]] : NULL,
			&population->low[0], SAMPLES_MIN * (double)period);
	if (!has_others)
		strata[0] = strata[--n];
	return n;
}

uint32_t sp_population_strata(const struct sp_population *population,
			      const struct sp_class_sums *sums,
			      struct sp_stratum *strata)
{
	return find_strata(population, sums, false, strata);
}

/* The totals, if the method and the profile have them, and if there is anything
 * that they do not know by the samples. */
static const struct sp_population *class_totals(
	const struct sp_estimation *how, const struct sp_class_sums *sums)
{
	if (how->method != SP_METHOD_P3T || sums->is_measured ||
	    !how->population || !how->population->has_totals ||
	    how->population->all.all.period_bytes == 1)
		return NULL;
	return how->population;
}

/* A row, and how its lower limit at a probability is found. */
struct row {
	const struct sp_acc *acc;
	const struct sp_stratum *strata; /* NULL: by its samples alone */
	uint32_t n;
	double slack_bytes;
	unsigned int samples_min;
	double (*lower)(const struct row *row, double prob);
};

static double lower_bytes(const struct row *row, double prob)
{
	if (!row->strata)
		return sp_lower_bytes_p3(row->acc, prob);
	return sp_strata_bytes_lower(row->strata, row->n, row->slack_bytes,
				     prob);
}

static double lower_objects(const struct row *row, double prob)
{
	if (!row->strata)
		return sp_lower_objects_p3(row->acc, prob);
	return sp_strata_objects_lower(row->strata, row->n, row->slack_bytes,
				       prob);
}

/* Changes of the probability that no longer matter. */
#define SETTLED 1e-3
#define TURNS   40

/* The chance that a row which expects so many samples has enough to count. */
static double chance_of_samples(const struct row *row, double expected)
{
	return row->samples_min > 1
		       ? sp_special_gamma_lower(row->samples_min, expected)
		       : -expm1(-expected);
}

/*
 * (E41) Rows without samples are not shown, so they cannot count as covered.
 * So the lower limit of a row may fail in a share of the runs in which the row
 * has a sample.  An amount at the limit expects `hits` samples for each unit.
 * The iteration starts above the limit and stops above it.
 */
static double lower_if_seen(const struct row *row, double half, double hits)
{
	const double seen = row->lower == lower_bytes
				    ? (double)row->acc->size_bytes
				    : (double)row->acc->samples;
	double prob = half, lo = row->lower(row, prob);

	for (int i = 0; i < TURNS && lo > seen; i++) {
		const double next = half * chance_of_samples(row, lo * hits);

		if ((lo - seen) * hits < SETTLED)
			return seen;
		if (next > prob * (1 - SETTLED))
			break;
		prob = next;
		lo = row->lower(row, prob);
	}
	return lo;
}

/* Hits that are expected for each byte of the row, or for each object. */
static double hits_of(const struct row *row)
{
	const struct sp_acc *acc = row->acc;
	const double each =
		row->lower == lower_bytes ? 1 : acc->est_bytes / acc->est_count;

	return each / (double)acc->period_bytes;
}

static struct sp_interval shown_interval(struct sp_interval i,
					 const struct row *row,
					 double confidence)
{
	if (!row->acc->samples || row->acc->period_bytes == 1)
		return i;
	i.lo = fmin(i.lo,
		    lower_if_seen(row, (1 - confidence) / 2, hits_of(row)));
	return i;
}

static struct sp_smallest smallest_of(const struct sp_estimation *how)
{
	return how->population ? how->population->smallest
			       : SP_SMALLEST_UNKNOWN;
}

/* By the default method, which uses what is exact. */
static double at_most(const struct sp_estimation *how, bool of_objects)
{
	if (how->method != SP_METHOD_P3T || !how->population)
		return INFINITY;
	return of_objects ? how->population->most_objects
			  : how->population->most_bytes;
}

/* (E61) With what was never recorded; of what is not known at all nothing is
 * certain but that it is not more than everything. */
static struct sp_interval with_gap(struct sp_interval i,
				   const struct sp_estimation *how,
				   const struct sp_class_sums *sums,
				   bool of_objects)
{
	if (sums->is_unknown || sums->is_least) {
		i.lo = sums->is_unknown ? 0 : i.lo;
		i.hi = INFINITY;
	} else if (how->population) {
		i.hi += of_objects ? how->population->gap_objects
				   : how->population->gap_bytes;
	}
	return i;
}

static struct sp_interval cut_interval(struct sp_interval i, double most)
{
	return (struct sp_interval){fmin(i.value, most), fmin(i.lo, most),
				    fmin(i.hi, most)};
}

struct sp_interval sp_estimate_bytes(const struct sp_estimation *how,
				     const struct sp_class_sums *sums)
{
	const struct sp_population *population = class_totals(how, sums);
	struct sp_stratum strata[SP_STRATA_MAX];
	struct row row = {.acc = &sums->all,
			  .samples_min = how->samples_min,
			  .lower = lower_bytes};
	struct sp_interval i;

	if (!population) {
		i = sp_estimate_bytes_p3(row.acc, how->confidence);
		i = shown_interval(i, &row, how->confidence);
		i = with_gap(i, how, sums, false);
		return cut_interval(i, at_most(how, false));
	}
	row.strata = strata;
	row.n = sp_population_strata(population, sums, strata);
	row.slack_bytes = (double)population->slack_bytes;
	i = sp_strata_bytes(strata, row.n, row.slack_bytes, how->confidence);
	i = shown_interval(i, &row, how->confidence);
	i = with_gap(i, how, sums, false);
	return isinf(i.hi) ? cut_interval(i, at_most(how, false)) : i;
}

/* (E49) of a row with samples, if totals are known. */
static const struct sp_population *class_bounds(
	const struct sp_estimation *how, const struct sp_class_sums *sums)
{
	if (isinf(at_most(how, true)) || !sums->all.samples ||
	    sums->is_unknown || sums->is_least ||
	    how->population->gap_objects > 0 ||
	    how->population->all.all.period_bytes == 1)
		return NULL;
	return how->population;
}

static double bound_value(const struct sp_estimation *how,
			  const struct sp_class_sums *sums, double value)
{
	const struct sp_population *population = class_bounds(how, sums);

	if (population)
		value = sp_bounds_objects_value(population, sums, value);
	return fmin(value, at_most(how, true));
}

static struct sp_interval bound_objects(const struct sp_estimation *how,
					const struct sp_class_sums *sums,
					struct sp_interval i)
{
	const struct sp_population *population = class_bounds(how, sums);

	if (population)
		i.hi = fmin(i.hi, sp_bounds_objects(population, sums,
						    how->confidence));
	return cut_interval(
		sp_interval_around(bound_value(how, sums, i.value), i.lo, i.hi),
		at_most(how, true));
}

struct sp_interval sp_estimate_objects(const struct sp_estimation *how,
				       const struct sp_class_sums *sums)
{
	const struct sp_population *population = class_totals(how, sums);
	struct sp_stratum strata[SP_STRATA_MAX];
	struct row row = {.acc = &sums->all,
			  .samples_min = how->samples_min,
			  .lower = lower_objects};
	struct sp_interval i;

	if (population) {
		row.strata = strata;
		row.n = sp_population_strata(population, sums, strata);
		row.slack_bytes = (double)population->slack_bytes;
		i = sp_strata_objects(strata, row.n, row.slack_bytes,
				      how->confidence);
	} else {
		i = sp_estimate_objects_p3(row.acc, smallest_of(how),
					   how->confidence);
	}
	i = with_gap(shown_interval(i, &row, how->confidence), how, sums, true);
	return bound_objects(how, sums, i);
}

double sp_estimate_bytes_value(const struct sp_estimation *how,
			       const struct sp_class_sums *sums)
{
	const struct sp_population *population = class_totals(how, sums);
	struct sp_stratum strata[SP_STRATA_MAX];

	if (population)
		return sp_strata_bytes_value(
			strata, find_strata(population, sums, true, strata),
			(double)population->slack_bytes);
	return fmin(sums->all.est_bytes, at_most(how, false));
}

double sp_estimate_objects_value(const struct sp_estimation *how,
				 const struct sp_class_sums *sums)
{
	const struct sp_population *population = class_totals(how, sums);
	struct sp_stratum strata[SP_STRATA_MAX];
	double value = sums->all.est_count;

	if (population)
		value = sp_strata_objects_value(
			strata, sp_population_strata(population, sums, strata),
			(double)population->slack_bytes);
	return bound_value(how, sums, value);
}
