/* SPDX-License-Identifier: MIT */
/* What is sampled, and what the estimates make of it. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "acceptance.h"
#include "agent/thread/sampler.h"
#include "one_thread.h"
#include "stats/estimate.h"
#include "stats/size_class_sums.h"

#define OBJECTS     8000000
#define SIZES       8
#define PERIOD      256
#define REPLICATES  2000
#define COVERED_MIN 1851

/* ceil(256 ln 100) = 1179 and more are always sampled. */
static const uint64_t sizes[SIZES] = {8, 24, 64, 100, 256, 512, 1178, 1179};

/* Offset of the hit byte, given a hit: geometric, cut at the size. */
static void expect_offset(struct sum *s, double hits, double size)
{
	const double p = -expm1(-1.0 / PERIOD), q = 1 - p;
	const double qz = exp(-size / PERIOD);
	const double mean = q / p - size * qz / (1 - qz);
	const double variance =
		q / (p * p) - size * size * qz / ((1 - qz) * (1 - qz));

	s->want += hits * mean;
	s->variance += hits * variance;
}

static void allocate_objects(bool each_an_event, struct sp_acc *acc, double *n,
			     struct sum *offset, bool *ret_bytes_right)
{
	const struct sp_law_used used = {.always_large = true};
	struct sp_rng order;
	struct sp_law law;
	uint64_t bytes = 0;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, PERIOD);
	thread_begin(&law, each_an_event ? 108 : 102, 1);
	if (each_an_event)
		thread_ends();
	sp_rng_init(&order, 103, each_an_event);
	for (int i = 0; i < OBJECTS; i++) {
		const unsigned int k = sp_rng_next(&order) >> 61;
		uint64_t at = 0;

		n[k]++;
		bytes += sizes[k];
		if (!thread_allocate(sizes[k], &at))
			continue;
		sp_acc_add(&acc[k], &used, sizes[k], at, PERIOD);
		offset->got += (double)at;
	}
	*ret_bytes_right = bytes == thread_bytes();
}

static void check_objects(struct statistics *s, bool each_an_event)
{
	static const char *const names[SIZES] = {
		"bytes in objects of 8",    "bytes in objects of 24",
		"bytes in objects of 64",   "bytes in objects of 100",
		"bytes in objects of 256",  "bytes in objects of 512",
		"bytes in objects of 1178", "bytes in objects of 1179"};
	struct sum all = {0, 0, 0}, count = all, offset = all;
	double n[SIZES] = {0};
	struct sp_acc acc[SIZES];
	bool bytes_right;

	for (int k = 0; k < SIZES; k++)
		sp_acc_init(&acc[k], PERIOD);
	allocate_objects(each_an_event, acc, n, &offset, &bytes_right);
	for (int k = 0; k < SIZES; k++) {
		const double size = (double)sizes[k];
		const double pi = inclusion(size, PERIOD);
		struct sum one = {acc[k].est_bytes, 0, 0};

		expect(&one, size, n[k], pi);
		add_z(s, names[k], z_of(&one));
		all.got += acc[k].est_bytes;
		count.got += acc[k].est_count;
		expect(&all, size, n[k], pi);
		expect(&count, 1, n[k], pi);
		if (pi < 1)
			expect_offset(&offset, (double)acc[k].samples, size);
	}
	add_z(s, "bytes", z_of(&all));
	add_z(s, "objects", z_of(&count));
	add_z(s, "offset of the hit byte", z_of(&offset));
	add_check(s, "exact bytes", bytes_right);
}

void test_objects(struct statistics *s)
{
	check_objects(s, false);
}

void test_events(struct statistics *s)
{
	check_objects(s, true);
}

/* ---- .NET's law ---- */

/* A short period, where 1 - 1/R and exp(-1/R) are far apart. */
#define DOTNET_PERIOD  16
#define DOTNET_OBJECTS 2000000

void test_dotnet(struct statistics *s)
{
	static const uint64_t of[4] = {1, 5, 20, 60};
	static const char *const names[4] = {
		"bytes in objects of 1", "bytes in objects of 5",
		"bytes in objects of 20", "bytes in objects of 60"};
	const struct sp_law_used used = {true, true};
	struct sp_acc acc[4];
	double n[4] = {0};
	struct sp_rng order;
	struct sp_law law;

	sp_law_init(&law, SP_LAW_DOTNET, DOTNET_PERIOD);
	thread_begin(&law, 109, 1);
	sp_rng_init(&order, 110, 1);
	for (int k = 0; k < 4; k++)
		sp_acc_init(&acc[k], DOTNET_PERIOD);
	for (int i = 0; i < DOTNET_OBJECTS; i++) {
		const unsigned int k = sp_rng_next(&order) >> 62;
		uint64_t at;

		n[k]++;
		if (thread_allocate(of[k], &at))
			sp_acc_add(&acc[k], &used, of[k], at, DOTNET_PERIOD);
	}
	for (int k = 0; k < 4; k++) {
		const double size = (double)of[k];
		struct sum one = {acc[k].est_bytes, 0, 0};

		expect(&one, size, n[k],
		       1 - pow(1 - 1.0 / DOTNET_PERIOD, size));
		add_z(s, names[k], z_of(&one));
	}
}

/* ---- intervals ---- */

/* A program with its small and its large objects in turns. */
static double run_program(const struct sp_law *law, uint32_t run,
			  struct sp_class_sums *sums)
{
	static const uint64_t mixed[8] = {16, 16, 100, 16, 48, 900, 16, 1500};
	const struct sp_law_used used = {.always_large = true};
	double bytes = 0;

	thread_begin(law, 111, run);
	for (int i = 0; i < 60; i++) {
		const uint64_t size = mixed[i % 8];
		uint64_t at;

		bytes += (double)size;
		if (thread_allocate(size, &at) &&
		    sp_class_sums_add(sums, &used, size, at, law->period_bytes))
			return NAN;
	}
	return bytes;
}

void test_coverage(struct statistics *s)
{
	const struct sp_estimation how = {SP_METHOD_P3, 0.95, NULL, 0};
	struct sp_law law;
	int covered = 0;

	sp_law_init(&law, SP_LAW_EXPONENTIAL, PERIOD);
	for (uint32_t run = 1; run <= REPLICATES; run++) {
		struct sp_interval in;
		struct sp_class_sums sums;
		double bytes;

		sp_class_sums_init(&sums, PERIOD);
		bytes = run_program(&law, run, &sums);
		in = sp_estimate_bytes(&how, &sums);
		covered += in.lo <= bytes && bytes <= in.hi;
		sp_class_sums_free(&sums);
	}
	add_check(s, "covered", covered >= COVERED_MIN);
}
