/* SPDX-License-Identifier: MIT */
/*
 * From growth to verdicts.  "Leak" is claimed of sites together, at a
 * false-discovery rate (E31, E54); the others are claims of a site by itself,
 * and each needs an interval that excludes its contrary.
 */
#include "stats/leak.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats/compare.h"
#include "stats/special.h"

/* One-sided, of what is said about a site by itself. */
#define LEVEL 0.025
/* "Filling" says of a leak that it is none: more rarely. */
#define FILLING_LEVEL 0.005
/* Windows of each half that a leak grows in. */
#define WINDOWS_MIN 4u

/* Growth of fewer objects, were they all of one size, tells nothing. */
#define OBJECTS_MIN 5

/* What steady may grow by in half of the run: a part of what is alive, or of
 * what was allocated. */
#define STEADY_ALIVE 0.25
#define STEADY_BORN  0.001

const char *sp_leak_verdict_name(enum sp_leak_verdict verdict)
{
	static const char *const names[] = {
		[SP_LEAK_UNDECIDED] = "undecided",
		[SP_LEAK_STEADY] = "steady",
		[SP_LEAK_FILLING] = "filling",
		[SP_LEAK_LEAK] = "leak",
	};

	return names[verdict];
}

/* p-value of "no leak" by one clock. */
static double p_of_clock(const struct sp_growth_test *t, bool *in_steps)
{
	const double p = fmax(t->p_none, t->p_slows);

	if (t->windows[0] >= WINDOWS_MIN && t->windows[1] >= WINDOWS_MIN)
		return p;
	*in_steps |= p <= SP_LEAK_RATE;
	return 1;
}

/*
 * (E54) By the clock of bytes a site that is most of them grows in a straight
 * line, whatever it does.  Then that clock may say that bursts are no sign of
 * slowing down, but not that growth goes on which slows down by time.  That of
 * all bytes is one of these where others are the load: it has a fifth of the
 * level.  It has to go on at the end by every clock.
 */
#define SHARE_OF_ALL 0.2

static void test_row(struct sp_leak *row, const struct sp_growth_test *tests,
		     const struct sp_leak_clocks *clocks)
{
	const double others = clocks->has_all ? 1 - SHARE_OF_ALL : 1;
	const double share = clocks->is_uneven ? others / 2 : others;
	const struct {
		bool is_used, follows;
		double share;
	} use[SP_LEAK_CLOCKS] = {{true, clocks->is_own, share},
				 {clocks->is_uneven, clocks->is_own, share},
				 {clocks->has_all, true, SHARE_OF_ALL}};
	const double by_time = tests[SP_LEAK_BY_TIME].p_slows_sampled;
	bool is_late = true;
	double p = 1;

	for (unsigned int c = 0; c < SP_LEAK_CLOCKS; c++) {
		const double slows = use[c].follows ? by_time : 0;
		double by_clock;

		if (!use[c].is_used)
			continue;
		is_late &= sp_growth_is_late(&row->growth[c], LEVEL);
		by_clock = p_of_clock(&tests[c], &row->in_steps);
		p = fmin(p, fmax(by_clock, slows) / use[c].share);
	}
	row->is_tested = row->growth[0].old >= SP_LEAK_SAMPLES;
	row->p = row->is_tested && is_late ? p : 1;
}

/* (E55) What half the run may add to a site that is steady. */
static double steady_bytes(const struct sp_growth *g)
{
	return fmax(STEADY_ALIVE * sp_growth_level(g),
		    STEADY_BORN * g->born_bytes);
}

static void judge_other(struct sp_leak *row, const struct sp_growth_test *t)
{
	const double steady = steady_bytes(&row->growth[SP_LEAK_BY_TIME]);

	row->verdict = SP_LEAK_UNDECIDED;
	/* One object says nothing about the next. */
	if (row->grows && sp_growth_objects(&row->growth[0]) < OBJECTS_MIN) {
		row->in_steps = true;
		return;
	}
	/* what grows by all appearances is not steady, however little it is */
	if (row->half_bytes.hi <= steady && t->p_half > LEVEL)
		row->verdict = SP_LEAK_STEADY;
	else if (row->grows && row->is_tested && t->p_goes_on <= FILLING_LEVEL)
		row->verdict = SP_LEAK_FILLING;
}

/* (E53) Both p-values of a test have to be small, of which one knows its
 * variance from 16 windows alone. */
#define POWER_QUANTILE 1.29
#define TWO_TESTS      1.15
/* Beyond that a run says little about a longer one. */
#define LONGER_MAX 100

/* What would decide, where a leak is found at that level. */
static void look_ahead(struct sp_leak *row, const struct sp_growth_test *t,
		       double level)
{
	const double steady = steady_bytes(&row->growth[SP_LEAK_BY_TIME]);
	const double wanted = TWO_TESTS * (POWER_QUANTILE -
					   sp_special_normal_quantile(level));
	const double longer = pow(wanted / t->strength, 2);

	/* At least twice: what was strong enough is between two verdicts. */
	if (row->half_bytes.value > 0 && longer <= LONGER_MAX && !row->in_steps)
		row->longer = fmax(longer, 2);
	if (!row->grows && steady > 0 && row->half_bytes.hi > steady)
		row->shorter = pow(row->half_bytes.hi / steady, 2);
}

/*
 * What the clock of bytes says, too: where the run is uneven, whether a site
 * grows, and whether a longer run would show that it goes on, if that clock
 * does not follow what grows.  Whether growth slows down more than the load it
 * says of any run: many samples show that of a load which falls a little.
 */
static void add_clock(struct sp_growth_test *test,
		      const struct sp_growth_test *other,
		      const struct sp_leak_clocks *clocks)
{
	if (clocks->is_load || !clocks->is_own)
		test->p_goes_on = fmax(test->p_goes_on, other->p_goes_on);
	if (!clocks->is_uneven)
		return;
	test->p_half = fmin(test->p_half, other->p_half);
	if (!clocks->is_own)
		test->strength = fmax(test->strength, other->strength);
}

/* What is missing may have stayed, or gone. */
static struct sp_interval wider(struct sp_interval i, double gap_bytes)
{
	return (struct sp_interval){i.value, i.lo - gap_bytes,
				    i.hi + gap_bytes};
}

int sp_leak_judge(struct sp_leak *rows, size_t n, size_t n_sites,
		  const struct sp_leak_clocks *clocks,
		  struct sp_leak_judging *ret)
{
	double *p = calloc(n + 1, sizeof(*p)), largest, level;
	struct sp_growth_test *tests = calloc(n + 1, sizeof(*tests));
	int r = -ENOMEM;

	*ret = (struct sp_leak_judging){0, 0};
	if (!p || !tests)
		goto out;
	for (size_t i = 0; i < n; i++) {
		struct sp_growth_test by[SP_LEAK_CLOCKS];
		struct sp_leak *row = &rows[i];

		for (unsigned int c = 0; c < SP_LEAK_CLOCKS; c++)
			by[c] = sp_growth_test(&row->growth[c]);
		test_row(row, by, clocks);
		tests[i] = by[SP_LEAK_BY_TIME];
		add_clock(&tests[i], &by[SP_LEAK_BY_BYTES], clocks);
		row->bytes = wider(
			sp_growth_bytes(&row->growth[0], false, 1 - 2 * LEVEL),
			clocks->gap_bytes);
		row->half_bytes = wider(
			sp_growth_bytes(&row->growth[0], true, 1 - 2 * LEVEL),
			clocks->gap_bytes);
		row->grows = row->bytes.lo > 0;
		if (row->is_tested && i < n_sites)
			p[ret->n_tests++] = row->p;
	}
	r = sp_false_discovery(p, ret->n_tests, SP_LEAK_RATE, &largest);
	if (r < 0)
		goto out;
	for (size_t i = 0; i < n_sites; i++)
		ret->n_leaks += rows[i].is_tested && rows[i].p <= largest;
	level = SP_LEAK_RATE * (double)(ret->n_leaks + 1) /
		fmax((double)ret->n_tests, (double)ret->n_leaks + 1);
	for (size_t i = 0; i < n; i++) {
		struct sp_leak *row = &rows[i];
		const double limit = i < n_sites ? largest : SP_LEAK_RATE;

		if (row->is_tested && row->p <= limit &&
		    (row->grows || !(clocks->gap_bytes > 0))) {
			row->verdict = SP_LEAK_LEAK;
			continue;
		}
		judge_other(row, &tests[i]);
		if (row->verdict == SP_LEAK_UNDECIDED)
			look_ahead(row, &tests[i], level);
	}
out:
	free(p);
	free(tests);
	return r;
}
