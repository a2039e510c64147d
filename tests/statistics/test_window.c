/* SPDX-License-Identifier: MIT */
/*
 * Bounded files: allocations since the window, live objects; survivors taken
 * for births are noticed. False alarm: 5e-6; 3 s.
 *
 * Claim.  In a file that has discarded old samples (docs/format.md,
 * "Segments") the estimates of what was allocated since the window, and of what
 * is alive at the end, are unbiased and vary as those of a whole file.
 *
 * H0: for each of the two, z = (estimate - truth) / sigma has mean 0 and
 * variance 1 over the seeds; sigma is exact, since the objects are known.  (The
 * beginning of the window depends on the number of samples: that moves the
 * estimate by about the weight of one sample, a hundredth of sigma.)
 *
 * Statistics, from n = 48 runs with fixed seeds, each through two turns of its
 * file and more: |sum of z| / sqrt(n), normal; sum of z^2, chi-squared with n
 * degrees of freedom.
 *
 * alpha: |sum of z| / sqrt(n) > 5 has probability 5.7e-7, a sum of z^2 outside
 * of [14, 110] less than 2e-6; the four statistics make less than 5e-6.
 *
 * Power: a bias of one sigma, which is 1 % of what the window has, is rejected
 * with probability 0.97.
 *
 * Negative control: survivors of what was discarded, taken for a sample of what
 * was allocated, must be rejected.
 */
#include <math.h>

#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/file/slots.h"
#include "agent/file/writer.h"
#include "read/load.h"
#include "stats/sums.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define RUNS     48u
#define OBJECTS  60000u
#define PLACES   4000u
#define PERIOD   2048u
#define FILE_MAX (9u * 65536u)
#define Z_MAX    5.0
#define CHI_MIN  14.0
#define CHI_MAX  110.0

static struct sp_process process;
static uint32_t sizes[OBJECTS + 1]; /* by number, from 1 */
static uint32_t alive[PLACES];      /* number of the object there; 0: none */

/* Of one quantity. */
struct sums {
	double z, z2;
};

static int begin_all(void **state)
{
	process.config.depth = 8;
	process.follows_frees = sp_liveset_init();
	assert_true(process.follows_frees);
	sp_law_init(&process.law, SP_LAW_EXPONENTIAL, PERIOD);
	sp_recorder_init(&process, sp_marks_complete);
	return agent_fixture_begin(state);
}

static void *address_of(size_t place)
{
	return (void *)(0x10000000 + 32 * (place + 1));
}

static void end(void)
{
	struct sp_live live;

	for (size_t i = 0; i < PLACES; i++)
		sp_liveset_take(address_of(i), &live);
	memset(alive, 0, sizeof(alive));
	sp_marks_reset();
	sp_recorder_reset();
	agent_fixture_close();
}

/* Small ones mostly, and some that are sampled for certain. */
static uint32_t random_size(struct sp_rng *rng)
{
	const uint64_t v = sp_rng_next(rng);

	if (v % 64 == 0)
		return (uint32_t)(1 + (v >> 20) % 20000);
	return (uint32_t)(1 + (v >> 20) % 1200);
}

static void allocate(size_t place, uint32_t number)
{
	struct sp_event event = {address_of(place), sizes[number], 0,
				 SP_ENTRY_MALLOC, SP_FRAME_HERE};

	alive[place] = number;
	if (sp_sampler_pass(&sp_thread.sampler, 0, sizes[number],
			    &event.offset_bytes))
		sp_recorder_sample(&sp_thread, &event);
	sp_slots_add(0, sizes[number], 1);
	sp_marks_complete();
}

/* Half of the places keep their objects long: what is alive is not like what
 * was allocated. */
static void simulate(uint64_t seed)
{
	struct sp_rng rng;

	sp_rng_init(&rng, 77, seed);
	for (uint32_t i = 1; i <= OBJECTS; i++) {
		size_t place = sp_rng_next(&rng) % PLACES;

		sizes[i] = random_size(&rng);
		if (alive[place] && place < PLACES / 2 &&
		    sp_rng_next(&rng) % 32)
			place = PLACES / 2 + place / 4;
		if (place < PLACES / 2)
			sizes[i] = 16 + sizes[i] / 4;
		if (alive[place])
			sp_recorder_free(address_of(place));
		allocate(place, i);
	}
}

static const char *run(uint64_t seed)
{
	const char *path = agent_fixture_open(FILE_MAX);

	atomic_store(&process.generation, 1);
	atomic_store(&process.threads, 1);
	sp_thread.index = 1;
	sp_thread.generation = 1;
	sp_thread.recorded = SP_THREAD_UNKNOWN;
	sp_thread.suspended = 0;
	sp_sampler_begin(&sp_thread.sampler, &process.law, seed, 1, 1);
	simulate(seed);
	sp_writer_end(1, false);
	return path;
}

static double variance_of(double size)
{
	const double miss = exp(-size / PERIOD);

	return size >= (double)sp_format_always_bytes(PERIOD)
		       ? 0
		       : size * size * miss / (1 - miss);
}

static double estimate(const struct sp_profile *p, enum sp_view view,
		       bool has_survivors)
{
	struct sp_selection selection;
	struct sp_sums *sums;
	struct sp_error err;
	double bytes;

	sp_selection_init(&selection);
	selection.view = view;
	selection.has_survivors = has_survivors;
	assert_int_equal(sp_sums_new(p, &selection, &sums, &err), 0);
	bytes = sp_estimate_bytes_p3(&sums->all.all, 0.95).value;
	sp_sums_free(sums, p);
	return bytes;
}

static void add(struct sums *sums, double found, double truth, double variance)
{
	const double z = (found - truth) / sqrt(variance);

	sums->z += z;
	sums->z2 += z * z;
}

static bool is_accepted(const struct sums *s)
{
	return fabs(s->z) / sqrt(RUNS) <= Z_MAX && s->z2 >= CHI_MIN &&
	       s->z2 <= CHI_MAX;
}

static void measure(uint64_t seed, struct sums *window, struct sums *live,
		    struct sums *mutant)
{
	double truth = 0, variance = 0, live_truth = 0, live_variance = 0;
	struct sp_profile *p = NULL;
	struct sp_error err;

	assert_int_equal(sp_profile_load(run(seed), NULL, NULL, &p, &err), 0);
	assert_string_equal(p->damage, "");
	assert_true(p->losses[SP_LOSS_FILE_FULL] == 0);
	assert_true(p->exact_alloc_objects == OBJECTS);
	/* Most of it is gone, and the rest is no trifle. */
	assert_true(p->discarded_objects > OBJECTS / 4);
	assert_true(p->discarded_objects < OBJECTS - 5000);
	for (uint64_t i = p->discarded_objects + 1; i <= OBJECTS; i++) {
		truth += sizes[i];
		variance += variance_of(sizes[i]);
	}
	assert_true(truth ==
		    (double)(p->exact_alloc_bytes - p->discarded_bytes));
	for (size_t i = 0; i < PLACES; i++)
		if (alive[i]) {
			live_truth += sizes[alive[i]];
			live_variance += variance_of(sizes[alive[i]]);
		}
	add(window, estimate(p, SP_VIEW_ALLOC, false), truth, variance);
	add(mutant, estimate(p, SP_VIEW_ALLOC, true), truth, variance);
	add(live, estimate(p, SP_VIEW_LIVE, false), live_truth, live_variance);
	sp_profile_free(p);
	end();
}

TEST(unbiased)
{
	struct sums window = {0, 0}, live = {0, 0}, mutant = {0, 0};

	for (uint64_t seed = 1; seed <= RUNS; seed++)
		measure(seed, &window, &live, &mutant);
	print_message("window %.2f %.1f, live %.2f %.1f, mutant %.2f\n",
		      window.z / sqrt(RUNS), window.z2, live.z / sqrt(RUNS),
		      live.z2, mutant.z / sqrt(RUNS));
	assert_true(is_accepted(&window));
	assert_true(is_accepted(&live));
	assert_false(is_accepted(&mutant));
}

TEST_MAIN(begin_all, agent_fixture_end)
