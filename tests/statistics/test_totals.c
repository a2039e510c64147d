/* SPDX-License-Identifier: MIT */
/*
 * Subsets spread over one to forty classes, held against class totals; planted
 * faults are noticed. False alarm: 9e-8; 2 s.
 *
 * Claim.  With exact totals of the size classes the 95 % intervals contain the
 * truth at least 95 % of the time (E17), however a subset is spread over the
 * classes; objects at least 94.5 %.
 *
 * H0, for each program: the coverage is p0 = 0.95 (objects 0.945) or more.
 *
 * Statistics, from n = 4000 replicates with fixed seeds: the number of
 * intervals that contain the truth, binomial(n, p0) at worst.
 *
 * alpha: a count below 3715 (objects 3693) has probability 2.4e-9 (4.4e-9); the
 * 36 statistics make 1.3e-7.
 *
 * Power: a true coverage of 0.915 (objects 0.91) is rejected with probability
 * 0.999 (0.998).
 *
 * And of a table of many rare functions in one class, all the rows that are
 * shown hold together at least 95 % of the time (E19, E41), as often as said
 * above.
 *
 * Negative controls: a construction without one of its parts must be rejected
 * by the program that the part is there for.
 */
#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "lab/random.h"
#include "stats/adjust.h"
#include "stats/estimate.h"
#include "support/test.h"

#define N(array)    (sizeof(array) / sizeof((array)[0]))
#define REPLICATES  4000
#define COVERED_MIN 3715 /* binomial(n, 0.95) */
#define OBJECTS_MIN 3693 /* binomial(n, 0.945) */
#define PERIOD      4096u
#define CLASSES_MAX 40

/* Objects of the subset and of the rest in each of so many classes: sizes are
 * steps of 16 bytes, then four to the doubling. */
struct program {
	const char *name;
	unsigned int classes;
	unsigned int first;   /* class */
	double part, rest;    /* in periods, in each class */
	double elsewhere;     /* in periods, of 48 bytes */
	double width_at_most; /* against P3 */
};

static const struct program programs[] = {
	{"one class, nearly all", 1, 20, 190, 10, 0, 0.35},
	{"one class, half", 1, 20, 100, 100, 0, 0.8},
	{"one class, little", 1, 20, 4, 96, 0, 1.05},
	{"one large class", 1, 70, 60, 40, 200, 0.85},
	{"objects of 3 periods", 1, 77, 90, 90, 0, 0.8},
	{"always sampled", 2, 80, 40, 10, 40, 1},
	{"two classes", 2, 30, 60, 20, 300, 0.7},
	{"five classes", 5, 30, 40, 30, 100, 0.85},
	{"forty, just large enough", 40, 4, 8, 8.2, 0, 0.85},
	{"forty, nearly all", 40, 4, 18, 1, 100, 0.4},
	{"15 of a period each", 15, 4, 1, 0, 100, 1.05},
	{"15 of two periods", 15, 4, 2, 0.2, 3, 1},
	{"small program", 6, 10, 2, 3, 0, 1.05},
	{"three periods in a class", 1, 70, 3, 0, 20, 1.05},
	{"five of a period each", 5, 40, 1, 0, 0, 1.05},
	{"five of two periods", 5, 60, 2, 0, 0, 1.05},
	{"twelve of half a period", 12, 60, 0.5, 0, 0, 1.05},
};

enum { FORTY = 8, SPREAD = 10 };

enum mutant { HONEST, STRATA_BY_SAMPLES, EACH_CLASS_ALONE };

struct kind {
	uint64_t size_bytes;
	uint64_t count;
};

/* The kinds of the subset, then those of the rest. */
struct world {
	struct kind kind[2 * CLASSES_MAX + 1];
	unsigned int parts, kinds;
	double bytes, objects; /* of the subset */
	struct sp_profile profile;
};

static const struct sp_law_used law = {.always_large = true};

static void push_kind(struct world *w, unsigned int class, double periods)
{
	const uint64_t z = sp_format_class_max(class);
	const uint64_t n = (uint64_t)llround(periods * PERIOD / (double)z);

	if (!n)
		return;
	w->kind[w->kinds++] = (struct kind){z, n};
	w->profile.classes[class].bytes += n * z;
	w->profile.classes[class].objects += n;
	w->profile.exact_alloc_bytes += n * z;
	w->profile.exact_alloc_objects += n;
}

static void world_init(struct world *w, const struct program *p)
{
	*w = (struct world){
		.profile = {.period_bytes = PERIOD,
			    .has_classes = true,
			    .law = law},
	};
	for (unsigned int i = 0; i < p->classes; i++)
		push_kind(w, p->first + i, p->part);
	w->parts = w->kinds;
	for (unsigned int i = 0; i < w->parts; i++) {
		w->bytes += (double)(w->kind[i].size_bytes * w->kind[i].count);
		w->objects += (double)w->kind[i].count;
	}
	for (unsigned int i = 0; i < p->classes; i++)
		push_kind(w, p->first + i, p->rest);
	push_kind(w, 2, p->elsewhere);
}

/* Each object by itself, from one sampled one to the next. */
static void sample_kind(const struct kind *k, struct sp_rng *rng,
			struct sp_class_sums *sums, struct sp_class_sums *all)
{
	const bool sure = k->size_bytes >= sp_format_always_bytes(PERIOD);
	const double x = (double)k->size_bytes / PERIOD;

	for (double i = 0;; i++) {
		if (!sure) /* objects that are missed: geometric */
			i += floor(-log(sp_lab_uniform(rng)) / x);
		if (i >= (double)k->count)
			return;
		if (sums)
			assert_int_equal(sp_class_sums_add(sums, &law,
							   k->size_bytes, 0,
							   PERIOD),
					 0);
		assert_int_equal(
			sp_class_sums_add(all, &law, k->size_bytes, 0, PERIOD),
			0);
	}
}

/* What looks natural: a stratum for each class with samples of the subset. */
static struct sp_interval by_samples(const struct sp_population *population,
				     const struct sp_class_sums *sums)
{
	struct sp_population mutant = *population;
	uint8_t n = 1;

	memset(mutant.stratum, 0, sizeof(mutant.stratum));
	for (uint32_t i = 0; i < sums->n_classes; i++)
		mutant.stratum[sums->classes[i].class] = n++;
	return sp_estimate_bytes(
		&(struct sp_estimation){SP_METHOD_P3T, 0.95, &mutant, 0}, sums);
}

static struct sp_interval each_alone(const struct sp_population *population,
				     const struct sp_class_sums *sums)
{
	struct sp_population mutant = *population;

	for (uint32_t i = 0; i < SP_FORMAT_CLASSES; i++)
		mutant.stratum[i] = (uint8_t)(i + 1);
	return sp_estimate_bytes(
		&(struct sp_estimation){SP_METHOD_P3T, 0.95, &mutant, 0}, sums);
}

struct result {
	unsigned int bytes;
	unsigned int objects;
	double width; /* against P3 */
};

static bool covers(struct sp_interval i, double truth)
{
	return i.lo <= truth * (1 + 1e-12) && truth * (1 - 1e-12) <= i.hi;
}

static void replicate(const struct world *w, const struct sp_population *totals,
		      struct sp_rng *rng, enum mutant mutant, struct result *r,
		      double widths[2])
{
	struct sp_population population = *totals;
	const struct sp_estimation how = {SP_METHOD_P3T, 0.95, &population, 0};
	struct sp_interval bytes, p3;
	struct sp_class_sums sums;

	sp_class_sums_init(&population.all, PERIOD);
	sp_class_sums_init(&sums, PERIOD);
	for (unsigned int i = 0; i < w->kinds; i++)
		sample_kind(&w->kind[i], rng, i < w->parts ? &sums : NULL,
			    &population.all);
	sp_adjust_init(&population);
	if (mutant == STRATA_BY_SAMPLES)
		bytes = by_samples(&population, &sums);
	else if (mutant == EACH_CLASS_ALONE)
		bytes = each_alone(&population, &sums);
	else
		bytes = sp_estimate_bytes(&how, &sums);
	p3 = sp_estimate_bytes_p3(&sums.all, 0.95);
	r->bytes += covers(bytes, w->bytes);
	r->objects += covers(sp_estimate_objects(&how, &sums), w->objects);
	widths[0] += bytes.hi - bytes.lo;
	widths[1] += p3.hi - p3.lo;
	sp_class_sums_free(&sums);
	sp_class_sums_free(&population.all);
}

static struct result run(unsigned int which, enum mutant mutant)
{
	double widths[2] = {0, 0};
	struct result r = {0};
	struct sp_population totals;
	struct world w;
	struct sp_rng rng;

	world_init(&w, &programs[which]);
	assert_int_equal(sp_population_init(&totals, &w.profile), 0);
	sp_rng_init(&rng, 20240301, which);
	for (unsigned int i = 0; i < REPLICATES; i++)
		replicate(&w, &totals, &rng, mutant, &r, widths);
	sp_population_free(&totals);
	r.width = widths[0] / widths[1];
	print_message("%-26s mutant %d: bytes %.4f, objects %.4f; width %.3f\n",
		      programs[which].name, (int)mutant,
		      r.bytes / (double)REPLICATES,
		      r.objects / (double)REPLICATES, r.width);
	return r;
}

TEST(claims)
{
	for (unsigned int i = 0; i < N(programs); i++) {
		const struct result r = run(i, HONEST);

		if (r.objects < OBJECTS_MIN)
			printf("! objects: %s\n", programs[i].name);
		assert_true(r.bytes >= COVERED_MIN);
		assert_true(r.objects >= OBJECTS_MIN);
		assert_true(r.width <= programs[i].width_at_most);
	}
}

TEST(rejects_strata_by_samples)
{
	assert_true(run(SPREAD, STRATA_BY_SAMPLES).bytes < COVERED_MIN);
}

TEST(rejects_each_class_alone)
{
	assert_true(run(SPREAD, EACH_CLASS_ALONE).bytes < COVERED_MIN);
}

/*
 * A table of rare functions of one size in a class of 17 periods.  In how many
 * recordings all those hold that have a sample, at the level that is to make so
 * many hold together; or, of the mutant, without (E41).
 */
struct rare {
	unsigned int functions;
	struct kind each;
	struct kind others;
};

static const struct rare rare[] = {
	{60, {41, 14}, {41, 858}},
	{600, {16, 1}, {16, 3752}},
};

#define RARE_MAX 600

static bool all_hold(const struct sp_population *population,
		     struct sp_class_sums *rows, unsigned int n, double truth,
		     bool is_mutant)
{
	struct sp_estimation how = {SP_METHOD_P3T, 0, population, 0};
	uint64_t shown = 0;
	bool hold = true;

	for (unsigned int i = 0; i < n; i++)
		shown += rows[i].all.samples > 0;
	how.confidence = sp_confidence_of_each(0.95, shown);
	for (unsigned int i = 0; i < n; i++) {
		struct sp_interval bytes;

		if (!rows[i].all.samples)
			continue;
		bytes = sp_estimate_bytes(&how, &rows[i]);
		if (is_mutant)
			bytes.lo = sp_lower_bytes_p3(&rows[i].all,
						     (1 - how.confidence) / 2);
		hold &= covers(bytes, truth);
		sp_class_sums_free(&rows[i]);
	}
	return hold;
}

static void rare_init(const struct rare *r, struct sp_population *ret)
{
	static struct world w;
	const uint64_t n = r->functions * r->each.count + r->others.count;
	struct sp_class_total *total =
		&w.profile.classes[sp_format_class(r->each.size_bytes)];

	w = (struct world){.profile = {.period_bytes = PERIOD,
				       .has_classes = true,
				       .law = law}};
	*total = (struct sp_class_total){.bytes = n * r->each.size_bytes,
					 .objects = n};
	w.profile.exact_alloc_bytes = total->bytes;
	assert_int_equal(sp_population_init(ret, &w.profile), 0);
}

static unsigned int run_rare(const struct rare *r, bool is_mutant)
{
	static struct sp_class_sums rows[RARE_MAX];
	struct sp_population population;
	unsigned int hold = 0;
	struct sp_rng rng;

	rare_init(r, &population);
	sp_rng_init(&rng, 20240302, 0);
	for (unsigned int i = 0; i < REPLICATES; i++) {
		sp_class_sums_free(&population.all);
		sp_class_sums_init(&population.all, PERIOD);
		for (unsigned int k = 0; k < r->functions; k++) {
			sp_class_sums_init(&rows[k], PERIOD);
			sample_kind(&r->each, &rng, &rows[k], &population.all);
		}
		sample_kind(&r->others, &rng, NULL, &population.all);
		hold += all_hold(&population, rows, r->functions,
				 (double)(r->each.size_bytes * r->each.count),
				 is_mutant);
	}
	sp_population_free(&population);
	print_message("%u rare functions, all that are shown, mutant %d: "
		      "%.4f\n",
		      r->functions, is_mutant, hold / (double)REPLICATES);
	return hold;
}

TEST(rare_functions)
{
	for (size_t i = 0; i < N(rare); i++)
		assert_true(run_rare(&rare[i], false) >= COVERED_MIN);
	assert_true(run_rare(&rare[1], true) < COVERED_MIN);
}

/*
 * What samples add to the values of rows (E46) adds up to what was allocated,
 * however many samples there happen to be.
 */
TEST(sums)
{
	const struct program *p = &programs[FORTY];
	FREED_BY(sp_population_free) struct sp_population population;
	const struct sp_estimation how = {SP_METHOD_P3T, 0.95, &population, 0};
	struct world w;
	struct sp_rng rng;

	world_init(&w, p);
	assert_int_equal(sp_population_init(&population, &w.profile), 0);
	sp_rng_init(&rng, 20240303, 0);
	for (unsigned int run = 0; run < 20; run++) {
		double bytes = 0;

		sp_class_sums_free(&population.all);
		sp_class_sums_init(&population.all, PERIOD);
		for (unsigned int i = 0; i < w.kinds; i++)
			sample_kind(&w.kind[i], &rng, NULL, &population.all);
		sp_adjust_init(&population);
		for (uint32_t i = 0; i < population.all.n_classes; i++) {
			struct sp_class_sums_class *c =
				&population.all.classes[i];
			const struct sp_class_sums row = {.all = c->acc,
							  .classes = c,
							  .n_classes = 1,
							  .room = 1};

			bytes += sp_adjusted(&how, &row).est_bytes;
		}
		bytes /= (double)w.profile.exact_alloc_bytes;
		if (fabs(bytes - 1) > 1e-9)
			printf("! rows add up to %g of the exact total\n",
			       bytes);
		assert_true(fabs(bytes - 1) <= 1e-9);
	}
}

/* Two sites share a class of three periods and have `samples` each; there is a
 * class of larger objects, too. */
static void own_class(unsigned int samples, bool has_lost,
		      struct sp_population *population,
		      struct sp_class_sums *site)
{
	const uint64_t sizes[] = {192, 1792};
	struct sp_profile p = {
		.period_bytes = PERIOD, .has_classes = true, .law = law};

	for (unsigned int i = 0; i < N(sizes); i++) {
		const uint64_t n = (i ? 100 : 3) * PERIOD / sizes[i];

		p.classes[sp_format_class(sizes[i])] =
			(struct sp_class_total){n * sizes[i], n};
		p.exact_alloc_bytes += n * sizes[i];
	}
	p.unsampled_bytes = has_lost;
	assert_int_equal(sp_population_init(population, &p), 0);
	sp_class_sums_init(site, PERIOD);
	for (unsigned int i = 0; i < samples; i++) {
		assert_int_equal(
			sp_class_sums_add(site, &law, sizes[0], 0, PERIOD), 0);
		for (unsigned int k = 0; k < 2; k++)
			assert_int_equal(sp_class_sums_add(&population->all,
							   &law, sizes[0], 0,
							   PERIOD),
					 0);
	}
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(sp_class_sums_add(&population->all, &law,
						   sizes[1], 0, PERIOD),
				 0);
	sp_adjust_init(population);
}

/*
 * A site has no more objects of its class than were allocated in that, all
 * sites together neither, and of others what can be unseen (E49).  And no more
 * than there are at all, where samples are missing (E44).
 */
TEST(own_class)
{
	for (unsigned int samples = 1; samples <= 10; samples++) {
		const double total = 3 * PERIOD / 192, of_all = 103. * PERIOD;
		struct sp_population population;
		const struct sp_estimation how = {SP_METHOD_P3T, 0.95,
						  &population, 0};
		struct sp_interval n;
		struct sp_class_sums site;
		bool is_more;

		own_class(samples, false, &population, &site);
		n = sp_estimate_objects(&how, &site);
		is_more = 2 * n.value > total * (1 + 1e-9) ||
			  n.hi > total + 6 * PERIOD / 1537.;
		if (is_more)
			printf("! %g [%g, %g] of %g objects\n", n.value, n.lo,
			       n.hi, total);
		assert_false(is_more);
		sp_population_free(&population);
		sp_class_sums_free(&site);

		own_class(40 * samples, true, &population, &site);
		is_more = sp_estimate_bytes(&how, &site).hi > of_all;
		if (is_more)
			printf("! more bytes than were allocated\n");
		assert_false(is_more);
		sp_population_free(&population);
		sp_class_sums_free(&site);
	}
}

int main(int argc, char **argv)
{
	/* of a mutant: what has to reject it */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return TEST_RUN(NULL, NULL);
}
