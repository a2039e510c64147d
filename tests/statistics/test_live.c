/* SPDX-License-Identifier: MIT */
/*
 * Live bytes, peaks and lifetimes: coverage and bias. False alarm: 2e-5; 2 s.
 *
 * Claims.  What is alive at a moment that was named in advance lies in the
 * interval of the timeline at least 95 % of the time, objects 94.5 % (E21).
 * The greatest live bytes lie in the interval of the peak at least 95 % of the
 * time, and not below it more than 2.5 %, or 5 % if not all is freed at the end
 * (E25).  The peak's value is above the
 * truth on average by less than the weight of one sample if all is freed at the
 * end (E47), and otherwise by less than 3/4 of its standard deviation; it is
 * below by less than such a weight, of random lifetimes by at most a tenth
 * (E24).  The median lifetime has no bias (E26).  The rows of the peak, in all
 * and four functions by themselves, contain what was alive at its moment at
 * least 95 % of the time (E43).
 *
 * H0, for each program and each of its moments: the coverage is p0 = 0.95
 * (objects 0.945, misses below 0.025); the mean of the peak's value is as far
 * from P as that, either way; the mean of the median lifetime is the truth, up
 * to 1 % because a quantile of a curve of steps has a bias of less than a step.
 *
 * Statistics, from n = 2000 simulated recordings of each program with fixed
 * seeds: the number of intervals that contain the truth, and of peaks below
 * the lower limit, binomial(n, p0) at worst; z = (mean - truth) / standard
 * error, normal.
 *
 * alpha: a count below 1846 (objects 1833) has probability 9.4e-8 (6.8e-8),
 * more than 90 misses 8.1e-8, z beyond 5.2 has 1e-7; the 169 statistics make
 * 1.6e-5 for a fresh seed.
 *
 * Power: a true coverage of 0.9 is rejected with probability 0.9997 (objects
 * 0.99), misses of 0.06 with 0.998, a peak that is off by two weights of a
 * sample with 0.99 (its standard error is an eighth of one at most).
 *
 * Negative controls: each mutant below must be rejected by the statistic that
 * is there for it.
 */
#include <math.h>

#include "base/array.h"
#include "base/rng.h"
#include "format/layout.h"
#include "stats/estimate.h"
#include "stats/lifetime.h"
#include "stats/peak.h"
#include "stats/timeline.h"
#include "support/live_profile.h"
#include "support/test.h"

#define N(array)       (sizeof(array) / sizeof((array)[0]))
#define REPLICATES     2000
#define COVERED_MIN    1846 /* binomial(n, 0.95) */
#define OBJECTS_MIN    1833 /* binomial(n, 0.945) */
#define MISSES_MAX     90   /* binomial(n, 0.025) */
#define END_MISSES_MAX 154  /* binomial(n, 0.05) */
#define Z_MAX          5.2
#define PERIOD         4096u
#define POINTS         6
#define OBJECTS_MAX    20000
#define LIVES          20000

enum mutant {
	HONEST,
	RAW_MAXIMUM,    /* the highest point of the estimated curve as it is */
	RAW_INTERVAL,   /* and the interval at that point */
	DROP_FREES,     /* one free in ten is not seen */
	DROP_SURVIVORS, /* lifetimes of freed objects only */
	ONE_WEIGHT,     /* every sample counts as one object */
};

enum shape {
	RAMP,     /* all is kept */
	PLATEAU,  /* each object is freed when the n-th after it is born */
	SAWTOOTH, /* n objects, then all are freed, again and again */
	RANDOM,   /* lifetimes of all lengths, sizes up to 16 KiB */
};

struct program {
	const char *name;
	enum shape shape;
	unsigned int objects; /* alive at the peak, but for RANDOM */
	unsigned int rounds;  /* lifetimes of a plateau, teeth of a saw */
	uint64_t size_bytes;
	bool always_large;
	bool ends_empty;
};

/* Expected samples at the peak: objects x size / PERIOD, roughly. */
static const struct program programs[] = {
	{"ramp", RAMP, 480, 1, 256, false, false},
	{"plateau", PLATEAU, 480, 10, 256, false, true},
	{"plateau of few", PLATEAU, 160, 20, 256, false, true},
	{"plateau to the end", PLATEAU, 480, 10, 256, false, false},
	{"sawtooth", SAWTOOTH, 480, 10, 256, false, true},
	{"sawtooth of few", SAWTOOTH, 160, 40, 256, false, true},
	{"random", RANDOM, 2500, 1, 0, true, false},
	{"summit", PLATEAU, 160, 1, 256, false, true},
};

#define PROGRAMS N(programs)

struct object {
	uint64_t born_ns;
	uint64_t freed_ns;
	uint64_t size_bytes;
	uint64_t hit; /* it is sampled if 64 random bits are at most that */
};

/* What the program did. */
struct history {
	struct object object[OBJECTS_MAX];
	size_t n;
	uint64_t duration_ns;
	bool always_large;
	double peak_bytes;
	double bytes[POINTS];
	double objects[POINTS];
};

static uint64_t below(struct sp_rng *rng, uint64_t limit)
{
	return sp_rng_next(rng) % limit;
}

static uint64_t hit_threshold(uint64_t size_bytes, bool always_large)
{
	if (always_large && size_bytes >= sp_format_always_bytes(PERIOD))
		return UINT64_MAX;
	return (uint64_t)ldexp(sp_inclusion_probability(size_bytes, PERIOD),
			       64);
}

static void push(struct history *h, uint64_t born_ns, uint64_t freed_ns,
		 uint64_t size_bytes)
{
	assert_true(h->n < OBJECTS_MAX);
	h->object[h->n++] =
		(struct object){born_ns, freed_ns, size_bytes,
				hit_threshold(size_bytes, h->always_large)};
}

static double live_bytes(const struct history *h, uint64_t time_ns,
			 double *ret_objects)
{
	double bytes = 0;

	*ret_objects = 0;
	for (size_t i = 0; i < h->n; i++) {
		const struct object *o = &h->object[i];

		if (o->born_ns > time_ns || o->freed_ns <= time_ns)
			continue;
		bytes += (double)o->size_bytes;
		*ret_objects += 1;
	}
	return bytes;
}

static void push_random(struct history *h, struct sp_rng *rng, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const uint64_t born = 10 * i;
		const uint64_t size = 16ull << below(rng, 10);
		const uint64_t lives = 1ull << below(rng, 15);

		push(h, born, below(rng, 10) ? born + 1 + lives : SP_NEVER,
		     size + below(rng, size));
	}
}

static void history_init(struct history *h, const struct program *p)
{
	const unsigned int n = p->objects, last = n * p->rounds;
	struct sp_rng rng;
	double objects;

	sp_rng_init(&rng, 5, 0);
	h->n = 0;
	h->always_large = p->always_large;
	if (p->shape == RANDOM)
		push_random(h, &rng, n);
	for (unsigned int i = 0; i < last && p->shape != RANDOM; i++)
		push(h, i,
		     p->shape == RAMP      ? SP_NEVER
		     : p->shape == PLATEAU ? i + n
					   : (i / n + 1) * n,
		     p->size_bytes);
	h->duration_ns = h->object[h->n - 1].born_ns;
	if (p->ends_empty)
		h->duration_ns += n;
	for (unsigned int k = 0; k < POINTS; k++)
		h->bytes[k] = live_bytes(h, k * h->duration_ns / (POINTS - 1),
					 &h->objects[k]);
	h->peak_bytes = 0;
	for (size_t i = 0; i < h->n; i++)
		h->peak_bytes =
			fmax(h->peak_bytes,
			     live_bytes(h, h->object[i].born_ns, &objects));
}

/* One recording: every object is sampled or not by itself. */
static void record(const struct history *h, struct sp_rng *rng,
		   enum mutant mutant, struct live_profile *live)
{
	live_profile_clear(live);
	live->profile.duration_ns = h->duration_ns;
	live->profile.seed = sp_rng_next(rng);
	live->profile.law.always_large = h->always_large;
	for (size_t i = 0; i < h->n; i++) {
		const struct object *o = &h->object[i];
		uint64_t freed = o->freed_ns;

		if (sp_rng_next(rng) > o->hit)
			continue;
		if (freed > h->duration_ns)
			freed = SP_NEVER;
		if (mutant == DROP_FREES && below(rng, 10) == 0)
			freed = SP_NEVER;
		live_profile_add(live, o->born_ns, freed, o->size_bytes);
	}
}

struct result {
	unsigned int bytes[POINTS]; /* replicates covered */
	unsigned int objects[POINTS];
	unsigned int peak;
	unsigned int misses; /* the peak lies below the lower limit */
	double samples;      /* at the peak, on average */
	double bias;         /* relative */
	double raw_bias;
	double z_high; /* of the value, against the greatest that it may be */
	double z_low;  /* against the least */
};

static bool covers(struct sp_interval i, double truth)
{
	return i.lo <= truth && truth <= i.hi;
}

static const struct sp_estimation p3 = {SP_METHOD_P3, 0.95, NULL, 0};

static void add_timeline(const struct history *h, const struct sp_profile *p,
			 struct result *r)
{
	struct sp_timeline_point points[POINTS];
	struct sp_selection selection;

	sp_selection_init(&selection);
	assert_int_equal(sp_timeline(p, &selection, &p3, points, POINTS, NULL),
			 0);
	for (unsigned int k = 0; k < POINTS; k++) {
		r->bytes[k] += covers(points[k].live_bytes, h->bytes[k]);
		r->objects[k] += covers(points[k].live_objects, h->objects[k]);
	}
}

static struct sp_peak find_peak(const struct sp_profile *p, enum mutant mutant)
{
	struct sp_selection selection;
	struct sp_timeline_point points[2];
	struct sp_peak peak;

	sp_selection_init(&selection);
	assert_int_equal(sp_peak(p, &selection, 0.95, &peak, NULL), 0);
	if (mutant == RAW_MAXIMUM)
		peak.bytes.value = peak.raw_bytes;
	if (mutant == RAW_INTERVAL) {
		struct sp_profile until = *p;

		until.duration_ns = peak.time_ns;
		assert_int_equal(
			sp_timeline(&until, &selection, &p3, points, 2, NULL),
			0);
		peak.bytes = points[1].live_bytes;
	}
	return peak;
}

static void run(const struct program *program, enum mutant mutant,
		struct result *r)
{
	static struct history h;
	const double weight =
		(double)program->size_bytes /
		sp_inclusion_probability(program->size_bytes, PERIOD);
	double sum = 0, squares = 0, raw = 0, mean, error, most, least;
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_rng rng;

	*r = (struct result){.peak = 0};
	history_init(&h, program);
	live_profile_init(&live, PERIOD, 0);
	sp_rng_init(&rng, 20, (uint64_t)(program - programs));
	for (unsigned int i = 0; i < REPLICATES; i++) {
		struct sp_peak peak;

		record(&h, &rng, mutant, &live);
		add_timeline(&h, &live.profile, r);
		peak = find_peak(&live.profile, mutant);
		r->peak += covers(peak.bytes, h.peak_bytes);
		r->misses += peak.bytes.lo > h.peak_bytes;
		r->samples += (double)peak.samples / REPLICATES;
		sum += peak.bytes.value / h.peak_bytes;
		squares += pow(peak.bytes.value / h.peak_bytes, 2);
		raw += peak.raw_bytes / h.peak_bytes;
	}
	mean = sum / REPLICATES;
	error = sqrt((squares / REPLICATES - mean * mean) / REPLICATES);
	r->bias = mean - 1;
	r->raw_bias = raw / REPLICATES - 1;
	most = 1 + (program->ends_empty ? weight / h.peak_bytes
					: 0.75 * error * sqrt(REPLICATES));
	least = program->shape == RANDOM ? 0.9 : 1 - weight / h.peak_bytes;
	r->z_high = (mean - most) / error;
	r->z_low = (mean - least) / error;
}

TEST(programs)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct result r;

		run(&programs[i], HONEST, &r);
		print_message("%-18s %3.0f samples, peak covered %u, below it "
			      "%u, bias %+.3f (raw %+.3f), z %.1f %.1f; live",
			      programs[i].name, r.samples, r.peak, r.misses,
			      r.bias, r.raw_bias, r.z_high, r.z_low);
		for (unsigned int k = 0; k < POINTS; k++)
			print_message(" %u/%u", r.bytes[k], r.objects[k]);
		print_message("\n");
		for (unsigned int k = 0; k < POINTS; k++) {
			assert_in_range(r.bytes[k], COVERED_MIN, REPLICATES);
			assert_in_range(r.objects[k], OBJECTS_MIN, REPLICATES);
		}
		assert_in_range(r.peak, COVERED_MIN, REPLICATES);
		assert_in_range(r.misses, 0,
				programs[i].ends_empty ? MISSES_MAX
						       : END_MISSES_MAX);
		assert_true(r.z_high <= Z_MAX);
		if (r.z_low < -Z_MAX)
			printf("! the peak is too low: %s\n", programs[i].name);
		assert_true(r.z_low >= -Z_MAX);
	}
}

TEST(mutants)
{
	struct result r;

	for (unsigned int i = 2; i < 6; i++) {
		run(&programs[i], RAW_MAXIMUM, &r);
		assert_true(r.z_high > Z_MAX);
	}
	run(&programs[2], RAW_INTERVAL, &r);
	assert_true(r.misses > MISSES_MAX);
	assert_true(r.peak < COVERED_MIN);
	run(&programs[4], DROP_FREES, &r);
	assert_true(r.bytes[POINTS - 1] < COVERED_MIN);
	assert_true(r.z_high > Z_MAX);
}

/* ---- the rows of the peak ---- */

#define FUNCTIONS 4

struct rows_result {
	unsigned int all;
	unsigned int function[FUNCTIONS];
	double bias;
};

/* Mutant RAW_MAXIMUM: as of a moment that was named in advance. */
static struct sp_sums *peak_rows(const struct sp_profile *p, enum mutant mutant,
				 uint64_t *ret_ns)
{
	struct sp_selection selection;
	struct sp_sums *sums;
	struct sp_peak peak;

	sp_selection_init(&selection);
	assert_int_equal(sp_peak(p, &selection, 0.95, &peak, NULL), 0);
	selection.view = mutant == RAW_MAXIMUM ? SP_VIEW_LIVE : SP_VIEW_PEAK;
	selection.peak_ns = selection.at_ns = peak.rows_ns;
	*ret_ns = peak.time_ns;
	assert_int_equal(sp_sums_new(p, &selection, &sums, NULL), 0);
	return sums;
}

static bool is_alive(const struct object *o, uint64_t time_ns)
{
	return o->born_ns <= time_ns && o->freed_ns > time_ns;
}

/* Objects are of the functions in turn, which have a quarter each or so. */
static struct rows_result run_rows(const struct program *program,
				   enum mutant mutant)
{
	const struct sp_estimation how = {SP_METHOD_P3, 0.95, NULL, 0};
	static struct sp_stack stacks[FUNCTIONS];
	static struct history h;
	struct rows_result r = {0};
	struct live_profile live;
	struct sp_rng rng;

	history_init(&h, program);
	live_profile_init(&live, PERIOD, 0);
	live.profile.stacks = stacks;
	live.profile.n_stacks = FUNCTIONS;
	sp_rng_init(&rng, 40, (uint64_t)(program - programs));
	for (unsigned int i = 0; i < REPLICATES; i++) {
		double truths[FUNCTIONS] = {0}, truth = 0;
		struct sp_sums *sums;
		uint64_t at_ns;

		record(&h, &rng, HONEST, &live);
		for (size_t k = 0; k < live.profile.n_samples; k++)
			live.profile.samples[k].stack =
				live.profile.samples[k].born_ns % FUNCTIONS;
		sums = peak_rows(&live.profile, mutant, &at_ns);
		for (size_t k = 0; k < h.n; k++)
			if (is_alive(&h.object[k], at_ns))
				truths[h.object[k].born_ns % FUNCTIONS] +=
					(double)h.object[k].size_bytes;
		for (unsigned int k = 0; k < FUNCTIONS; k++)
			truth += truths[k];
		r.all += covers(sp_estimate_bytes(&how, &sums->all), truth);
		r.bias += (sums->all.all.est_bytes / h.peak_bytes - 1) /
			  REPLICATES;
		for (unsigned int k = 0; k < FUNCTIONS; k++)
			r.function[k] += covers(
				sp_estimate_bytes(&how, &sums->stacks[k]),
				truths[k]);
		sp_sums_free(sums, &live.profile);
	}
	live_profile_free(&live);
	return r;
}

TEST(rows_of_the_peak)
{
	struct rows_result r;

	for (size_t i = 0; i < PROGRAMS; i++) {
		r = run_rows(&programs[i], HONEST);
		print_message("%-18s rows of the peak: %u; %u %u %u %u, bias "
			      "%+.3f\n",
			      programs[i].name, r.all, r.function[0],
			      r.function[1], r.function[2], r.function[3],
			      r.bias);
		assert_in_range(r.all, COVERED_MIN, REPLICATES);
		for (unsigned int k = 0; k < FUNCTIONS; k++)
			assert_in_range(r.function[k], COVERED_MIN, REPLICATES);
	}
	r = run_rows(&programs[1], RAW_MAXIMUM);
	assert_true(r.all < COVERED_MIN);
}

/* ---- lifetimes ---- */

/*
 * Objects are born evenly over 100 ms.  Those of 64 bytes live 30 ms on
 * average, those of 4 KiB 200 ms, exponentially; the latter are sampled forty
 * times as often and are one in five.
 */
static void make_lives(struct history *h, uint64_t *lives)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 6, 0);
	h->n = 0;
	h->always_large = false;
	h->duration_ns = 100000000;
	for (unsigned int i = 0; i < LIVES; i++) {
		const bool large = i % 5 == 0;
		const double u =
			((double)(sp_rng_next(&rng) >> 11) + 0.5) * 0x1p-53;
		const uint64_t born = 5000ull * i;

		lives[i] = (uint64_t)(-log(u) * (large ? 2e8 : 3e7));
		push(h, born, born + lives[i], large ? 4096 : 64);
	}
}

static struct sp_lifetime find_lifetime(struct sp_profile *p,
					enum mutant mutant)
{
	const uint32_t row_of_stack[] = {0};
	struct sp_selection selection;
	struct sp_lifetime row;
	size_t kept = 0;

	for (size_t k = 0; k < p->n_samples; k++) {
		if (mutant == DROP_SURVIVORS &&
		    p->samples[k].freed_ns == SP_NEVER)
			continue;
		p->samples[kept] = p->samples[k];
		if (mutant == ONE_WEIGHT)
			p->samples[kept].period_bytes = 1;
		kept++;
	}
	p->n_samples = kept;
	sp_selection_init(&selection);
	assert_int_equal(
		sp_lifetimes(p, &selection, row_of_stack, &row, 1, NULL), 0);
	return row;
}

/* Standard errors between the mean of the estimated median and the one that a
 * recording of everything gives. */
static double lifetime_z(const struct history *h, double truth,
			 enum mutant mutant, double *ret_bias)
{
	const unsigned int replicates = 1000;
	double sum = 0, squares = 0, mean;
	struct live_profile live;
	struct sp_rng rng;

	live_profile_init(&live, PERIOD, 0);
	sp_rng_init(&rng, 30, 0);
	for (unsigned int i = 0; i < replicates; i++) {
		double ratio;

		record(h, &rng, HONEST, &live);
		ratio = (double)find_lifetime(&live.profile, mutant).median_ns /
			truth;
		sum += ratio;
		squares += ratio * ratio;
	}
	live_profile_free(&live);
	mean = sum / replicates;
	*ret_bias = mean - 1;
	return fmax(fabs(mean - 1) - 0.01, 0) /
	       sqrt((squares / replicates - mean * mean) / replicates);
}

/* The median as a recording with period 1 has it. */
static double full_median(struct history *h)
{
	struct live_profile live;
	struct sp_rng rng;
	double median;

	for (size_t i = 0; i < h->n; i++)
		h->object[i].hit = UINT64_MAX;
	live_profile_init(&live, 1, 0);
	sp_rng_init(&rng, 31, 0);
	record(h, &rng, HONEST, &live);
	median = (double)find_lifetime(&live.profile, HONEST).median_ns;
	live_profile_free(&live);
	return median;
}

TEST(lifetimes)
{
	static struct history h;
	static uint64_t lives[LIVES];
	double truth, bias, z;

	make_lives(&h, lives);
	truth = full_median(&h);
	qsort(lives, N(lives), sizeof(lives[0]), sp_array_compare_u64);
	/* that curve's own error, of 20000 objects: 4 % is 4 of it */
	assert_true(fabs(truth / (double)lives[LIVES / 2 - 1] - 1) < 0.04);
	make_lives(&h, lives);
	z = lifetime_z(&h, truth, HONEST, &bias);
	print_message("median lifetime: bias %+.4f, z %.1f\n", bias, z);
	assert_true(z <= Z_MAX);
	assert_true(lifetime_z(&h, truth, DROP_SURVIVORS, &bias) > Z_MAX);
	assert_true(lifetime_z(&h, truth, ONE_WEIGHT, &bias) > Z_MAX);
}

int main(int argc, char **argv)
{
	/* of a mutant: what has to reject it */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return TEST_RUN(NULL, NULL);
}
