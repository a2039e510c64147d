/* SPDX-License-Identifier: MIT */
/*
 * The sampling law: the agent's own charge, sampler, random numbers and rate,
 * and the weights: 34 statistics of 2.6e7 gaps and objects, 40 of programs
 * under a target of samples per second, z at most 5. False alarm: 4e-5; 2 s.
 *
 * acceptance [TEST...]: is the sampling law what docs/statistics.md says?
 *
 * Claims.  Gaps are floor(E R), E exponential (E1); an object of z bytes is
 * sampled with probability pi = 1 - exp(-z / R) independently of all others,
 * with certainty from ceil(R ln 100) on (E2); sums of z / pi and 1 / pi over
 * the samples are unbiased (E3), whatever is allocated in which order, in
 * however many threads, and when the period changes; 95 % intervals contain the
 * truth (E8).  .NET's law likewise, with 1 - (1 - 1/R)^z.
 *
 * H0: the claims.  The code under test is the agent's: the charge of thread.h,
 * sampler.c and rng.c, and sp_acc_add() of the estimator.  Seeds are fixed.
 * Statistics, each standardised with the exact variance under H0:
 *
 *   gaps      R = 256, n = 4e6: mean, variance, lag-1 correlation, chi-squared
 *             over 64 intervals of exactly known probability (z by Wilson and
 *             Hilferty)
 *   uniforms  R = 2^40, n = 2^15: the number of pairs of equal gaps, which is
 *             Poisson(n^2 / 4R); more than one has probability 3e-8
 *   objects   R = 256, n = 8e6 objects of eight sizes from 8 to 1179 bytes (the
 *             shortest that is always sampled) with check-ins every 4 KiB:
 *             weighted bytes of each size and of all, weighted number, mean
 *             offset of the hit byte; counted bytes are exact
 *   events    the same, each allocation an event
 *   periods   R = 128 and 512 in turns of 4 KiB, 4e6 objects: weighted bytes of
 *             the phases of each period
 *   threads   R = 4096, 4e5 threads with neighbouring numbers, each with one
 *             object of 512 bytes: hits, correlation of neighbours
 *   dotnet    R = 16, n = 2e6 objects of four sizes: weighted bytes of each
 *   bursts, ramp, storm, silence, large
 *             programs of acceptance_adaptive.c under a target of 16 samples/s
 *             from R = 64 KiB on, 500 or 1000 runs each; of two parts of what
 *             they allocate: weighted bytes, squared error less K2, intervals
 *             that cover (none of them too few); the samples of all windows of
 *             time and the number of changes are within docs/guide.md's
 *             bounds, which hold for certain
 *   steady    1 GB/s for 60 s: samples per second of the second half, mean of
 *             300 runs within 2 % of the target (their standard error is 0.3 %
 *             at most), and their deviation
 *   coverage  R = 256, 2000 programs of 60 objects: at least 1851 intervals
 *             cover (P < 1e-6 at 95 %)
 *
 * alpha: |z| <= 5 is missed with probability 5.7e-7 by each of 64 statistics
 * under H0: 4e-5 with the rest for a fresh seed, and 0 for those below.  Those
 * of the programs under a target have variances that are estimated, from 500
 * runs or more.
 *
 * Power: a rate that is off by 0.5 % is rejected by "gaps" with probability
 * above 0.9999 (z = 10), in "objects" above 0.99; a coverage of 0.90 by
 * "coverage" above 0.9999; a bias of 1 % in part 2 of "bursts" above 0.5, of
 * 2 % above 0.9999.  tests/statistics/mutants.py lists wrong implementations,
 * each of which is compiled and must be rejected.
 */
#include "acceptance.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	void (*run)(struct statistics *s);
	int n;
} tests[] = {
	{"gaps", test_gaps, 4},        {"uniforms", test_uniforms, 1},
	{"objects", test_objects, 12}, {"events", test_events, 12},
	{"periods", test_periods, 2},  {"threads", test_threads, 2},
	{"dotnet", test_dotnet, 4},    {"coverage", test_coverage, 1},
	{"bursts", test_bursts, 8},    {"ramp", test_ramp, 8},
	{"storm", test_storm, 8},      {"silence", test_silence, 8},
	{"large", test_large, 8},      {"steady", test_steady, 2},
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

void add_z(struct statistics *s, const char *name, double z)
{
	s->of[s->n].name = name;
	s->of[s->n++].z = z;
}

void add_check(struct statistics *s, const char *name, int holds)
{
	add_z(s, name, holds ? 0 : Z_NEVER);
}

void expect(struct sum *s, double value, double n, double pi)
{
	s->want += value * n;
	s->variance += value * value * n * (1 - pi) / pi;
}

double z_of(const struct sum *s)
{
	const double d = s->got - s->want;

	if (!(s->variance > 0))
		return fabs(d) <= 1e-12 * s->want ? 0 : Z_NEVER;
	return d / sqrt(s->variance);
}

double inclusion(double size_bytes, double period_bytes)
{
	if (size_bytes >= ceil(period_bytes * log(100)))
		return 1;
	return -expm1(-size_bytes / period_bytes);
}

/* False if a statistic rejects, or one is missing. */
static bool run(size_t which)
{
	struct statistics s = {.n = 0};
	bool holds;

	tests[which].run(&s);
	holds = s.n == tests[which].n;
	for (int i = 0; i < s.n; i++) {
		const bool in = fabs(s.of[i].z) <= Z_MAX;

		printf("%s %-9s %-26s z = %.2f\n", in ? "  " : "! ",
		       tests[which].name, s.of[i].name, s.of[i].z);
		holds &= in;
	}
	return holds;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return argc == 1;
}

/* 0 accepted, 1 rejected, 2 no such test. */
int main(int argc, char **argv)
{
	bool accepted = true;
	int n = 0;

	for (size_t i = 0; i < TESTS; i++) {
		if (!is_wanted(tests[i].name, argc, argv))
			continue;
		n++;
		accepted &= run(i);
	}
	if (n == 0 || (argc > 1 && n != argc - 1))
		return 2;
	return accepted ? 0 : 1;
}
