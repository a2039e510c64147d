/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The acceptance of the sampling law: tests of many random numbers, each with
 * a handful of statistics that are standard normal if the law is as documented.
 */
#define Z_MAX 5.0
/* Something that may not differ at all does. */
#define Z_NEVER 1e6

#define STATISTICS_MAX 24

struct statistics {
	struct {
		const char *name;
		double z;
	} of[STATISTICS_MAX];
	int n;
};

void add_z(struct statistics *s, const char *name, double z);
/* One that is as good as exact. */
void add_check(struct statistics *s, const char *name, int holds);

/* A sum, its expectation and variance. */
struct sum {
	double got, want, variance;
};

/* The sum over n objects of `value / pi` for those sampled, each with
 * probability pi. */
void expect(struct sum *s, double value, double n, double pi);
/* A sum that has no variance must be right to 1e-12. */
double z_of(const struct sum *s);

/* Under the exponential law and objects of ceil(R ln 100) and more always. */
double inclusion(double size_bytes, double period_bytes);

/* The tests, in acceptance_law.c, acceptance_objects.c, acceptance_adaptive.c.
 */
void test_gaps(struct statistics *s);
void test_uniforms(struct statistics *s);
void test_periods(struct statistics *s);
void test_threads(struct statistics *s);
void test_objects(struct statistics *s);
void test_events(struct statistics *s);
void test_dotnet(struct statistics *s);
void test_coverage(struct statistics *s);
void test_bursts(struct statistics *s);
void test_ramp(struct statistics *s);
void test_storm(struct statistics *s);
void test_silence(struct statistics *s);
void test_large(struct statistics *s);
void test_steady(struct statistics *s);
