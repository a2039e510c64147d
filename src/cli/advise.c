/* SPDX-License-Identifier: MIT */
#include "cli/advise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "read/load.h"
#include "report/answer.h"
#include "stats/special.h"

/* To compare laws with, where everything was recorded. */
#define DEFAULT_PERIOD (512u << 10)

/* Samples that make a table worth reading. */
#define ENOUGH_SAMPLES 1000

static bool is_everything(const struct sp_advice *a)
{
	return a->period_bytes <= 1;
}

bool sp_advise_can_tell(const struct sp_advice *a)
{
	return a->samples >= SP_ADVISE_SAMPLES ||
	       (a->samples && is_everything(a));
}

/* ---- sizes ---- */

/* The classes of sums, each as objects of its mean size.  Into `to`, which
 * has the room. */
static struct sp_period_model model_of_sums(const struct sp_class_sums *sums,
					    struct sp_period_model_class *to)
{
	size_t n = 0;

	for (uint32_t i = 0; i < sums->n_classes; i++) {
		const struct sp_acc *acc = &sums->classes[i].acc;

		if (acc->est_count <= 0)
			continue;
		to[n].objects = acc->est_count;
		to[n++].size_bytes = fmax(1, acc->est_bytes / acc->est_count);
	}
	return (struct sp_period_model){to, n};
}

/* The same of exact totals. */
static struct sp_period_model model_of_totals(const struct sp_profile *profile,
					      struct sp_period_model_class *to)
{
	size_t n = 0;

	for (size_t i = 0; i < SP_FORMAT_CLASSES; i++) {
		const struct sp_class_total *c = &profile->classes[i];

		if (!c->objects)
			continue;
		to[n].objects = (double)c->objects;
		to[n++].size_bytes =
			fmax(1, (double)c->bytes / (double)c->objects);
	}
	return (struct sp_period_model){to, n};
}

/* The period that gives the error, if there were `share` times as many such
 * objects. */
static double period_for(const struct sp_advice *a,
			 const struct sp_period_model *sizes, double share)
{
	return sp_period_model_period_for_error(
		sizes, a->options->error * sqrt(share), SP_ADVISE_CONFIDENCE);
}

/* As it may be set: not longer than what is needed. */
static uint64_t power_of_two(double period)
{
	return (uint64_t)exp2(floor(log2(fmax(1, period))));
}

/* ---- sites ---- */

static void tell_site(const struct sp_advice *a, struct sp_advise_site *site)
{
	const double value = site->bytes.value;

	site->can_tell =
		site->bytes.lo >= site->bytes.hi ||
		(site->samples >= SP_ADVISE_SITE_SAMPLES && site->bytes.lo > 0);
	if (!site->can_tell)
		return;
	site->error = sp_period_model_error(
		&site->sizes, (double)a->period_bytes, SP_ADVISE_CONFIDENCE);
	site->period.value = period_for(a, &site->sizes, 1);
	site->period.lo = period_for(a, &site->sizes, site->bytes.lo / value);
	site->period.hi = period_for(a, &site->sizes, site->bytes.hi / value);
}

static void tell_sites(struct sp_advice *a,
		       const struct sp_aggregate *aggregate,
		       struct sp_period_model_class *room)
{
	double least = INFINITY;

	for (size_t i = 0; i < a->n_sites; i++) {
		const struct sp_aggregate_function *f =
			&aggregate->functions[i];
		struct sp_advise_site *site = &a->sites[i];

		*site = (struct sp_advise_site){
			.name = f->name,
			.module = f->module,
			.samples = f->flat.all.samples,
			.bytes = sp_estimate_bytes(&aggregate->how, &f->flat),
			.sizes = model_of_sums(&f->flat, room),
		};
		room += site->sizes.n;
		tell_site(a, site);
		if (!site->can_tell)
			continue;
		a->n_told++;
		a->last = i + 1;
		if (!a->first)
			a->first = i + 1;
		least = fmin(least, site->period.value);
	}
	if (a->n_told)
		a->sites_period_bytes = power_of_two(least);
}

/* Functions with a sample of their own, which come first. */
static size_t count_sites(const struct sp_aggregate *aggregate, uint64_t top)
{
	size_t n = 0;

	while (n < aggregate->n_functions && n < top &&
	       aggregate->functions[n].flat.all.samples)
		n++;
	return n;
}

static int find_sites(struct sp_advice *a, const struct sp_aggregate *aggregate,
		      struct sp_error *err)
{
	size_t n_classes = SP_FORMAT_CLASSES;

	a->n_sites = count_sites(aggregate, a->options->top);
	for (size_t i = 0; i < a->n_sites; i++)
		n_classes += aggregate->functions[i].flat.n_classes;
	a->sites = calloc(a->n_sites + 1, sizeof(*a->sites));
	a->classes = calloc(n_classes, sizeof(*a->classes));
	if (!a->sites || !a->classes)
		return sp_error_memory(err, NULL);
	a->is_exact = a->profile->has_classes;
	a->sizes = a->is_exact ? model_of_totals(a->profile, a->classes)
			       : model_of_sums(&aggregate->analysis->alloc->all,
					       a->classes);
	tell_sites(a, aggregate, a->classes + SP_FORMAT_CLASSES);
	return 0;
}

/* ---- periods ---- */

/* Of the site at that position, from 1. */
static double error_of(const struct sp_advice *a, size_t position,
		       double period)
{
	return position ? sp_period_model_error(&a->sites[position - 1].sizes,
						period, SP_ADVISE_CONFIDENCE)
			: NAN;
}

static double t_of_confidence(void)
{
	return sp_special_normal_quantile((1 + SP_ADVISE_CONFIDENCE) / 2);
}

/* Of a small share, whatever the sizes (E37). */
static double worst_error(const struct sp_advice *a, double period)
{
	const double bytes = SP_ADVISE_SMALL * sp_period_model_bytes(&a->sizes);

	return period > 1 ? t_of_confidence() * sqrt(period / bytes) : 0;
}

/* The period with which it is what is wanted. */
static double worst_period(const struct sp_advice *a)
{
	const double samples = pow(t_of_confidence() / a->options->error, 2);

	return SP_ADVISE_SMALL * sp_period_model_bytes(&a->sizes) / samples;
}

struct sp_advise_row sp_advise_row(const struct sp_advice *a,
				   uint64_t period_bytes)
{
	const double period = (double)period_bytes;
	const double rate =
		a->has_rates ? sp_period_model_samples(&a->sizes, period) /
				       a->seconds
			     : NAN;

	return (struct sp_advise_row){
		.period_bytes = period_bytes,
		.samples_per_s = rate,
		.processor = rate * SP_ADVISE_SAMPLE_NS * 1e-9,
		.bytes_per_hour = rate * 3600 * SP_ADVISE_SAMPLE_BYTES,
		.error_all = sp_period_model_error(&a->sizes, period,
						   SP_ADVISE_CONFIDENCE),
		.error_first = error_of(a, a->first, period),
		.error_last = error_of(a, a->last, period),
		.error_small = worst_error(a, period),
	};
}

/* Six periods, each four times the last, of which the fourth is that of now. */
static void fill_rows(struct sp_advice *a)
{
	const uint64_t now =
		is_everything(a) ? DEFAULT_PERIOD : a->period_bytes;
	uint64_t period = now;

	for (int i = 0; i < 3 && period > 4; i++)
		period /= 4;
	for (size_t i = 0; i < SP_ADVISE_ROWS; i++, period *= 4)
		a->rows[i] = sp_advise_row(a, period);
	a->small_period_bytes = power_of_two(worst_period(a));
}

/*
 * At the same number of samples: the best law for the bytes is (E38), the best
 * for the number of objects takes all with the same probability (E39).
 */
static void compare_laws(struct sp_advice *a)
{
	const double period =
		(double)(is_everything(a) ? DEFAULT_PERIOD : a->period_bytes);
	const double samples = sp_period_model_samples(&a->sizes, period);
	const double objects = sp_period_model_objects(&a->sizes);
	const double chance = samples / objects;
	const double variance = sp_period_model_variance(&a->sizes, period);
	double best, same;

	a->compared_bytes = (uint64_t)period;
	a->worse_bytes = 1;
	a->worse_objects = 1;
	/* Nearly everything was sampled: there is nothing to choose. */
	if (!(samples > 1) || !(chance < 0.5))
		return;
	best = sp_period_model_best_variance(
		&a->sizes, sp_period_model_best_threshold(&a->sizes, samples));
	a->worse_bytes = fmax(1, sqrt(variance / best));
	a->worse_objects =
		fmax(1, sqrt(sp_period_model_count_variance(&a->sizes, period) /
			     (objects * (1 - chance) / chance)));
	same = sp_period_model_period_for_variance(&a->sizes, best);
	a->worse_samples =
		fmax(0, sp_period_model_samples(&a->sizes, same) / samples - 1);
}

/* ---- who pins free memory ---- */

/* What lies free beside objects differs: its second moment is about twice the
 * square of its mean, as of holes whose lengths are exponential. */
#define PINS_SPREAD 2.0
/* Fewer tell nothing at all. */
#define PINS_SAMPLES 12

static bool tells_pins(const struct sp_advice *a,
		       const struct sp_period_model *alive, double period)
{
	const double sd = sqrt(PINS_SPREAD *
			       sp_period_model_count_variance(alive, period));

	return sp_period_model_samples(alive, period) >= PINS_SAMPLES &&
	       t_of_confidence() * sd <=
		       a->options->error * sp_period_model_objects(alive);
}

/* Objects of glibc have headers, which tell what is beside them; jemalloc says
 * it. */
static bool tells_of_samples(const struct sp_profile *p)
{
	const char *path = sp_profile_info(p, "allocator");
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *base = slash ? slash + 1 : path;

	return !path || !*path || strncmp(base, "libc", 4) == 0 ||
	       strstr(base, "jemalloc");
}

/* What each pins has nothing to do with its size: it is as if they were
 * counted. */
static void advise_pins(struct sp_advice *a, const struct sp_analysis *analysis)
{
	struct sp_period_model_class classes[SP_FORMAT_CLASSES];
	struct sp_period_model alive;
	double period = 0x1p40;

	if (!analysis->live || !analysis->live->all.all.samples)
		return;
	alive = model_of_sums(&analysis->live->all, classes);
	while (period > 1 && !tells_pins(a, &alive, period))
		period /= 2;
	a->pins_period_bytes =
		tells_of_samples(a->profile) ? (uint64_t)period : 1;
}

/* ---- all of it ---- */

/* A period with which this run would have given a thousand samples; 1 if it has
 * few objects, however large. */
static void propose_trial(struct sp_advice *a)
{
	const double bytes = (double)a->profile->exact_alloc_bytes;
	const uint64_t period = power_of_two(bytes / ENOUGH_SAMPLES);

	if (bytes > 0)
		a->try_bytes = period < a->period_bytes ? period : 1;
}

static void fill_advice(struct sp_advice *a, const struct sp_analysis *analysis)
{
	const struct sp_acc *all = &analysis->alloc->all.all;

	a->samples = all->samples;
	a->period_bytes = all->period_bytes;
	a->is_mixed = all->period_min_bytes < all->period_bytes;
	a->seconds = (double)a->profile->duration_ns * 1e-9;
	a->has_rates = a->profile->duration_ns >= SP_PROFILE_RATE_NS;
}

int sp_advise_new(const struct sp_aggregate *aggregate,
		  const struct sp_advise_options *options,
		  struct sp_advice **ret, struct sp_error *err)
{
	struct sp_advice *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return sp_error_memory(err, NULL);
	a->profile = aggregate->analysis->profile;
	a->options = options;
	fill_advice(a, aggregate->analysis);
	r = find_sites(a, aggregate, err);
	if (r < 0) {
		sp_advise_free(a);
		return r;
	}
	if (sp_advise_can_tell(a)) {
		fill_rows(a);
		compare_laws(a);
		advise_pins(a, aggregate->analysis);
	} else {
		propose_trial(a);
	}
	*ret = a;
	return 0;
}

void sp_advise_free(struct sp_advice *a)
{
	free(a->sites);
	free(a->classes);
	free(a);
}

static int write_advice(FILE *out, const struct sp_aggregate *aggregate,
			const struct sp_advise_options *options,
			bool *ret_can_tell, struct sp_error *err)
{
	struct sp_advice *advice;
	int r = sp_advise_new(aggregate, options, &advice, err);

	if (r < 0)
		return r;
	*ret_can_tell = sp_advise_can_tell(advice);
	r = sp_advise_write(out, advice);
	sp_advise_free(advice);
	return r < 0 ? sp_error_memory(err, NULL) : 0;
}

int sp_advise_print(FILE *out, const struct sp_profile *profile,
		    const struct sp_advise_options *options,
		    sp_progress_fn *progress, void *progress_arg,
		    bool *ret_can_tell, struct sp_error *err)
{
	struct sp_answer answer = {
		.profile = profile,
		.symbols = &options->symbols,
		.progress = progress,
		.progress_arg = progress_arg,
	};
	struct sp_aggregate *aggregate;
	int r = sp_answer_whole(&answer, SP_BY_FUNCTION, &aggregate, err);

	if (r >= 0)
		r = write_advice(out, aggregate, options, ret_can_tell, err);
	sp_aggregate_free(aggregate);
	sp_answer_done(&answer);
	return r;
}
