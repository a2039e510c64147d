/* SPDX-License-Identifier: MIT */
#include "lab/workload.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lab/random.h"

#define SECOND 1000000000ull
#define LENGTH (10 * SECOND)
#define KIB    1024.0
#define MIB    (1024 * KIB)

static int set_sites(struct sp_lab_trace *trace, const char *const *names,
		     uint32_t n, uint32_t focus)
{
	trace->sites = calloc(n, sizeof(*trace->sites));
	if (!trace->sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		trace->sites[i] = names[i];
	trace->n_sites = n;
	trace->n_threads = 1;
	trace->focus = focus;
	return 0;
}

#define SITES(trace, names, focus)                                             \
	set_sites(trace, names, sizeof(names) / sizeof(*(names)), focus)

/* A number 0..n-1 with probabilities falling as 1 / (number + 1). */
static uint32_t ranked_site(struct sp_rng *rng, uint32_t n)
{
	double sum = 0, u;

	for (uint32_t i = 0; i < n; i++)
		sum += 1.0 / (i + 1);
	u = sp_lab_uniform(rng) * sum;
	for (uint32_t i = 0; i < n; i++) {
		u -= 1.0 / (i + 1);
		if (u < 0)
			return i;
	}
	return n - 1;
}

static double log_uniform(struct sp_rng *rng, double low, double high)
{
	return low * pow(high / low, sp_lab_uniform(rng));
}

/* At an even pace: allocation i of n. */
static uint64_t paced_time(size_t i, size_t n)
{
	return (uint64_t)((double)i / (double)n * (double)LENGTH);
}

/* ---- small objects, one size for each site ---- */

static int make_small(struct sp_lab_trace *trace, uint64_t samples,
		      struct sp_rng *rng)
{
	static const char *const names[] = {"node",   "edge",  "token",
					    "string", "event", "cursor",
					    "lease",  "timer"};
	static const uint32_t sizes[] = {64, 48, 32, 96, 128, 24, 256, 40};
	const size_t n = 40000;
	int r = SITES(trace, names, 3);

	(void)samples;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const uint32_t site = ranked_site(rng, 8);

		r = sp_lab_trace_add(
			trace, &(struct sp_lab_alloc){paced_time(i, n),
						      sizes[site], site, 0});
	}
	return r;
}

/* ---- sizes that differ a hundred thousandfold within a site ---- */

#define TAIL_EXPONENT 1.1
#define TAIL_LARGEST  (8 * MIB)

/* Pareto's law above 24 bytes; half of the bytes are in few objects. */
static double tail_size(struct sp_rng *rng)
{
	return fmin(TAIL_LARGEST,
		    24 * pow(sp_lab_uniform(rng), -1 / TAIL_EXPONENT));
}

static int make_tail(struct sp_lab_trace *trace, uint64_t samples,
		     struct sp_rng *rng)
{
	static const char *const names[] = {"parse", "cache", "message",
					    "index"};
	const size_t n = 40000;
	int r = SITES(trace, names, 2);

	(void)samples;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const uint32_t site = ranked_site(rng, 4);
		double size = tail_size(rng);

		/* A message is a head, and one in 800 has a body. */
		if (site == 2)
			size = sp_lab_uniform(rng) < 1 / 800.0 ? 64 * KIB : 32;
		r = sp_lab_trace_add(
			trace, &(struct sp_lab_alloc){paced_time(i, n),
						      (uint64_t)size, site, 0});
	}
	return r;
}

/* ---- few large objects ---- */

static int make_large(struct sp_lab_trace *trace, uint64_t samples,
		      struct sp_rng *rng)
{
	static const char *const names[] = {"frame", "tile", "texture", "page"};
	const size_t n = 1000;
	int r = SITES(trace, names, 1);

	(void)samples;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const double size = log_uniform(rng, 16 * KIB, 64 * MIB);

		r = sp_lab_trace_add(
			trace,
			&(struct sp_lab_alloc){paced_time(i, n), (uint64_t)size,
					       ranked_site(rng, 4), 0});
	}
	return r;
}

/* ---- phases: every two seconds 50 ms of another load ---- */

static int make_bursts(struct sp_lab_trace *trace, uint64_t samples,
		       struct sp_rng *rng)
{
	static const char *const names[] = {"request", "log", "reload"};
	static const uint32_t sizes[] = {256, 96, 192};
	/* In 50 ms as much as otherwise in a second. */
	const size_t steady = 15000, burst = 3000, bursts = 5;
	const size_t n = steady + bursts * burst;
	size_t done_steady = 0, done_burst = 0;
	int r = SITES(trace, names, 2);

	(void)samples;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const uint64_t steady_ns = paced_time(done_steady, steady);
		const uint64_t burst_ns =
			(done_burst / burst * 2 + 1) * SECOND +
			done_burst % burst * (SECOND / 20) / burst;
		const bool is_burst =
			done_burst < bursts * burst &&
			(done_steady == steady || burst_ns < steady_ns);
		const uint32_t site = is_burst ? 2 : sp_lab_below(rng, 2);

		r = sp_lab_trace_add(
			trace,
			&(struct sp_lab_alloc){is_burst ? burst_ns : steady_ns,
					       sizes[site], site, 0});
		done_burst += is_burst;
		done_steady += !is_burst;
	}
	return r;
}

/* ---- a load that grows a hundredfold in a minute ---- */

#define RAMP_LENGTH (60 * SECOND)
#define RAMP        100.0

static int make_ramp(struct sp_lab_trace *trace, uint64_t samples,
		     struct sp_rng *rng)
{
	static const char *const names[] = {"start", "serve", "reply"};
	static const uint32_t sizes[] = {128, 256, 512};
	const size_t n = 40000;
	int r = SITES(trace, names, 0);

	(void)samples;
	trace->duration_ns = RAMP_LENGTH;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		/* The rate is RAMP^time, so that is its integral. */
		const double time =
			log1p((RAMP - 1) * (double)i / (double)n) / log(RAMP);
		/* The first third of the time. */
		const uint32_t site =
			time < 1 / 3.0 ? 0 : 1 + sp_lab_below(rng, 2);

		r = sp_lab_trace_add(
			trace, &(struct sp_lab_alloc){
				       (uint64_t)(time * (double)RAMP_LENGTH),
				       sizes[site], site, 0});
	}
	return r;
}

/* ---- a loop that allocates one budgeted stride each time round ---- */

static int make_periodic(struct sp_lab_trace *trace, uint64_t samples,
			 struct sp_rng *rng)
{
	static const char *const names[] = {"row", "column", "total"};
	const size_t per_turn = 50, n = per_turn * samples;
	int r = SITES(trace, names, 2);

	(void)rng;
	/* The last five of each turn are the site that tables are about. */
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const bool is_last = i % per_turn >= per_turn - 5;
		const uint32_t site = is_last ? 2 : i % 2;

		r = sp_lab_trace_add(trace,
				     &(struct sp_lab_alloc){paced_time(i, n),
							    1000, site, 0});
	}
	return r;
}

/* ---- threads of very different appetite ---- */

#define THREADS 64

static int make_threads(struct sp_lab_trace *trace, uint64_t samples,
			struct sp_rng *rng)
{
	static const char *const names[] = {"work", "queue", "housekeeping"};
	static const uint32_t sizes[] = {512, 64, 160};
	const size_t n = 40000;
	int r = SITES(trace, names, 2);

	(void)samples;
	trace->n_threads = THREADS;
	/* The last 48 threads do the housekeeping, the others the work. */
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const uint32_t thread = ranked_site(rng, THREADS);
		const uint32_t site =
			thread >= 16 ? 2 : sp_lab_uniform(rng) < 0.25;

		r = sp_lab_trace_add(trace, &(struct sp_lab_alloc){
						    paced_time(i, n),
						    sizes[site], site, thread});
	}
	return r;
}

const struct sp_lab_workload sp_lab_workloads[] = {
	{"small", "small objects, one size for each site", make_small},
	{"tail", "sizes of a heavy tail; a site of small heads and few bodies",
	 make_tail},
	{"large", "a thousand objects of 16 KiB to 64 MiB", make_large},
	{"bursts", "a steady load, and every two seconds 50 ms of another one",
	 make_bursts},
	{"ramp", "a load that grows a hundredfold in a minute; its first third",
	 make_ramp},
	{"periodic", "a loop whose turns have the length of a fixed stride",
	 make_periodic},
	{"threads", "64 threads, those of the site with little to do each",
	 make_threads},
	{0},
};

const struct sp_lab_workload *sp_lab_workload_find(const char *name)
{
	for (const struct sp_lab_workload *w = sp_lab_workloads; w->name; w++)
		if (strcmp(w->name, name) == 0)
			return w;
	return NULL;
}

int sp_lab_workload_make(const struct sp_lab_workload *workload,
			 uint64_t samples, uint64_t seed,
			 struct sp_lab_trace *ret)
{
	struct sp_rng rng;
	int r;

	*ret = (struct sp_lab_trace){.name = workload->name,
				     .about = workload->about,
				     .duration_ns = LENGTH};
	sp_rng_init(&rng, seed, 0);
	r = workload->make(ret, samples, &rng);
	if (r >= 0)
		r = sp_lab_trace_finish(ret);
	if (r < 0)
		sp_lab_trace_free(ret);
	return r;
}
