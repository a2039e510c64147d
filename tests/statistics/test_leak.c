/* SPDX-License-Identifier: MIT */
/*
 * Twenty-four kinds of call sites, simulated: which are called a leak, and
 * after how long. False alarm: 1e-7; 20 s.
 *
 * Claims (E51 to E55).  Of fifteen kinds of sites that do not leak none is
 * called a leak in more than 1 % of the runs, at any length, be it all of its
 * program or one of many; a leak of nine kinds is called steady, or filling,
 * in at most 1 %; it is found in 90 % of the runs that are as long as shorter
 * ones said, if it is even, and in 80 % if it has bursts; beside others one by
 * day or by night is, in a tenth; the interval of its rate covers.
 *
 * Where a tooth, a day or a burst begins, how long it is, and how soon a cache
 * is full is drawn for each run.  The verdicts are those of sp_leaks_new(),
 * from the samples of a profile.
 *
 * H0: those rates.  Statistic: verdicts in 100 runs of fixed seeds, compared
 * with the binomial distribution for 1 %.  alpha: 5e-10 in each of 166 cells.
 * Power: a rate of 25 % is seen with probability 0.999.  Long form:
 * SAMPLEPROF_TEST_SEEDS=1000, in which 6 % is seen as surely; its table is in
 * docs/measurements.txt.
 */
#include <math.h>

#include "base/order.h"
#include "base/rng.h"
#include "lab/random.h"
#include "stats/leaks.h"
#include "stats/special.h"
#include "support/live_profile.h"
#include "support/test.h"

#define RUN_NS 1000000000u
#define PERIOD 65536u
#define SIZE   64u
#define SEEDS  100
#define LONG   1000u /* longer runs are fewer */
#define FALSE  0.01  /* of each kind, at most */
#define ALPHA  5e-10

static struct sp_rng rng;

/* A site while it is made: times are shares of the run. */
struct making {
	struct live_profile *live;
	uint32_t stack;
	uint32_t beside; /* that of a site that is not judged */
};

static double between(double lo, double hi)
{
	return lo + (hi - lo) * sp_lab_uniform(&rng);
}

static double exponential(double mean)
{
	return -mean * log(sp_lab_uniform(&rng));
}

/* What was born before the run is in no profile. */
static void add_block(const struct making *m, uint64_t size, double born,
		      double gone)
{
	if (born < 0 || born >= 1)
		return;
	live_profile_add(m->live, (uint64_t)(born * RUN_NS),
			 gone < 1 ? (uint64_t)(gone * RUN_NS) : SP_NEVER, size)
		->stack = m->stack;
}

static void add(const struct making *m, double born, double gone)
{
	add_block(m, SIZE, born, gone);
}

#define STAYS 2.0

/* n births in a whole run, from `from` to `to`, of objects that live that long,
 * at random if it is a mean. */
static void add_all(const struct making *m, double n, double from, double to,
		    double mean, double length)
{
	for (double t = from + exponential(1 / n); t < to;
	     t += exponential(1 / n))
		add(m, t, t + length + (mean > 0 ? exponential(mean) : 0));
}

static void add_until(const struct making *m, double n, double from, double to,
		      double gone)
{
	for (double t = from + exponential(1 / n); t < to;
	     t += exponential(1 / n))
		add(m, t, gone);
}

/* Each makes n samples that stay, or as many in a run as show the same. */

static void start(const struct making *m, double n)
{
	add_until(m, 20 * n, 0, 0.05, STAYS);
	add_all(m, n, 0.05, 1, 0.001, 0);
}

static void churn(const struct making *m, double n)
{
	add_all(m, 10 * n, 0, 1, 0.002, 0);
}

static void long_lives(const struct making *m, double n)
{
	add_all(m, 4 * n, 0, 1, 0.25, 0);
}

/* n are alive in groups of twenty, each of which ends at once. */
static void sessions(const struct making *m, double n)
{
	for (double t = exponential(2 / n); t < 1; t += exponential(2 / n)) {
		const double gone = t + exponential(0.1);

		for (int i = 0; i < 20; i++)
			add(m, t + i * 1e-5, gone);
	}
}

/* What is oldest goes: what is alive was born lately. */
static void full_cache(const struct making *m, double n)
{
	const double filled = between(0.05, 0.875);

	add_all(m, n / filled, 0, 1, 0, filled);
}

/* Once it is full, what is added takes the place of any other. */
static void random_cache(const struct making *m, double n)
{
	const double filled = between(0.05, 0.875);

	for (double t = exponential(filled / n); t < 1;
	     t += exponential(filled / n))
		add(m, t, fmax(t, filled) + exponential(filled));
}

/* Fewer and fewer keys are new. */
static void fill(const struct making *m, double n, double rate)
{
	for (double t = exponential(1 / n); t < 3; t += exponential(1 / n))
		add(m, -log(1 - t / 3) / rate, STAYS);
}

static void warm_cache(const struct making *m, double n)
{
	fill(m, n, between(3, 20));
}

static void filling_cache(const struct making *m, double n)
{
	fill(m, n, between(1.5, 3));
}

static void vocabulary(const struct making *m, double n)
{
	for (double t = exponential(1 / n); t < 1; t += exponential(1 / n))
		add(m, t * t, STAYS);
}

static void bursts(const struct making *m, double n)
{
	const double each = between(0.06, 0.3),
		     begin = -each * sp_lab_uniform(&rng);
	const double length = each * between(0.1, 0.9);

	for (double t = begin; t < 1; t += each)
		add_until(m, 0.6 * n / length, t, t + length, t + length);
}

/* A table that doubles whenever it is full. */
static void doubling(const struct making *m, double n)
{
	const double last = between(0.5, 1);

	for (int i = 0; i < 12; i++) {
		const uint64_t bytes = (uint64_t)(n * PERIOD / 4096) << i;
		const double born = last * exp2(i - 11);

		if (sp_lab_uniform(&rng) <
		    sp_inclusion_probability(bytes, PERIOD))
			add_block(m, bytes, born, 2 * born);
	}
}

/* Load that goes up and down like a wave. */
static void day(const struct making *m, double n)
{
	const double length = between(0.08, 0.5), begin = sp_lab_uniform(&rng);

	for (double t = exponential(0.05 / n); t < 1;
	     t += exponential(0.05 / n))
		if (2 * sp_lab_uniform(&rng) <
		    1 + sin(2 * M_PI * (t / length + begin)))
			add(m, t, t + exponential(0.1));
}

/* Each frees at its end what it has made. */
static void phases(const struct making *m, double n)
{
	const double length = between(0.2, 0.5);

	for (double t = -length * sp_lab_uniform(&rng); t < 1; t += length)
		add_until(m, 2 * n, t, t + length, t + length);
}

/* Filled, and emptied by half, time after time. */
static void sawtooth(const struct making *m, double n)
{
	const double length = between(0.03, 0.3);

	for (double t = -length * sp_lab_uniform(&rng); t < 1; t += length) {
		add_until(m, 0.4 * n / length, t, t + length, t + length);
		add_until(m, 0.4 * n / length, t, t + length, t + 2 * length);
	}
}

/* It is not called again, and the program goes on. */
static void leak_that_stops(const struct making *m, double n)
{
	add_until(m, n, 0, between(0.3, 5.0 / 6), STAYS);
	churn(&(struct making){m->live, m->beside, m->beside}, n);
}

static void leak(const struct making *m, double n)
{
	add_until(m, n, 0, 1, STAYS);
}

/* One in a thousand, of which so many are seen that chance is the same. */
static void rare_leak(const struct making *m, double n)
{
	leak(m, n);
	add_all(m, 30 * n, 0, 1, 0.001, 0);
}

static void leak_after_start(const struct making *m, double n)
{
	add_until(m, 20 * n, 0, 0.05, STAYS);
	leak(m, n);
}

static void leak_in_bursts(const struct making *m, double n)
{
	const double each = between(0.02, 0.03);

	for (double t = -each * sp_lab_uniform(&rng); t < 1; t += each)
		add_until(m, n / 0.2, t, t + 0.2 * each, STAYS);
}

/* What grows by a part of what is there. */
static void slow_leak(const struct making *m, double n)
{
	add_until(m, between(50, 1000) * n, 0, 0.05, STAYS);
	leak(m, n);
}

static double day_length, day_begin; /* of both that follow */

static void leak_by_turns(const struct making *m, double n, double half)
{
	for (double t = exponential(0.5 / n); t < 1; t += exponential(0.5 / n))
		if (2 * sp_lab_uniform(&rng) <
		    1 + sin(2 * M_PI * (t / day_length + day_begin + half)))
			add(m, t, STAYS);
}

/* By day more than by night. */
static void leak_by_day(const struct making *m, double n)
{
	day_length = between(0.08, 0.3);
	day_begin = sp_lab_uniform(&rng);
	leak_by_turns(m, n, 0);
}

/* Of the same days as the leak by day that was made last. */
static void leak_by_night(const struct making *m, double n)
{
	leak_by_turns(m, n, 0.5);
}

/* So many births in the run, at a rate that falls by that part of it. */
static void add_falling(const struct making *m, double n, double fall,
			double length)
{
	const double each = (1 - fall / 2) / n;

	for (double t = exponential(each); t < 1; t += exponential(each))
		if (sp_lab_uniform(&rng) < 1 - fall * t)
			add(m, t, t + length);
}

/* Each request leaks, and there are fewer and fewer; a cache of other objects
 * gets warm meanwhile.  Beside a load of others it could not be told from what
 * fills up. */
static void leak_while_load_falls(const struct making *m, double n)
{
	const struct making cache = {m->live, m->beside, m->beside};
	const double fall = between(0.05, 0.9);

	add_falling(m, n, fall, STAYS);
	fill(&cache, n, between(1.5, 20));
	add_falling(&cache, 10 * n, fall, 0.001);
}

/* A leak of a site that is a sawtooth otherwise. */
static void leak_in_teeth(const struct making *m, double n)
{
	leak(m, n);
	sawtooth(m, n / 4);
}

#define KINDS   24
#define LEAKS   15 /* the first kind that is one */
#define PLAIN   LEAKS
#define BURSTS  18
#define UNEVEN  20 /* the first leak that is not even */
#define DAY     20 /* that, and the next one */
#define SITES   23 /* the others are programs, with a site beside */
#define FILLING 7  /* the first of two that slow down */

static const struct {
	const char *name;
	void (*make)(const struct making *m, double n);
} kinds[KINDS] = {
	{"loaded at the start", start},
	{"freed soon", churn},
	{"freed after a quarter of the run, on average", long_lives},
	{"groups that end at once", sessions},
	{"cache that drops its oldest entries", full_cache},
	{"cache that drops any entry", random_cache},
	{"cache that is warm soon", warm_cache},
	{"cache that warms up until the end", filling_cache},
	{"growth with the square root of time", vocabulary},
	{"bursts", bursts},
	{"a table that doubles", doubling},
	{"days and nights", day},
	{"phases that free at their end", phases},
	{"filled and emptied by half", sawtooth},
	{"leak that stops", leak_that_stops},
	{"leak", leak},
	{"leak of one object in many", rare_leak},
	{"leak after a start", leak_after_start},
	{"leak in bursts", leak_in_bursts},
	{"leak that adds 2 to 40 % in a run", slow_leak},
	{"leak by day", leak_by_day},
	{"leak by night, beside one by day", leak_by_night},
	{"leak of what is filled and emptied", leak_in_teeth},
	{"leak beside a cache, while the load falls", leak_while_load_falls},
};

enum { TOGETHER, ALONE, WAYS };
static const char *const ways[] = {"together", "alone"};

struct outcome {
	unsigned int verdicts[WAYS][KINDS][SP_LEAK_LEAK + 1];
	unsigned int covered; /* of the plain leak */
	double *longer;       /* likewise, of each run; 0: it was found */
};

static unsigned int asked; /* SAMPLEPROF_TEST_SEEDS; 0: the short form */
static unsigned int seeds;

/* The verdicts of a program that has these kinds, in their order. */
static void judge(unsigned int from, unsigned int to, double n,
		  unsigned int way, struct outcome *out, unsigned int seed)
{
	static struct sp_stack stacks[KINDS + 1];
	uint32_t rows[KINDS + 1];
	FREED_BY(live_profile_free) struct live_profile live;
	struct sp_leaks *leaks;

	live_profile_init(&live, PERIOD, RUN_NS);
	live.profile.end = SP_PROFILE_END_CLEAN;
	live.profile.stacks = stacks;
	live.profile.n_stacks = to - from + 1;
	for (unsigned int k = from; k < to; k++) {
		rows[k - from] = k - from;
		kinds[k].make(&(struct making){&live, k - from, to - from}, n);
	}
	rows[to - from] = to - from;
	assert_int_equal(sp_leaks_new(&live.profile, rows, to - from + 1,
				      SP_NEVER, SP_NEVER, &leaks, NULL),
			 0);
	for (unsigned int k = from; k < to; k++)
		out->verdicts[way][k][leaks->rows[k - from].verdict]++;
	if (from <= PLAIN && PLAIN < to && way == TOGETHER) {
		const struct sp_leak *row = &leaks->rows[PLAIN - from];
		/* as many windows as are not the start, of all */
		const double truth = n * SIZE /
				     sp_inclusion_probability(SIZE, PERIOD) *
				     (SP_GROWTH_WINDOWS - SP_GROWTH_START) /
				     SP_GROWTH_WINDOWS;

		out->covered +=
			row->bytes.lo <= truth && truth <= row->bytes.hi;
		out->longer[seed] = row->longer;
	}
	sp_leaks_free(leaks);
}

static struct outcome *run_all(double n)
{
	struct outcome *out = calloc(1, sizeof(*out));

	assert_non_null(out);
	seeds = asked ? asked : SEEDS;
	if (n > LONG)
		seeds = seeds * LONG / (unsigned int)n;
	out->longer = calloc(seeds, sizeof(*out->longer));
	assert_non_null(out->longer);
	sp_rng_init(&rng, 20261123, (uint64_t)n);
	for (unsigned int seed = 0; seed < seeds; seed++) {
		judge(0, SITES, n, TOGETHER, out, seed);
		for (unsigned int k = 0; k < KINDS; k++)
			judge(k, k + 1, n, ALONE, out, seed);
	}
	return out;
}

static void free_outcome(struct outcome *out)
{
	free(out->longer);
	free(out);
}

static void print_outcome(double n, const struct outcome *out)
{
	for (int k = 0; k < KINDS; k++)
		for (int w = k < SITES ? TOGETHER : ALONE; w < WAYS; w++) {
			const unsigned int *v = out->verdicts[w][k];

			print_message("| %s | %.0f | %s | %.2f | %.2f | %.2f | "
				      "%.2f |\n",
				      kinds[k].name, n, ways[w],
				      100. * v[SP_LEAK_LEAK] / seeds,
				      100. * v[SP_LEAK_FILLING] / seeds,
				      100. * v[SP_LEAK_STEADY] / seeds,
				      100. * v[SP_LEAK_UNDECIDED] / seeds);
		}
}

/* A mutant is told by a line with an exclamation mark. */
static void expect(bool is_right, const char *what, const char *kind,
		   unsigned int n)
{
	if (is_right)
		return;
	printf("! %s: %s: %u of %u\n", what, kind, n, seeds);
	fflush(stdout);
	fail_msg("%s: %s: %u of %u", what, kind, n, seeds);
}

static void expect_few(const struct outcome *out, int kind,
		       enum sp_leak_verdict verdict, const char *what)
{
	for (int w = 0; w < WAYS; w++) {
		const unsigned int n = out->verdicts[w][kind][verdict];

		expect(!n || sp_special_beta_lower(n, seeds - n + 1.0, FALSE) >=
				       ALPHA,
		       what, kinds[kind].name, n);
	}
}

/* Beside others, of both: by all bytes, for by time alone hardly any is. */
static void expect_found_by_day(const struct outcome *out)
{
	const unsigned int(*v)[SP_LEAK_LEAK + 1] = out->verdicts[TOGETHER];
	const unsigned int n = v[DAY][SP_LEAK_LEAK] + v[DAY + 1][SP_LEAK_LEAK];

	expect(n >= seeds * 8 / 100, "found beside others", kinds[DAY].name, n);
}

TEST(no_false_leaks)
{
	static const double lengths[] = {30, 100, 450, 2000};

	for (int i = 0; i < (asked ? 4 : 3); i++) {
		struct outcome *out = run_all(lengths[i]);

		print_outcome(lengths[i], out);
		for (int k = 0; k < LEAKS; k++)
			expect_few(out, k, SP_LEAK_LEAK, "called a leak");
		/* what grows ever more slowly does grow */
		for (int k = FILLING; i > 1 && k < FILLING + 2; k++)
			expect_few(out, k, SP_LEAK_STEADY,
				   "growth called steady");
		for (int k = LEAKS; i && k < KINDS; k++) {
			expect_few(out, k, SP_LEAK_STEADY,
				   "a leak called steady");
			expect_few(out, k, SP_LEAK_FILLING,
				   "a leak called filling");
		}
		if (i == 2)
			expect_found_by_day(out);
		expect(out->covered >= seeds * 9 / 10, "rates covered", "leak",
		       out->covered);
		free_outcome(out);
	}
}

SP_ORDER(compare_doubles, double, SP_BY((*x > *y) - (*x < *y)));

TEST(found_when_stated)
{
	const double first = 60;
	struct outcome *out = run_all(first);
	double longer;

	print_outcome(first, out);
	qsort(out->longer, seeds, sizeof(*out->longer), compare_doubles);
	longer = out->longer[seeds / 2];
	free_outcome(out);
	print_message("half of the runs want one that is %.2g times as long\n",
		      longer);
	assert_true(longer >= 2 && longer < 20);
	out = run_all(first * longer);
	print_outcome(first * longer, out);
	for (int k = LEAKS; k < UNEVEN; k++)
		for (int w = 0; w < WAYS; w++)
			expect(out->verdicts[w][k][SP_LEAK_LEAK] >=
				       seeds * (k == BURSTS ? 8 : 9) / 10,
			       "leaks found", kinds[k].name,
			       out->verdicts[w][k][SP_LEAK_LEAK]);
	free_outcome(out);
}

int main(int argc, char **argv)
{
	const char *many = getenv("SAMPLEPROF_TEST_SEEDS");

	if (many)
		asked = (unsigned int)strtoul(many, NULL, 10);
	/* of a mutant: what has to reject it */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return TEST_RUN(NULL, NULL);
}
