/* SPDX-License-Identifier: MIT */
/*
 * The greatest live bytes, from samples; (E<n>) are the equations of
 * docs/statistics.md.
 *
 * One walk over all births and frees in order of time keeps the sums of what is
 * alive and finds
 *   - the highest point of the estimated curve, which says how high it looks:
 *     noise chose the point;
 *   - the highest upper limit of any moment, one of which is the true peak's;
 *   - the most sampled bytes at any moment, which were there for certain;
 *   - the highest point of the curve that the samples make which choose.
 * The others then measure what was alive at that point, in the choice of which
 * they had no part.
 */
#include "stats/peak.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/saturate.h"
#include "base/wide.h"
#include "stats/estimate.h"
#include "stats/special.h"
#include "stats/running_sums.h"

/* Sums that go up and down, of samples that are alive. */
struct alive {
	uint64_t samples;
	sp_u128 size_bytes;
	struct sp_running_sums sums;
};

/* A moment, and what is said of it: what chose it was there for certain, the
 * rest is estimated by the others (E22). */
struct chosen {
	double height; /* of the curve that chose it */
	sp_u128 known_bytes;
	uint64_t known_samples;
	struct alive rest;
	uint64_t time_ns;
};

/*
 * The curve that the samples make which choose, and where it is highest: of
 * equally high moments the first before a free of any sample (E47).
 */
struct chooser {
	double curve_hi, curve_lo;
	struct chosen now; /* but for its height and time */
	struct chosen best;
	double without;  /* the highest of all samples, while none of them chose
			  */
	bool has_fallen; /* something was freed since `best` */
	/* The highest that is separate from `best` (E62). */
	struct chosen other;
	double valley; /* the lowest since `best` */
};

/* What a sample adds, by size and period: there are few of these. */
struct kind {
	uint64_t size_bytes, period_bytes;
	bool is_certain; /* it adds its size, and nothing else */
	struct sp_terms whole;
	struct sp_terms part; /* (E22) */
	uint64_t alive;
};

/* A summit that may have the highest upper limit, or one that was measured. */
struct candidate {
	struct sp_acc acc;
	double most; /* what its limit is less than */
};

#define CANDIDATES 16

struct sp_peak_walk {
	const struct sp_profile *profile;
	double confidence;
	struct alive now;
	/* The highest so far. */
	sp_u128 most_size_bytes;
	double upper;
	double spread; /* normal quantile of the upper limit */
	struct candidate candidates[CANDIDATES];
	size_t n_candidates;
	double upper_least;              /* one of all is at least that */
	double last_sd, last_sd_inverse; /* of the last that was no low one */
	uint64_t period_bytes;           /* the largest */
	uint64_t last_birth_ns, last_free_ns;
	bool is_rising;
	/*
	 * While all samples were certain and sums are exact, both curves are
	 * one number, now.size_bytes, and every other sum is zero: only the
	 * highest summit is noted.  Where every allocation is
	 * recorded that is the whole run.
	 */
	bool is_certain;
	struct {
		uint64_t size_bytes, samples, last_ns;
	} summit;
	struct chooser chooser;
	struct sp_peak peak;
	uint64_t key; /* random: no file can choose kinds that collide */
	struct kind *kinds;
	size_t n_kinds, kinds_room;
	struct sp_index index; /* of kinds */
};

static struct sp_terms terms_of(const struct sp_acc *one)
{
	return (struct sp_terms){
		{{one->est_bytes, one->k2}, {one->k3, one->kz}}};
}

static struct kind make_kind(const struct sp_peak_walk *w, uint64_t size_bytes,
			     uint64_t period_bytes)
{
	struct kind kind = {.size_bytes = size_bytes,
			    .period_bytes = period_bytes};
	struct sp_acc one;

	sp_acc_init(&one, period_bytes);
	sp_acc_add(&one, &w->profile->law, size_bytes, 0, period_bytes);
	kind.whole = terms_of(&one);
	kind.is_certain = one.est_bytes == (double)size_bytes && one.k2 == 0 &&
			  one.k3 == 0 && one.kz == 0;
	one = sp_acc_measured(one);
	kind.part = terms_of(&one);
	return kind;
}

uint32_t sp_peak_walk_kind(struct sp_peak_walk *w, uint64_t size_bytes,
			   uint64_t period_bytes)
{
	struct sp_index_probe probe = sp_index_begin(
		sp_hash_word(sp_hash_word(w->key, period_bytes), size_bytes));

	if (sp_index_reserve(&w->index) < 0)
		return UINT32_MAX;
	while (sp_index_next(&w->index, &probe)) {
		const struct kind *kind = &w->kinds[probe.position];

		if (kind->size_bytes == size_bytes &&
		    kind->period_bytes == period_bytes)
			return probe.position;
	}
	/* At most 2^30 in an index: an object's number has room for its toss.
	 */
	if (sp_array_reserve((void **)&w->kinds, &w->kinds_room, w->n_kinds,
			     sizeof(*w->kinds)))
		return UINT32_MAX;
	w->kinds[w->n_kinds] = make_kind(w, size_bytes, period_bytes);
	sp_index_put(&w->index, &probe, w->n_kinds);
	return (uint32_t)w->n_kinds++;
}

bool sp_peak_walk_is_certain(const struct sp_peak_walk *w, uint32_t kind)
{
	return w->kinds[kind].is_certain;
}

/* ---- the walk ---- */

/* sign is 1 for a birth and -1 for a free: a constant where it is called, which
 * takes a third fewer instructions. */
static inline __attribute__((always_inline)) void alive_add(
	struct alive *a, uint64_t size_bytes, const struct sp_terms *terms,
	double sign)
{
	a->samples += sign > 0 ? 1 : UINT64_MAX;
	if (sign > 0)
		a->size_bytes += size_bytes;
	else
		a->size_bytes -= size_bytes;
	sp_running_sums_add(&a->sums, terms, sign);
}

/* A sample that chooses, with that weight, or that is certain. */
static inline __attribute__((always_inline)) void chooser_add(
	struct chooser *c, const struct kind *kind, double factor)
{
	const double x = factor * kind->whole.of[0][SP_SUM_EST];
	const double sum = c->curve_hi + x, part = sum - c->curve_hi;

	if (factor > 0)
		c->now.known_bytes += kind->size_bytes;
	else
		c->now.known_bytes -= kind->size_bytes;
	c->now.known_samples += factor > 0 ? 1 : UINT64_MAX;
	c->curve_lo += (c->curve_hi - (sum - part)) + (x - part);
	c->curve_hi = sum;
}

/*
 * After all that happened until time_ns, and before a free.  While no sample
 * chose, all do (E47).  A summit is another than the highest one if the curve
 * falls below SEPARATE of both in between (E62).
 */
#define SEPARATE 0.75

static void look_at_choice(struct sp_peak_walk *w, uint64_t time_ns)
{
	struct chooser *c = &w->chooser;
	const double all = sp_running_sums_value(&w->now.sums, SP_SUM_EST);

	c->now.height = c->curve_hi + c->curve_lo;
	c->now.time_ns = time_ns;
	if (c->now.height > c->best.height) {
		if (c->valley < SEPARATE * c->best.height)
			c->other = c->best;
	} else if (c->best.height > 0 || !(all > c->without)) {
		if (c->valley < SEPARATE * c->now.height &&
		    c->now.height > c->other.height)
			c->other = c->now;
		return;
	}
	c->without = all;
	c->best = c->now;
	c->valley = c->now.height;
	c->has_fallen = false;
}

static inline __attribute__((always_inline)) void step(struct sp_peak_walk *w,
						       uint32_t object,
						       double sign)
{
	struct kind *kind = &w->kinds[object >> 1];

	kind->alive += sign > 0 ? 1 : UINT64_MAX;
	alive_add(&w->now, kind->size_bytes, &kind->whole, sign);
	if (!(kind->whole.of[0][SP_SUM_K2] > 0))
		chooser_add(&w->chooser, kind, sign);
	else if (object & 1)
		alive_add(&w->chooser.now.rest, kind->size_bytes, &kind->part,
			  sign);
	else
		chooser_add(&w->chooser, kind, SP_PEAK_CHOOSES * sign);
}

/*
 * What (E8)'s upper limit of `acc` lies between, without its costly quantile.
 * With z the normal quantile and g the skewness, Wilson and Hilferty's falls
 * short of it by less than g^2 / 100 standard deviations, and exceeds it by
 * less than (1 + z^2) g^2 / 100 up to 99.9 % and 3 times that up to 1 - 1e-11:
 * ten times that is allowed for.
 */
static void bound_upper(struct sp_peak_walk *w, const struct sp_acc *acc,
			double *ret_least, double *ret_most)
{
	const double r = (double)acc->period_bytes;
	const double k2 = acc->k2 + r * r, sd = sqrt(k2);
	const double g = (acc->k3 + 2 * r * r * r) / (k2 * sd);
	const double root = 1 + g * w->spread / 6 - g * g / 36;
	const double quantile = 2 / g * (root * root * root - 1);
	const double middle = acc->est_bytes + r + sd * quantile;
	const double margin = sd * 0.1 * g * g, z = w->spread;

	*ret_least = g < 2.5 ? middle - margin * (1 + z * z) : 0;
	*ret_most = g < 2.5 ? middle + margin + acc->kz / k2 / 2 : INFINITY;
	w->last_sd = sd;
	w->last_sd_inverse = 1 / sd;
}

/* The same as an accumulator for limits of bytes.  Without any samples the sums
 * are zero, but for what rounding left. */
static struct sp_acc as_acc(const struct sp_peak_walk *w,
			    const struct alive *alive)
{
	struct sp_acc acc;

	sp_acc_init(&acc, w->period_bytes);
	if (!alive->samples)
		return acc;
	acc.samples = alive->samples;
	acc.size_bytes = alive->size_bytes > UINT64_MAX
				 ? UINT64_MAX
				 : (uint64_t)alive->size_bytes;
	acc.est_bytes = sp_running_sums_value(&alive->sums, SP_SUM_EST);
	acc.k2 = sp_running_sums_value(&alive->sums, SP_SUM_K2);
	acc.k3 = sp_running_sums_value(&alive->sums, SP_SUM_K3);
	acc.kz = sp_running_sums_value(&alive->sums, SP_SUM_KZ);
	return acc;
}

/* The limits of all candidates. */
static void measure_upper(struct sp_peak_walk *w)
{
	struct sp_interval live;

	while (w->n_candidates) {
		live = sp_estimate_bytes_p3(
			&w->candidates[--w->n_candidates].acc, w->confidence);
		w->upper = fmax(w->upper, live.hi);
	}
}

/*
 * Only what may have the highest limit is measured, and that late: while a
 * heap grows, each summit is higher than the one before.  With few samples
 * alive many are the same.
 */
static void look_at_upper(struct sp_peak_walk *w, const struct sp_acc *acc)
{
	size_t kept = 0;
	double least, most;

	bound_upper(w, acc, &least, &most);
	if (most <= w->upper_least || most <= w->upper)
		return;
	for (size_t i = 0; i < CANDIDATES; i++)
		if (!memcmp(&w->candidates[i].acc, acc, sizeof(*acc)))
			return;
	if (w->n_candidates == CANDIDATES)
		measure_upper(w);
	if (least > w->upper_least) {
		w->upper_least = least;
		for (size_t i = 0; i < w->n_candidates; i++)
			if (w->candidates[i].most > least)
				w->candidates[kept++] = w->candidates[i];
		w->n_candidates = kept;
	}
	w->candidates[w->n_candidates++] = (struct candidate){*acc, most};
}

/*
 * Can it be the highest in no respect?  In most files that is true of most
 * summits, and to see it costs neither a root nor a division: sd is no more
 * than the mean of s and k2 / s for any s, and of skewness up to G Wilson and
 * Hilferty's quantile no more than with G in the place of what it is linear
 * and quadratic in.
 */
static bool is_low(const struct sp_peak_walk *w)
{
	const double G = 0.5, z = w->spread, r = (double)w->period_bytes;
	const struct sp_running_sums *sums = &w->now.sums;
	const double quantile =
		z + G * z * z / 6 + G * G * z * z * z / 108 + 0.1 * G * G;
	const double est = sp_running_sums_value(sums, SP_SUM_EST);
	const double k2 = sp_running_sums_value(sums, SP_SUM_K2) + r * r;
	const double k3 =
		sp_running_sums_value(sums, SP_SUM_K3) + 2 * r * r * r;
	const double sd_most = (w->last_sd + k2 * w->last_sd_inverse) / 2;
	const double room =
		fmax(w->upper_least, w->upper) - est - r - sd_most * quantile;

	return est <= w->peak.raw_bytes &&
	       w->now.size_bytes <= w->most_size_bytes && w->last_sd > 0 &&
	       k3 * k3 <= G * G * k2 * k2 * k2 &&
	       sp_running_sums_value(sums, SP_SUM_KZ) <= 2 * k2 * room;
}

/* Between the last birth and a free, or at the end: a summit of the curve. */
static void look_at_summit(struct sp_peak_walk *w)
{
	struct sp_acc acc;

	if (is_low(w))
		return;
	acc = as_acc(w, &w->now);
	w->peak.raw_bytes = fmax(w->peak.raw_bytes, acc.est_bytes);
	if (w->now.size_bytes > w->most_size_bytes)
		w->most_size_bytes = w->now.size_bytes;
	look_at_upper(w, &acc);
}

static uint64_t last_ns(const struct sp_peak_walk *w)
{
	return w->last_birth_ns > w->last_free_ns ? w->last_birth_ns
						  : w->last_free_ns;
}

/* ---- while all samples were certain ---- */

/* Sums of less are exact in a double. */
#define EXACT_BYTES (1ull << 53)

static inline bool stays_certain(const struct sp_peak_walk *w,
				 const struct kind *kind)
{
	return kind->is_certain && kind->size_bytes < EXACT_BYTES &&
	       (uint64_t)w->now.size_bytes + kind->size_bytes < EXACT_BYTES;
}

static inline void look_at_certain_summit(struct sp_peak_walk *w)
{
	const uint64_t size_bytes = (uint64_t)w->now.size_bytes;

	if (size_bytes <= w->summit.size_bytes)
		return;
	w->summit.size_bytes = size_bytes;
	w->summit.samples = w->now.samples;
	w->summit.last_ns = last_ns(w);
}

/* The sums as they would be.  Of the summits the highest has the highest upper
 * limit, since they differ in nothing else. */
static void leave_certain(struct sp_peak_walk *w)
{
	struct chooser *c = &w->chooser;
	const double now = (double)(uint64_t)w->now.size_bytes;
	const double highest = (double)w->summit.size_bytes;
	struct alive summit = {.samples = w->summit.samples,
			       .size_bytes = w->summit.size_bytes};
	struct sp_acc acc;

	w->is_certain = false;
	w->now.sums.hi[0][SP_SUM_EST] = now;
	c->curve_hi = now;
	c->now.known_bytes = w->now.size_bytes;
	c->now.known_samples = w->now.samples;
	c->best = (struct chosen){.height = highest,
				  .known_bytes = w->summit.size_bytes,
				  .known_samples = w->summit.samples,
				  .time_ns = w->summit.last_ns};
	c->valley = now;
	if (!w->summit.size_bytes)
		return;
	c->has_fallen = true;
	w->most_size_bytes = w->summit.size_bytes;
	w->peak.raw_bytes = highest;
	summit.sums.hi[0][SP_SUM_EST] = highest;
	acc = as_acc(w, &summit);
	look_at_upper(w, &acc);
}

void sp_peak_walk_birth(struct sp_peak_walk *w, uint32_t object,
			uint64_t time_ns)
{
	struct kind *kind = &w->kinds[object >> 1];
	struct chooser *c = &w->chooser;

	if (!w->is_rising)
		c->valley = fmin(c->valley, c->curve_hi + c->curve_lo);
	w->is_rising = true;
	w->last_birth_ns = time_ns;
	if (w->is_certain && stays_certain(w, kind)) {
		kind->alive++;
		w->now.samples++;
		w->now.size_bytes += kind->size_bytes;
		return;
	}
	if (w->is_certain)
		leave_certain(w);
	step(w, object, 1);
}

/* Frees of one moment are one step: in between the curve means nothing. */
void sp_peak_walk_free(struct sp_peak_walk *w, uint32_t object,
		       uint64_t time_ns)
{
	if (w->is_certain) {
		struct kind *kind = &w->kinds[object >> 1];

		if (w->is_rising)
			look_at_certain_summit(w);
		kind->alive--;
		w->now.samples--;
		w->now.size_bytes -= kind->size_bytes;
	} else {
		if (w->is_rising) {
			look_at_summit(w);
			look_at_choice(w, last_ns(w));
		}
		w->chooser.has_fallen = true;
		step(w, object, -1);
	}
	w->is_rising = false;
	w->last_free_ns = time_ns;
}

int sp_peak_walk_alive(const struct sp_peak_walk *w, struct sp_class_sums *ret)
{
	for (size_t i = 0; i < w->n_kinds; i++) {
		const struct kind *kind = &w->kinds[i];

		if (kind->alive &&
		    sp_class_sums_add_many(ret, &w->profile->law,
					   kind->size_bytes, kind->alive, 0,
					   kind->period_bytes) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* As of any row of that moment. */
static struct sp_interval estimate(const struct sp_peak_walk *w,
				   const struct sp_acc *acc)
{
	const struct sp_estimation how = {SP_METHOD_P3, w->confidence, NULL, 0};
	const struct sp_class_sums sums = {.all = *acc, .is_measured = true};

	return sp_estimate_bytes(&how, &sums);
}

/* (E23) Live bytes at a moment that samples chose. */
static struct sp_interval measure(const struct sp_peak_walk *w,
				  const struct chosen *chosen)
{
	struct sp_acc acc = as_acc(w, &chosen->rest);

	acc.samples += chosen->known_samples;
	acc.est_bytes += (double)chosen->known_bytes;
	sp_sat_add(&acc.size_bytes, chosen->known_bytes > UINT64_MAX
					    ? UINT64_MAX
					    : (uint64_t)chosen->known_bytes);
	acc.period_bytes = sp_acc_measured_period(acc.period_bytes);
	return estimate(w, &acc);
}

/* Of what was alive before the window only the part is known that was alive at
 * it, so that a moment before it is the window. */
static uint64_t moment_of(const struct sp_peak_walk *w,
			  const struct chosen *chosen)
{
	const struct sp_profile *p = w->profile;

	return p->n_parts <= 1 && chosen->time_ns < p->window_ns
		       ? p->window_ns
		       : chosen->time_ns;
}

/* (E24) The end is a moment that nobody had to choose: the peak is no less than
 * what is alive then. */
static void choose(struct sp_peak_walk *w)
{
	const struct chooser *c = &w->chooser;
	const struct chosen *other = &c->other;
	const struct sp_acc alive = as_acc(w, &w->now);
	const struct sp_interval end = estimate(w, &alive);
	struct sp_peak *peak = &w->peak;

	peak->rows_bytes = measure(w, &c->best);
	peak->rows_ns = peak->time_ns = moment_of(w, &c->best);
	peak->samples = c->best.known_samples + c->best.rest.samples;
	/* If everything is known, the first of equal moments is. */
	if ((!c->has_fallen && w->period_bytes > 1) ||
	    end.value > peak->rows_bytes.value) {
		peak->rows_bytes = end;
		peak->rows_ns = SP_NEVER;
		peak->samples = w->now.samples;
		peak->time_ns = peak->samples ? w->profile->duration_ns : 0;
		if (c->has_fallen)
			other = &c->best;
	}
	peak->other_ns = SP_NEVER;
	if (!(other->height > 0))
		return;
	peak->other_bytes = measure(w, other);
	if (peak->other_bytes.hi >= peak->rows_bytes.lo)
		peak->other_ns = moment_of(w, other);
}

/* (E25) */
void sp_peak_walk_end(struct sp_peak_walk *w, struct sp_peak *ret)
{
	struct sp_interval bytes;

	if (w->is_certain)
		leave_certain(w);
	look_at_summit(w);
	measure_upper(w);
	look_at_choice(w, last_ns(w));
	choose(w);
	bytes = w->peak.rows_bytes;
	bytes.lo = fmax(bytes.lo, (double)w->most_size_bytes);
	bytes.hi = fmax(fmax(bytes.hi, w->upper), bytes.lo);
	bytes.value = fmax(bytes.value, bytes.lo);
	w->peak.bytes = bytes;
	*ret = w->peak;
}

struct sp_peak_walk *sp_peak_walk_new(const struct sp_profile *profile,
				      uint64_t period_bytes, double confidence)
{
	struct sp_peak_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->profile = profile;
	w->confidence = confidence;
	w->spread = sp_special_normal_quantile(1 - (1 - confidence) / 2);
	w->period_bytes = period_bytes;
	w->key = sp_index_key(w);
	w->is_certain = true;
	return w;
}

void sp_peak_walk_destroy(struct sp_peak_walk *w)
{
	if (!w)
		return;
	free(w->kinds);
	sp_index_done(&w->index);
	free(w);
}
