/* SPDX-License-Identifier: MIT */
/*
 * sites FILE [PERIOD...]: the call stacks of a profile with their estimates, as
 * lines for programs: without the names, which would take longest.
 *
 *     process SAMPLES EXACT-BYTES ESTIMATES
 *     stack SAMPLES SAMPLED-BYTES ESTIMATES [VARIANCE...] FRAMES
 *
 * ESTIMATES are value and 95 % limits without and with the exact totals of size
 * classes.  If every allocation was recorded, VARIANCE is that of the estimate
 * of this stack from samples with PERIOD.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "read/load.h"
#include "stats/estimate.h"
#include "stats/sums.h"

#define CONFIDENCE  0.95
#define PERIODS_MAX 8

struct sites {
	struct sp_profile *profile;
	struct sp_population population;
	struct sp_sums *sums;
	uint64_t periods[PERIODS_MAX];
	size_t n_periods;
	double *variances; /* of each stack, n_periods each */
};

static void die(const char *what)
{
	fprintf(stderr, "sites: %s\n", what);
	exit(1);
}

static void put_estimates(const struct sites *s,
			  const struct sp_class_sums *sums)
{
	static const enum sp_method methods[] = {SP_METHOD_P3, SP_METHOD_P3T};

	for (size_t i = 0; i < 2; i++) {
		const struct sp_estimation how = {
			.method = methods[i],
			.confidence = CONFIDENCE,
			.population = &s->population,
		};
		struct sp_interval b = sp_estimate_bytes(&how, sums);

		printf("\t%.17g\t%.17g\t%.17g", b.value, b.lo, b.hi);
	}
}

static void put_frames(const struct sites *s, const struct sp_stack *stack)
{
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct sp_frame *f = &stack->frames[i];
		const struct sp_module *m =
			sp_profile_module(s->profile, f->module);
		const char *name = m ? strrchr(m->path, '/') : NULL;

		name = name ? name + 1 : m ? m->path : "";
		printf("%s%s+%" PRIx64, i ? "<" : "\t", name, f->offset);
	}
}

/* Var(sum of w over the sampled) = sum of z^2 q / pi over all objects. */
static void sum_variances(struct sites *s)
{
	const struct sp_profile *p = s->profile;

	s->variances =
		calloc(p->n_stacks * s->n_periods + 1, sizeof(*s->variances));
	if (!s->variances)
		die("out of memory");
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sp_sample *sample = &p->samples[i];
		const double z = (double)sample->size_bytes;

		for (size_t k = 0; k < s->n_periods; k++) {
			const uint64_t period = s->periods[k];
			const double pi = -expm1(-z / (double)period);

			if (sample->size_bytes < sp_format_always_bytes(period))
				s->variances[sample->stack * s->n_periods +
					     k] += z * z * (1 - pi) / pi;
		}
	}
}

static void open_sites(struct sites *s, int argc, char **argv)
{
	struct sp_selection everything;
	struct sp_error err;

	if (argc < 2 || argc - 2 > PERIODS_MAX)
		die("usage: sites FILE [PERIOD...]");
	for (int i = 2; i < argc; i++)
		if (!sp_parse_size(argv[i], &s->periods[s->n_periods++]))
			die("this is no period");
	sp_selection_init(&everything);
	if (sp_profile_load(argv[1], NULL, NULL, &s->profile, &err) ||
	    sp_sums_new(s->profile, &everything, &s->sums, &err)) {
		char text[512];

		sp_error_describe(&err, text, sizeof(text));
		die(text);
	}
	if (sp_population_init(&s->population, s->profile))
		die("out of memory");
	if (*s->profile->damage)
		die(s->profile->damage);
	if (s->n_periods && s->profile->period_bytes != 1)
		die("variances need a recording of every allocation");
	if (!s->population.has_totals)
		die(s->population.why_without);
	sum_variances(s);
}

int main(int argc, char **argv)
{
	struct sites s = {0};

	open_sites(&s, argc, argv);
	printf("process\t%zu\t%" PRIu64, s.profile->n_samples,
	       s.profile->exact_alloc_bytes);
	put_estimates(&s, &s.sums->all);
	putchar('\n');
	for (size_t i = 0; i < s.profile->n_stacks; i++) {
		const struct sp_acc *all = &s.sums->stacks[i].all;

		/* Two threads that met wrote it twice, and used one of them. */
		if (!all->samples)
			continue;
		printf("stack\t%" PRIu64 "\t%" PRIu64, all->samples,
		       all->size_bytes);
		put_estimates(&s, &s.sums->stacks[i]);
		for (size_t k = 0; k < s.n_periods; k++)
			printf("\t%.17g", s.variances[i * s.n_periods + k]);
		put_frames(&s, &s.profile->stacks[i]);
		putchar('\n');
	}
	free(s.variances);
	sp_population_free(&s.population);
	sp_sums_free(s.sums, s.profile);
	sp_profile_free(s.profile);
	return fflush(stdout) || ferror(stdout);
}
