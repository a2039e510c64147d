/* SPDX-License-Identifier: MIT */
/*
 * What `check` claims: false alarms, power; noise between runs that is ignored
 * is noticed; noise with tails. False alarm: 1e-4; 9 s.
 *
 * Claims.  Of programs that did not change, the check calls at most 1 in 200 a
 * regression by one limit on an estimate, and 1 in 100 by a limit on each
 * function (E27 to E31), with one run on each side and a program that always
 * does the same, and with five runs on each side and a program that does not.
 * A growth that the check says it would find with 95 % is found as often (E32),
 * a new function of that size too, and with the variance that is said to be
 * needed no change is seen to be none (E33).  Of the functions that a diff says
 * changed, at most 1 in 20 did not on average (E31), when functions that could
 * not be found with the samples that they have are not counted as tests; and
 * more of those that did change are found than if they were.
 *
 * H0, for each kind of program: the rate of false alarms is p0 = 0.005, or
 * 0.01; the rate of detection is 0.95.  Limits allow no growth at all (+0%),
 * which is where an unchanged program is closest to a false alarm.
 *
 * Statistics, from n = PAIRS pairs of simulated recordings with fixed seeds,
 * through the agent's own sampler: the number of regressions, binomial(n, p0)
 * at worst; the number of detections, binomial(n, 0.95) but for 0.02 that the
 * normal approximation of (E32) may be off.
 *
 * n is 300 at night, which is what mutants are held against, and 100 each time.
 *
 * alpha: for n = 300 more than 10 of 0.005 has probability 1e-6, more than 14
 * of 0.01 7e-7, fewer than 258 of 0.93 1e-5; the 40 statistics make 1e-4.  Long
 * form: SAMPLEPROF_TEST_PAIRS=20000, with bounds at the same z.
 *
 * The share of false discoveries, a mean over n pairs, is allowed 4.8 standard
 * errors above 0.05: alpha 8e-7.  Its negative control takes every p-value up
 * to 0.05 for a discovery, and has to be found out.
 *
 * Power: a rate of false alarms of 0.12 instead of 0.01 is rejected with
 * probability 1 - 2e-5, detection of 0.75 instead of 0.95 with 1 - 1e-5; the
 * long form tells 0.015 from 0.01, and 0.91 from 0.95.  For n = 100 it is 0.2
 * and 0.65, with 0.999.
 *
 * Negative control: runs of a program with noise, taken for one long run on
 * each side, so that the noise is not seen, must raise false alarms.
 */
#include <math.h>

#include "compare/check.h"
#include "one_thread.h"
#include "support/draw.h"
#include "support/gate_runs.h"
#include "support/test.h"

#define R     4096u
#define SITES 60
#define RUNS  5

static unsigned int pairs;
static bool is_long; /* that was asked for: rows of measurements.txt */

/* What a program does: objects of each function, of one size each. */
struct program {
	unsigned int count[SITES];
	uint64_t size_bytes[SITES];
	double noise; /* relative standard deviation of each count, per run */
	double tail;  /* of every tenth function, of the logarithm: heavy */
};

/* Shares fall as 1/rank, sizes go from 64 bytes to two periods. */
static struct program zipf(double samples, double noise)
{
	static const uint64_t sizes[] = {64, 128, 512, 1024, R / 2, 2 * R};
	struct program p = {.noise = noise};
	double sum = 0;

	for (unsigned int i = 0; i < SITES; i++)
		sum += 1.0 / (i + 1);
	for (unsigned int i = 0; i < SITES; i++) {
		p.size_bytes[i] = sizes[i % 6];
		p.count[i] = (unsigned int)(samples * R / sum / (i + 1) /
					    (double)sizes[i % 6]);
	}
	return p;
}

static struct sp_rng rng;

/* One recording of the program; a new seed each time.  Returns what it
 * allocated. */
static uint64_t record(const struct program *p, struct sp_acc *accs)
{
	uint64_t bytes = 0;
	static const struct sp_law_used used = {.always_large = true};
	static uint64_t seed;
	struct sp_law law;
	uint64_t offset;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, R);
	thread_begin(&law, ++seed, 1);
	for (unsigned int i = 0; i < SITES; i++) {
		const double noise =
			p->tail > 0 && i % 10 == 4 ? p->tail : p->noise;
		double n = p->count[i];

		sp_acc_init(&accs[i], R);
		if (noise > 0)
			n *= exp(noise * draw_normal(&rng) - noise * noise / 2);
		bytes += (uint64_t)nearbyint(n) * p->size_bytes[i];
		for (unsigned int k = 0; k < (unsigned int)nearbyint(n); k++)
			if (thread_allocate(p->size_bytes[i], &offset))
				sp_acc_add(&accs[i], &used, p->size_bytes[i],
					   offset, R);
	}
	return bytes;
}

static struct sp_summary *summary_of(const struct sp_acc *accs,
				     struct sp_paths *paths)
{
	struct sp_summary *run = gate_run_new(R);
	char name[32];

	for (unsigned int i = 0; i < SITES; i++) {
		snprintf(name, sizeof(name), "site%u<main", i);
		gate_run_add(run, paths, SP_VIEW_ALLOC, name, &accs[i]);
	}
	return run;
}

/* A side of n recordings, or of one that is all of them together. */
static void make_side(const struct program *p, unsigned int n, bool as_one,
		      struct sp_paths *paths, struct sp_side *side,
		      struct sp_summary **runs)
{
	struct sp_acc sum[SITES], accs[SITES];

	for (unsigned int i = 0; i < n; i++) {
		const uint64_t bytes = record(p, accs);

		if (!as_one) {
			runs[i] = summary_of(accs, paths);
			runs[i]->exact_alloc_bytes = bytes;
		}
		for (unsigned int k = 0; k < SITES; k++) {
			if (!i)
				sum[k] = accs[k];
			else
				sp_acc_merge(&sum[k], &accs[k]);
		}
	}
	if (as_one)
		runs[0] = summary_of(sum, paths);
	*side = (struct sp_side){runs, as_one ? 1 : n};
}

struct experiment {
	const struct program *old, *new;
	unsigned int runs;     /* on each side */
	unsigned int new_runs; /* in new, if not 0 */
	bool as_one;
	const char *limits[3]; /* up to the first NULL */
	/* results: verdicts of each limit */
	unsigned int regressions[3], passes[3];
	double detectable[3], new_bytes; /* means of what was said */
};

static void one_pair(struct experiment *e, const struct sp_limits *limits)
{
	struct sp_summary *old[RUNS], *new[RUNS];
	FREED_BY(sp_paths_done) struct sp_paths paths = {0};
	struct sp_pair pair = {.paths = &paths};
	struct sp_check *check;
	struct sp_error err;

	make_side(e->old, e->runs, e->as_one, &paths, &pair.old, old);
	make_side(e->new, e->new_runs ? e->new_runs : e->runs, e->as_one,
		  &paths, &pair.new, new);
	assert_int_equal(sp_check_new(&pair, limits, false, &check, &err), 0);
	for (size_t i = 0; i < check->n_findings; i++) {
		const struct sp_finding *f = &check->findings[i];

		e->regressions[i] += f->verdict == SP_VERDICT_REGRESSION;
		e->passes[i] += f->verdict == SP_VERDICT_PASS;
		e->detectable[i] += f->detectable / pairs;
		if (f->n_tests)
			e->new_bytes += f->new_site_bytes / pairs;
	}
	sp_check_free(check);
	for (size_t i = 0; i < pair.old.n; i++)
		sp_summary_free(old[i]);
	for (size_t i = 0; i < pair.new.n; i++)
		sp_summary_free(new[i]);
}

static void run(struct experiment *e)
{
	FREED_BY(sp_limits_done) struct sp_limits limits = {0};
	struct sp_error err;

	for (int i = 0; i < 3 && e->limits[i]; i++)
		assert_int_equal(sp_limits_add(&limits, e->limits[i], &err), 0);
	for (unsigned int i = 0; i < pairs; i++)
		one_pair(e, &limits);
}

/* n p0 and 4.8 standard deviations, and 3 for the skewness of rare ones. */
static unsigned int most_of(double p0)
{
	return (unsigned int)(pairs * p0 + 4.8 * sqrt(pairs * p0) + 3);
}

static void assert_alarms(const char *what, unsigned int count, double p0)
{
	print_message("%s: %u alarms in %u pairs, at most %.1f expected\n",
		      what, count, pairs, pairs * p0);
	if (count > most_of(p0))
		printf("! %s\n", what);
	assert_true(count <= most_of(p0));
}

static void assert_found(const char *what, unsigned int count)
{
	print_message("%s: found in %u of %u pairs\n", what, count, pairs);
	assert_true(count >= 0.93 * pairs - 4.5 * sqrt(pairs * 0.07));
}

TEST(nothing_changed)
{
	static const double samples[] = {30, 300, 3000};

	for (int i = 0; i < 3; i++) {
		const struct program p = zipf(samples[i], 0);
		struct experiment e = {.old = &p,
				       .new = &p,
				       .runs = 1,
				       .as_one = false,
				       .limits = {"sites=+0%",
						  "site(^site0$)=+0%",
						  "sites=+-0%"}};
		char what[64];

		run(&e);
		snprintf(what, sizeof(what), "%g samples", samples[i]);
		assert_alarms(what, e.regressions[0], 0.01);
		assert_alarms("  one function", e.regressions[1], 0.005);
		assert_alarms("  both ways", e.regressions[2], 0.01);
	}
}

TEST(nothing_but_noise)
{
	const struct program p = zipf(1500, 0.1);
	struct experiment e = {.old = &p,
			       .new = &p,
			       .runs = RUNS,
			       .as_one = false,
			       .limits = {"sites=+0%", "site(^site0$)=+0%",
					  "site(^site[1-9]$)=+-0%"}};
	struct experiment blind = {
		.old = &p,
		.new = &p,
		.runs = RUNS,
		.as_one = true,
		.limits = {"sites=+0%", "site(^site0$)=+0%"}};

	run(&e);
	assert_alarms("noise of 10 %", e.regressions[0], 0.01);
	assert_alarms("  one function", e.regressions[1], 0.005);
	assert_alarms("  nine functions", e.regressions[2], 0.01);
	run(&blind);
	print_message("noise that is not looked at: %u, %u alarms\n",
		      blind.regressions[0], blind.regressions[1]);
	assert_true(blind.regressions[0] > most_of(0.01));
	assert_true(blind.regressions[1] > most_of(0.005));
}

/* Noise with heavy tails, in a tenth of the functions more than in the others:
 * one run says nothing of a tail, and runs without a sample nothing of noise.
 */
TEST(unlike_noise)
{
	static const unsigned int runs[][2] = {{1, 1}, {3, 1}, {5, 1}, {5, 5}};

	for (int i = 0; i < 4; i++) {
		struct program p = zipf(1000, 0.6);
		struct experiment e = {.old = &p,
				       .new = &p,
				       .runs = runs[i][0],
				       .new_runs = runs[i][1],
				       .as_one = false,
				       .limits = {"sites=+0%",
						  "site(^site4$)=+0%",
						  "alloc_bytes=+0%"}};
		char what[64];

		/* between single runs noise is not seen, whatever it is */
		p.tail = 1.2;
		if (i == 0)
			p.noise = p.tail = 0;
		run(&e);
		snprintf(what, sizeof(what), "unlike noise, %u runs and %u",
			 runs[i][0], runs[i][1]);
		assert_alarms(what, e.regressions[0], 0.01);
		assert_alarms("  one function", e.regressions[1], 0.005);
		assert_alarms("  alloc_bytes", e.regressions[2], 0.005);
	}
}

/* Noise that is alike is learnt from all: a function that doubles is found.
 * Noise that is not, and fewer runs, hide it; measurements.txt says how much.
 */
TEST(power_with_noise)
{
	static const double noises[][2] = {{0.05, 0}, {0.2, 0}, {0.6, 1.2}};

	for (int i = is_long ? 0 : 2; i < (is_long ? 9 : 3); i++) {
		const double *noise = noises[i / 3];
		struct program old = zipf(6000, noise[0]), new;
		struct experiment e = {.old = &old,
				       .new = &new,
				       .runs = i % 3 ? RUNS : 3,
				       .new_runs = i % 3 < 2 ? 1 : RUNS,
				       .as_one = false,
				       .limits = {"sites=+10%"}};

		old.tail = noise[1];
		new = old;
		new.count[3] *= 2;
		run(&e);
		print_message("noise of %g %%, one function doubled, %u runs "
			      "and %u: found in %u of %u pairs\n",
			      100 * noise[0], e.runs, e.new_runs,
			      e.regressions[0], pairs);
		if (i == 2)
			assert_found("  sites=+10%", e.regressions[0]);
	}
}

/* What is found with 95 % is found with 95 %. */
TEST(power)
{
	struct program old = zipf(3000, 0), new = old;
	struct experiment told = {.old = &old,
				  .new = &old,
				  .runs = 1,
				  .as_one = false,
				  .limits = {"site(^site0$)=+5%", "sites=+5%"}};
	struct experiment grown = {.old = &old,
				   .new = &new,
				   .runs = 1,
				   .as_one = false,
				   .limits = {"site(^site0$)=+5%"}};
	struct experiment appeared = {.old = &old,
				      .new = &new,
				      .runs = 1,
				      .as_one = false,
				      .limits = {"sites=+5%"}};

	run(&told);
	new.count[0] = (unsigned int)(old.count[0] * (1 + told.detectable[0]));
	run(&grown);
	print_message("growth of %.1f %% in one function\n",
		      100 * told.detectable[0]);
	assert_found("  site(^site0$)=+5%", grown.regressions[0]);
	/* a new function in the place of the smallest */
	new = old;
	old.count[SITES - 1] = 0;
	new.size_bytes[SITES - 1] = 64;
	new.count[SITES - 1] = (unsigned int)(told.new_bytes / 64);
	run(&appeared);
	print_message("a new function of %.1f periods\n", told.new_bytes / R);
	assert_found("  sites=+5%", appeared.regressions[0]);
}

/* With as many samples as are said to be needed, no change is none. */
TEST(samples_needed)
{
	const double needed =
		1 / sp_variance_needed(0.2, SP_SUMMARY_LEVEL, SP_CHECK_POWER);
	struct program p = {.size_bytes[0] = 64,
			    .count[0] = (unsigned int)(needed * R / 64)};
	struct experiment e = {.old = &p,
			       .new = &p,
			       .runs = 1,
			       .as_one = false,
			       .limits = {"site(^site0$)=+20%"}};

	run(&e);
	print_message("%.0f samples for +20%%\n", needed);
	assert_found("  seen to be no change", e.passes[0]);
}

/* One doubles while another halves: what grew is found, and nothing else. */
TEST(one_for_another)
{
	const struct program old = zipf(6000, 0);
	struct program new = old;
	struct experiment e = {.old = &old,
			       .new = &new,
			       .runs = 1,
			       .as_one = false,
			       .limits = {"site(^site2$)=+50%",
					  "site(^site0$)=+0%", "sites=+50%"}};

	new.count[2] *= 2;
	new.count[1] /= 2;
	run(&e);
	assert_found("one doubled", e.regressions[0]);
	assert_alarms("  another did not", e.regressions[1], 0.005);
	assert_found("  and one by one", e.regressions[2]);
}

/* ---- false discoveries ---- */

#define CHANGED 20

struct found {
	double false_share; /* of what is found; sums over the pairs, here */
	double squares;     /* and here of its squares */
	unsigned int right;
	unsigned int changed; /* of those that have samples */
};

/* Which functions are found with that threshold. */
static void look(const struct sp_match_row *rows, const double *p, size_t n,
		 double threshold, const struct sp_paths *paths,
		 struct found *ret)
{
	unsigned int found = 0, wrong = 0;
	double share;

	for (size_t i = 0; i < n; i++) {
		const int site = atoi(sp_paths_name(paths, rows[i].key) + 4);
		const bool is_changed = site % CHANGED == 4;

		ret->changed += is_changed;
		if (p[i] > threshold)
			continue;
		found++;
		wrong += !is_changed;
		ret->right += is_changed;
	}
	share = found ? (double)wrong / found : 0;
	ret->false_share += share;
	ret->squares += share * share;
}

/* Is the mean share above the rate by more than chance allows? */
static bool is_too_many(const struct found *f, double rate)
{
	const double mean = f->false_share / pairs;
	const double var = f->squares / pairs - mean * mean;

	return mean > rate + 4.8 * sqrt(var / pairs);
}

enum { TESTABLE, ALL, NO_E31, KINDS };

static void one_discovery(const struct program *old_program,
			  const struct program *new_program,
			  struct found found[KINDS])
{
	static const struct sp_match_of of = {.table = SP_VIEW_ALLOC};
	const struct sp_match_test test = {.both_ways = true, .rate = 0.05};
	const struct sp_run_noise noise = {0};
	struct sp_summary *old, *new;
	FREED_BY(sp_paths_done) struct sp_paths paths = {0};
	struct sp_pair pair = {.paths = &paths};
	FREED struct sp_match_row *rows;
	FREED_BY(sp_keys_done) struct sp_keys keys;
	size_t n, n_tested;
	double p[SITES], threshold;

	make_side(old_program, 1, false, &paths, &pair.old, &old);
	make_side(new_program, 1, false, &paths, &pair.new, &new);
	assert_int_equal(sp_keys_flat(&paths, NULL, &keys), 0);
	assert_int_equal(sp_match_new(&pair, &of, &keys, NULL, &rows, &n), 0);
	assert_int_equal(
		sp_match_test(rows, n, &test, &noise, p, &threshold, &n_tested),
		0);
	look(rows, p, n, threshold, &paths, &found[TESTABLE]);
	assert_int_equal(sp_false_discovery(p, n, test.rate, &threshold), 0);
	look(rows, p, n, threshold, &paths, &found[ALL]);
	look(rows, p, n, test.rate, &paths, &found[NO_E31]);
	sp_summary_free(old);
	sp_summary_free(new);
}

/* Every twentieth function has four times as much, and four periods more. */
TEST(false_discoveries)
{
	static const double samples[] = {150, 600};

	for (int i = 0; i < 2; i++) {
		const struct program old = zipf(samples[i], 0);
		struct found found[KINDS] = {0};
		struct program new = old;

		for (unsigned int k = 4; k < SITES; k += CHANGED)
			new.count[k] =
				4 * old.count[k] +
				(unsigned int)(4 * R / old.size_bytes[k]);
		for (unsigned int pair = 0; pair < pairs; pair++)
			one_discovery(&old, &new, found);
		for (int k = 0; k < KINDS; k++)
			print_message(
				"%g samples, %s: of the functions found "
				"%.2f %% did not change, %.1f %% of those "
				"that did were found\n",
				samples[i],
				k == TESTABLE ? "as it is"
				: k == ALL    ? "all rows as tests"
					      : "without E31",
				100 * found[k].false_share / pairs,
				100.0 * found[k].right / found[k].changed);
		assert_false(is_too_many(&found[TESTABLE], 0.05));
		assert_true(found[TESTABLE].right > found[ALL].right);
		/* few samples make p-values that are too large: little to see
		 */
		assert_true(!i || is_too_many(&found[NO_E31], 0.05));
	}
}

int main(int argc, char **argv)
{
	const char *asked = getenv("SAMPLEPROF_TEST_PAIRS");

	pairs = test_rounds(100, 300);
	if (asked && atoi(asked) > 0) {
		pairs = (unsigned int)atoi(asked);
		is_long = true;
	}
	sp_rng_init(&rng, 20261121, 0);
	/* of a mutant: what has to reject it */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return TEST_RUN(NULL, NULL);
}
