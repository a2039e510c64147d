/* SPDX-License-Identifier: MIT */
/* Programs under a target of samples per second: see acceptance.c. */
#include "acceptance.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/process/period.h"
#include "many_threads.h"
#include "stats/estimator.h"

#define BASE_BYTES  65536u
#define TARGET      16u
#define SLICE_NS    10000000u
#define THREADS_MAX 64u
#define SAMPLES_MAX 4000u
#define PARTS       2u
/* docs/guide.md: credit, and lead for each e-fold of the period, 32 samples
 * of this target; in seconds. */
#define CREDIT 1.0
#define EFOLD  2.0
#define STEP   (EFOLD * M_LN2 / 4)

/* What a program allocates in a slice of time: bytes per second of each thread,
 * objects of one size, that belong to one of two parts. */
struct load {
	double bytes_per_s;
	unsigned int threads;
	uint64_t size_bytes;
	unsigned int part;
};

typedef unsigned int program(double s, struct load ret[PARTS]);

struct part {
	struct sp_acc acc;
	double truth;
};

struct run {
	struct part parts[PARTS];
	struct part *part; /* of the present slice */
	double times_s[SAMPLES_MAX];
	size_t samples;
	size_t first_of_second, most_per_second;
	bool is_bounded;
};

static const struct sp_law_used law = {.always_large = true};

static void take(void *arg, uint64_t size_bytes, uint64_t offset_bytes,
		 uint64_t period_bytes, uint64_t now_ns)
{
	/* That in force: a thread that has not followed yet has another. */
	const double period = (double)sp_period_law()->period_bytes;
	const double lead = EFOLD * log(period / BASE_BYTES) + 2 * STEP;
	const double now_s = (double)now_ns * 1e-9;
	struct run *r = arg;
	size_t i = r->samples;

	sp_acc_add(&r->part->acc, &law, size_bytes, offset_bytes, period_bytes);
	if (i == SAMPLES_MAX) {
		r->is_bounded = false;
		return;
	}
	r->times_s[r->samples++] = now_s;
	while (r->times_s[r->first_of_second] < now_s - 1)
		r->first_of_second++;
	if (r->samples - r->first_of_second > r->most_per_second)
		r->most_per_second = r->samples - r->first_of_second;
	/* No window that ends here has too many. */
	for (; r->is_bounded && i > 0 && i + 64 > r->samples; i--)
		r->is_bounded =
			(double)(r->samples - i) <=
			1 + TARGET * (now_s - r->times_s[i] + CREDIT + lead);
	r->is_bounded &= (double)r->samples <=
			 1 + TARGET * (now_s - r->times_s[0] + CREDIT + lead);
}

static void allocate_slice(struct run *r, struct worker *workers,
			   const struct load *load, uint64_t from_ns)
{
	const uint64_t n = (uint64_t)(load->bytes_per_s * SLICE_NS * 1e-9 /
				      (double)load->size_bytes);

	r->part = &r->parts[load->part];
	for (unsigned int t = 0; n && t < load->threads; t++) {
		/* One after another: a slice is shorter than what matters. */
		const uint64_t from = from_ns + SLICE_NS / load->threads * t;

		worker_allocate(&workers[t], load->size_bytes, n, from,
				from + SLICE_NS / load->threads, take, r);
		r->part->truth += (double)n * (double)load->size_bytes;
	}
}

static void run_once(struct run *r, program *of, unsigned int seconds,
		     uint64_t seed)
{
	static struct worker workers[THREADS_MAX];

	*r = (struct run){.is_bounded = true};
	for (unsigned int p = 0; p < PARTS; p++)
		sp_acc_init(&r->parts[p].acc, BASE_BYTES);
	workers_begin(BASE_BYTES, TARGET);
	for (unsigned int t = 0; t < THREADS_MAX; t++)
		worker_begin(&workers[t], seed, t + 1);
	for (uint64_t at_ns = 0; at_ns < seconds * 1000000000ull;
	     at_ns += SLICE_NS) {
		struct load loads[PARTS];
		const unsigned int n = of((double)at_ns * 1e-9, loads);

		for (unsigned int i = 0; i < n; i++)
			allocate_slice(r, workers, &loads[i], at_ns);
	}
	for (unsigned int p = 0; p < PARTS; p++)
		if (r->parts[p].acc.period_bytes < workers_longest())
			r->parts[p].acc.period_bytes = workers_longest();
}

/* Mean and standard deviation of runs. */
struct moments {
	double n, sum, squares;
};

static void add_to(struct moments *m, double x)
{
	m->n++;
	m->sum += x;
	m->squares += x * x;
}

static double mean_of(const struct moments *m)
{
	return m->sum / m->n;
}

static double sd_of(const struct moments *m)
{
	const double mean = mean_of(m);

	return sqrt((m->squares - m->n * mean * mean) / (m->n - 1));
}

/* Of the mean against 0. */
static double z_of_mean(const struct moments *m)
{
	return mean_of(m) / sd_of(m) * sqrt(m->n);
}

struct result {
	struct moments error, excess, k2;
	double covered;
};

static void look_at(struct result *of, const struct part *part)
{
	const struct sp_interval i = sp_estimate_bytes_p3(&part->acc, 0.95);
	const double error = part->acc.est_bytes / part->truth - 1;
	const double k2 = part->acc.k2 / part->truth / part->truth;

	add_to(&of->error, error);
	add_to(&of->excess, error * error - k2);
	add_to(&of->k2, k2);
	of->covered += i.lo <= part->truth && part->truth <= i.hi;
}

static void judge(struct statistics *s, const struct result *of,
		  const char *const names[3])
{
	const double n = of->error.n;

	add_z(s, names[0], z_of_mean(&of->error));
	add_z(s, names[1], z_of_mean(&of->excess));
	/* Covering more is no fault. */
	add_z(s, names[2],
	      fmin(0, (of->covered - 0.95 * n) / sqrt(n * 0.95 * 0.05)));
}

/* For the table of docs/measurements.txt. */
static void print_figures(const struct result *of, double rate, double most)
{
	const double sd = sd_of(&of->error);

	printf("   | %.1f | %.0f | %+.2f | %.1f | %.2f | %.1f |\n", rate, most,
	       100 * mean_of(&of->error), 100 * sd, sd / sqrt(mean_of(&of->k2)),
	       100 * of->covered / of->error.n);
}

static void test_program(struct statistics *s, program *of,
			 unsigned int seconds, unsigned int runs)
{
	static const char *const names[PARTS][3] = {
		{"bytes of part 1", "variance of part 1", "coverage of part 1"},
		{"bytes of part 2", "variance of part 2", "coverage of part 2"},
	};
	struct result results[PARTS] = {0};
	bool is_bounded = true, is_calm = true;
	struct moments rate = {0}, most = {0};
	static struct run r;

	for (unsigned int i = 0; i < runs; i++) {
		run_once(&r, of, seconds, i + 1);
		for (unsigned int p = 0; p < PARTS; p++)
			look_at(&results[p], &r.parts[p]);
		is_bounded &= r.is_bounded;
		/* Up and down again takes a step of 5.5 samples. */
		is_calm &= (double)workers_changes() <=
			   (double)r.samples / 2.7 + 60;
		add_to(&rate, (double)r.samples / seconds);
		add_to(&most, (double)r.most_per_second);
	}
	for (unsigned int p = 0; p < PARTS; p++)
		judge(s, &results[p], names[p]);
	add_check(s, "samples of all windows", is_bounded);
	add_check(s, "changes", is_calm);
	if (!getenv("SAMPLEPROF_TEST_FIGURES"))
		return;
	for (unsigned int p = 0; p < PARTS; p++)
		print_figures(&results[p], mean_of(&rate), mean_of(&most));
}

/* ---- the programs ---- */

/* A quiet program, and every 2 s a burst of 50 ms, 500 times as much. */
static unsigned int bursts(double s, struct load ret[PARTS])
{
	ret[0] = (struct load){20e6, 1, 200, 0};
	ret[1] = (struct load){10e9, 1, 4096, 1};
	return fmod(s, 2) < 0.0499 ? 2 : 1;
}

/* From 1 MB/s to 10 GB/s in 20 s: the first and the second half. */
static unsigned int ramp(double s, struct load ret[PARTS])
{
	ret[0] = (struct load){1e6 * pow(10, s / 5), 1, 1000, s >= 10};
	return 1;
}

/* 1, 4, 16, 64 threads and 1 again: up to 16, and the rest. */
static unsigned int storm(double s, struct load ret[PARTS])
{
	static const unsigned int threads[] = {1, 4, 16, 64, 1};
	const unsigned int phase = (unsigned int)(s / 2);

	ret[0] = (struct load){100e6, threads[phase], 512, phase >= 3};
	return 1;
}

/* Fewer samples than the target, a burst, silence; then more again. */
static unsigned int silence(double s, struct load ret[PARTS])
{
	double bytes_per_s = s < 10 ? 0.4e6 : s < 10.5 ? 5e9 : 5e6;

	ret[0] = (struct load){bytes_per_s, 1, 300, s >= 10.5};
	return s < 10.5 || s >= 15;
}

/* Objects of about a third of the period that there will be, and of 4 KiB. */
static unsigned int large(double s, struct load ret[PARTS])
{
	(void)s;
	ret[0] = (struct load){3e9, 1, 30000000, 0};
	ret[1] = (struct load){1e9, 1, 4096, 1};
	return 2;
}

/* Far more than the target, all the time. */
static unsigned int steady(double s, struct load ret[PARTS])
{
	(void)s;
	ret[0] = (struct load){1e9, 2, 1000, 0};
	return 1;
}

/* Of samples in the second half of a run. */
static double late_rate(const struct run *r, unsigned int seconds)
{
	const double half_s = seconds / 2.0;
	size_t n = 0;

	for (size_t i = 0; i < r->samples; i++)
		n += r->times_s[i] >= WORKERS_START_NS * 1e-9 + half_s;
	return (double)n / half_s;
}

void test_steady(struct statistics *s)
{
	struct moments rate = {0};
	static struct run r;

	for (unsigned int i = 0; i < 300; i++) {
		run_once(&r, steady, 60, i + 1);
		add_to(&rate, late_rate(&r, 60));
	}
	add_check(s, "settles at the target",
		  fabs(mean_of(&rate) / TARGET - 1) < 0.02);
	add_check(s, "and stays there", sd_of(&rate) / TARGET < 0.1);
	if (getenv("SAMPLEPROF_TEST_FIGURES"))
		printf("   %.2f samples/s, SD %.2f\n", mean_of(&rate),
		       sd_of(&rate));
}

void test_bursts(struct statistics *s)
{
	test_program(s, bursts, 20, 1000);
}

void test_ramp(struct statistics *s)
{
	test_program(s, ramp, 20, 500);
}

void test_storm(struct statistics *s)
{
	test_program(s, storm, 10, 500);
}

void test_silence(struct statistics *s)
{
	test_program(s, silence, 20, 1000);
}

void test_large(struct statistics *s)
{
	test_program(s, large, 20, 500);
}
