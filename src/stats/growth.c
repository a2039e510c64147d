/* SPDX-License-Identifier: MIT */
/*
 * Growth of what a site keeps.  A leak and a cache that fills differ in their
 * second half alone: the growth of the leak goes on.  The old bytes are used
 * rather than survivors by birth: where long lifetimes are steady, the later
 * births survive more often, as if something had begun to leak.
 *
 * All tests are of contrasts: sums of growth by window with one factor for each
 * part of the run.  A sample adds its bytes where it becomes old and takes them
 * away where it leaves; so its variance has the difference of the two factors,
 * squared, and a sample that comes and goes in one part none.  Besides, the
 * windows themselves scatter around a straight line (E51); the larger of the
 * two p-values counts.
 */
#include "stats/growth.h"

#include <math.h>

#include "base/bisect.h"
#include "stats/compare.h"
#include "stats/special.h"

#define WINDOWS SP_GROWTH_WINDOWS
#define START   SP_GROWTH_START
/* Windows after the start, and of a half and a quarter of these. */
#define TESTED  (WINDOWS - START)
#define HALF    (TESTED / 2)
#define QUARTER (TESTED / 4)
#define FREEDOM ((double)TESTED - 2)

/* Growth slows down if the second half has less than that of the first, or the
 * last quarter less than that of the three before. */
#define SLOWS_HALF    (2.0 / 3)
#define SLOWS_QUARTER (1.0 / 2)

struct sp_growth_clock sp_growth_clock_even(uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t length = to_ns > from_ns ? to_ns - from_ns : 0;
	struct sp_growth_clock clock;

	for (unsigned int i = 0; i <= WINDOWS; i++)
		clock.edge_ns[i] = from_ns + length / WINDOWS * i +
				   length % WINDOWS * i / WINDOWS;
	return clock;
}

void sp_growth_init(struct sp_growth *growth, uint64_t period_bytes)
{
	*growth = (struct sp_growth){0};
	for (int i = 0; i < 2; i++) {
		sp_acc_init(&growth->gained[i], period_bytes);
		sp_acc_init(&growth->lost[i], period_bytes);
	}
}

/* -1: before all; WINDOWS: after all. */
static int window_at(const struct sp_growth_clock *clock, uint64_t time_ns)
{
	size_t at;

	SP_LOWER_BOUND(at, WINDOWS + 1, clock->edge_ns[at] <= time_ns);
	return (int)at - 1;
}

static enum sp_growth_part part_of(int window)
{
	if (window < (int)START)
		return SP_GROWTH_IN_START;
	if (window < (int)(START + HALF))
		return SP_GROWTH_IN_FIRST;
	if (window < (int)(START + HALF + QUARTER))
		return SP_GROWTH_IN_THIRD;
	return window < (int)WINDOWS ? SP_GROWTH_IN_LAST : SP_GROWTH_NEVER;
}

/* An object that is old from the window `came` on, and leaves in `left`. */
static void add_old(struct sp_growth *g, int came, int left,
		    const struct sp_acc *one)
{
	const enum sp_growth_part from = part_of(came), to = part_of(left);

	g->growth[came] += one->est_bytes;
	if (to != SP_GROWTH_NEVER)
		g->growth[left] -= one->est_bytes;
	g->bytes[from][to] += one->est_bytes;
	g->var[from][to] += one->k2;
	if (from != SP_GROWTH_IN_START)
		g->old += one->samples;
	if (from != SP_GROWTH_IN_START && to == SP_GROWTH_NEVER)
		g->squares += one->est_bytes * one->est_bytes;
	for (int half = 0; half < 2; half++) {
		const bool is_after =
			from > (half ? SP_GROWTH_IN_FIRST : SP_GROWTH_IN_START);

		if (is_after && to == SP_GROWTH_NEVER)
			sp_acc_merge(&g->gained[half], one);
		if (!is_after && to != SP_GROWTH_NEVER &&
		    to > (half ? SP_GROWTH_IN_FIRST : SP_GROWTH_IN_START))
			sp_acc_merge(&g->lost[half], one);
	}
}

void sp_growth_add(struct sp_growth *g, const struct sp_growth_clock *clock,
		   uint64_t born_ns, uint64_t gone_ns, const struct sp_acc *one)
{
	const int born = window_at(clock, born_ns);
	const int left = gone_ns == UINT64_MAX ? (int)WINDOWS
					       : window_at(clock, gone_ns);

	if (born == (int)WINDOWS || left < 0)
		return;
	g->samples += one->samples;
	if (born >= (int)(START + HALF))
		g->born_bytes += one->est_bytes;
	for (int k = born < 0 ? 0 : born; k < left && k < (int)WINDOWS; k++)
		g->alive[k] += one->est_bytes;
	if (left == (int)WINDOWS)
		g->alive_bytes += one->est_bytes;
	if (born + 1 < left && born + 1 < (int)WINDOWS)
		add_old(g, born + 1, left, one);
	else if (left == (int)WINDOWS)
		g->young_bytes += one->est_bytes;
}

/* ---- contrasts ---- */

/* A factor for the growth of each part; 0 of the start. */
struct contrast {
	double of[SP_GROWTH_PARTS];
};

struct figure {
	double value;
	double var;       /* by the samples */
	double scattered; /* by the windows */
};

/* Windows after the start around a straight line: variance of each. */
static double window_variance(const struct sp_growth *g)
{
	double mean = 0, slope = 0, squares = 0, rest = 0;

	for (unsigned int i = 0; i < TESTED; i++)
		mean += g->growth[START + i] / TESTED;
	for (unsigned int i = 0; i < TESTED; i++) {
		const double x = (double)i - (TESTED - 1) / 2.0;

		slope += x * g->growth[START + i];
		squares += x * x;
	}
	slope /= squares;
	for (unsigned int i = 0; i < TESTED; i++) {
		const double x = (double)i - (TESTED - 1) / 2.0;
		const double r = g->growth[START + i] - mean - slope * x;

		rest += r * r;
	}
	return rest / FREEDOM;
}

static struct figure figure_of(const struct sp_growth *g,
			       const struct contrast *c)
{
	struct figure f = {0, 0, 0};
	double squares = 0;

	for (int from = 0; from < SP_GROWTH_PARTS; from++)
		for (int to = 0; to < SP_GROWTH_PARTS; to++) {
			const double factor = c->of[from] - c->of[to];

			f.value += factor * g->bytes[from][to];
			f.var += factor * factor * g->var[from][to];
		}
	for (unsigned int k = START; k < WINDOWS; k++)
		squares += c->of[part_of((int)k)] * c->of[part_of((int)k)];
	f.scattered = squares * window_variance(g);
	return f;
}

/* P(T > t) by Student's law. */
static double student_upper(double t)
{
	const double tail = sp_special_beta_lower(FREEDOM / 2, 0.5,
						  FREEDOM / (FREEDOM + t * t));

	return t > 0 ? tail / 2 : 1 - tail / 2;
}

static double normal_upper(double t)
{
	return erfc(t / sqrt(2)) / 2;
}

/* p-value of "it is not above 0"; of a value that is certain 0 or 1. */
static double p_by_samples(const struct figure *f)
{
	return f->var > 0 ? normal_upper(f->value / sqrt(f->var))
			  : !(f->value > 0);
}

static double p_of(const struct figure *f)
{
	const double by_samples = p_by_samples(f);
	const double by_windows =
		f->scattered > 0 ? student_upper(f->value / sqrt(f->scattered))
				 : !(f->value > 0);

	return fmax(by_samples, by_windows);
}

static double p_of_contrast(const struct sp_growth *g, double first,
			    double third, double last)
{
	const struct contrast c = {{0, first, third, last, 0}};
	const struct figure f = figure_of(g, &c);

	return p_of(&f);
}

/* (E52) "It slows down", by halves and by quarters. */
static void test_slowing(const struct sp_growth *g, struct sp_growth_test *test)
{
	static const struct contrast slows[] = {
		{{0, -SLOWS_HALF, 1, 1, 0}},
		{{0, -SLOWS_QUARTER / 3, -SLOWS_QUARTER / 3, 1, 0}},
	};

	for (int i = 0; i < 2; i++) {
		const struct figure f = figure_of(g, &slows[i]);

		test->p_slows = fmax(test->p_slows, p_of(&f));
		test->p_slows_sampled =
			fmax(test->p_slows_sampled, p_by_samples(&f));
	}
}

/* (E53) */
static double strength_of(const struct sp_growth *g)
{
	const struct contrast all = {{0, 1, 1, 1, 0}};
	const struct contrast half = {{0, -SLOWS_HALF, 1, 1, 0}};
	const double growth = figure_of(g, &all).value;
	const struct figure f = figure_of(g, &half);

	if (!(growth > 0))
		return 0;
	return growth / 2 * (1 - SLOWS_HALF) / sqrt(fmax(f.var, f.scattered));
}

struct sp_growth_test sp_growth_test(const struct sp_growth *g)
{
	struct sp_growth_test test = {
		.p_none = p_of_contrast(g, 1, 1, 1),
		.p_half = p_of_contrast(g, 0, 1, 1),
		.p_goes_on = p_of_contrast(g, 1, -1, -1),
		.strength = strength_of(g),
	};

	test_slowing(g, &test);
	for (unsigned int i = 0; i < TESTED; i++)
		test.windows[i / HALF] += g->growth[START + i] > 0;
	return test;
}

struct sp_interval sp_growth_bytes(const struct sp_growth *g, bool of_half,
				   double confidence)
{
	struct sp_runs lost, gained;

	sp_runs_sampled(&lost, &g->lost[of_half], 1, false);
	sp_runs_sampled(&gained, &g->gained[of_half], 1, false);
	return sp_contrast(&lost, &gained, 1, NULL, confidence);
}

double sp_growth_level(const struct sp_growth *g)
{
	double sum = 0;

	for (unsigned int k = START + HALF; k < WINDOWS; k++)
		sum += g->alive[k];
	return sum / HALF;
}

double sp_growth_objects(const struct sp_growth *g)
{
	const double bytes = g->gained[0].est_bytes;

	return g->squares > 0 ? bytes * bytes / g->squares : 0;
}

bool sp_growth_is_late(const struct sp_growth *g, double p)
{
	const struct contrast c = {{0, 0, 0, 1, 0}};
	const struct figure f = figure_of(g, &c);

	return f.value > 0 &&
	       (!(f.var > 0) || normal_upper(f.value / sqrt(f.var)) <= p);
}
