/* SPDX-License-Identifier: MIT */
/*
 * The greatest live bytes, from samples; (E<n>) are the equations of
 * docs/statistics.md.
 *
 * One walk over all births and frees in order of time keeps the sums of what is
 * alive and finds
 *   - the highest point of the estimated curve, which says when the peak was
 *     but not how high: noise chose the point;
 *   - the highest upper limit of any moment, one of which is the true peak's;
 *   - the most sampled bytes at any moment, which were there for certain;
 *   - the highest point of the curve that each half of the samples makes.
 * A half then measures the height at the other's point, in the choice of which
 * it had no part.  (More and smaller parts see a summit of few samples better,
 * and are half as noisy again on a long plateau.)
 */
#include "profile/peak.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"
#include "profile/special.h"

/*
 * A running sum.  Terms are taken out again, in another order than they came
 * in: with the rounding errors kept beside the sum, what remains is as exact as
 * a double can show.
 */
struct sum {
	double hi;
	double lo;
};

static void sum_add(struct sum *s, double x)
{
	const double sum = s->hi + x, part = sum - s->hi;

	s->lo += (s->hi - (sum - part)) + (x - part);
	s->hi = sum + s->lo;
	s->lo -= s->hi - sum;
}

static double sum_value(const struct sum *s)
{
	return s->hi + s->lo;
}

struct event {
	uint64_t time_ns;
	uint64_t what; /* twice the sample's position, + 1 for its birth */
};

/* Sums that go up and down, of samples that are alive. */
struct alive {
	uint64_t samples;
	unsigned __int128 size_bytes;
	struct sum est, k2, k3, kz;
};

/*
 * The curve that half of the samples makes, and where it is highest: the last
 * of equally high stretches.  What the two halves have then is what the one
 * that did not choose the moment says of it.
 */
struct half {
	struct sum curve;
	unsigned __int128 known_bytes; /* of this half, or certain */
	struct alive rest;             /* of the other, by (E22) */
	double best;
	unsigned __int128 best_known_bytes;
	struct alive best_rest;
};

/* What a sample adds, by size and period: there are few of these. */
struct terms {
	uint64_t size_bytes; /* 0: nothing yet */
	uint64_t period_bytes;
	struct sp_acc whole;
	struct sp_acc half; /* (E22) */
};

#define TERMS 512u

struct sp_peak_walk {
	const struct sp_profile *profile;
	double confidence;
	struct alive now;
	/* The highest so far. */
	unsigned __int128 most_size_bytes;
	double upper;
	double spread;         /* normal quantile of the upper limit */
	uint64_t period_bytes; /* the largest */
	uint64_t last_birth_ns;
	uint64_t last_free_ns;
	bool is_rising;
	struct half half[2];
	struct sp_peak peak;
	struct terms terms[TERMS];
};

/*
 * (E22) Of the objects that are not in the other half, those in this one are a
 * sample with the inclusion probability (pi / 2) / (1 - pi / 2).
 */
static struct sp_acc half_terms(struct sp_acc one)
{
	const double q = one.c2 / (one.est_count * one.est_count);
	const double z = (double)one.size_bytes;
	const double w = one.est_bytes * (1 + q), miss = 2 * q / (1 + q);

	one.est_bytes = w;
	one.k2 = w * w * miss;
	one.k3 = w * w * w * miss * (1 + miss);
	one.kz = w * w * miss * z;
	return one;
}

static const struct terms *terms_of(struct sp_peak_walk *w,
				    const struct sp_sample *s)
{
	const uint64_t h = sp_hash_word(s->period_bytes, s->size_bytes);
	struct terms *t = &w->terms[h & (TERMS - 1)];

	if (t->size_bytes == s->size_bytes &&
	    t->period_bytes == s->period_bytes)
		return t;
	t->size_bytes = s->size_bytes;
	t->period_bytes = s->period_bytes;
	sp_acc_init(&t->whole, s->period_bytes);
	sp_acc_add(&t->whole, &w->profile->law, s->size_bytes, 0,
		   s->period_bytes);
	t->half = half_terms(t->whole);
	return t;
}

/* The half of a sample, by a coin: the same in every report, another in every
 * run, and without regard to when the sample was alive. */
static unsigned int half_of(const struct sp_profile *profile,
			    const struct sp_sample *s)
{
	uint64_t state = profile->seed ^ profile->start_unix_ns;

	state = sp_splitmix64(&state) ^ s->offset_bytes;
	state = sp_splitmix64(&state) ^ s->id;
	return (unsigned int)(sp_splitmix64(&state) >> 63);
}

/* ---- the walk ---- */

/* sign is 1 for a birth and -1 for a free. */
static void alive_add(struct alive *a, const struct sp_acc *one, double sign)
{
	a->samples += sign > 0 ? 1 : UINT64_MAX;
	if (sign > 0)
		a->size_bytes += one->size_bytes;
	else
		a->size_bytes -= one->size_bytes;
	sum_add(&a->est, sign * one->est_bytes);
	sum_add(&a->k2, sign * one->k2);
	sum_add(&a->k3, sign * one->k3);
	sum_add(&a->kz, sign * one->kz);
}

/* Samples that were certain are in both halves, the rest doubled in one. */
static void halves_add(struct half *half, unsigned int own,
		       const struct terms *t, double sign)
{
	const bool certain = !(t->whole.k2 > 0);
	const double est_bytes = sign * t->whole.est_bytes;

	for (unsigned int k = 0; k < 2; k++) {
		if (k != own && !certain) {
			alive_add(&half[k].rest, &t->half, sign);
			continue;
		}
		if (sign > 0)
			half[k].known_bytes += t->whole.size_bytes;
		else
			half[k].known_bytes -= t->whole.size_bytes;
		sum_add(&half[k].curve, certain ? est_bytes : 2 * est_bytes);
	}
}

static void halves_look(struct half *half)
{
	for (unsigned int k = 0; k < 2; k++) {
		const double now = sum_value(&half[k].curve);

		if (now < half[k].best)
			continue;
		half[k].best = now;
		half[k].best_known_bytes = half[k].known_bytes;
		half[k].best_rest = half[k].rest;
	}
}

static void step(struct sp_peak_walk *w, const struct sp_sample *s, double sign)
{
	const struct terms *t = terms_of(w, s);

	alive_add(&w->now, &t->whole, sign);
	halves_add(w->half, half_of(w->profile, s), t, sign);
}

/* No less than (E8)'s upper limit of `acc`, without its costly quantile: Wilson
 * and Hilferty's falls short of it by less than a hundredth of the squared
 * skewness, in standard deviations; ten times that is added. */
static double upper_bound(const struct sp_peak_walk *w,
			  const struct sp_acc *acc)
{
	const double r = (double)acc->period_bytes;
	const double k2 = acc->k2 + r * r, sd = sqrt(k2);
	const double g = (acc->k3 + 2 * r * r * r) / (k2 * sd);
	const double root = 1 + g * w->spread / 6 - g * g / 36;
	const double quantile = 2 / g * (root * root * root - 1);

	if (!(g < 2.5))
		return INFINITY;
	return acc->est_bytes + r + sd * (quantile + 0.1 * g * g) +
	       acc->kz / k2 / 2;
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
	acc.est_bytes = sum_value(&alive->est);
	acc.k2 = sum_value(&alive->k2);
	acc.k3 = sum_value(&alive->k3);
	acc.kz = sum_value(&alive->kz);
	return acc;
}

/* Between the last birth and a free, or at the end: a summit of the curve. */
static void look_at_summit(struct sp_peak_walk *w)
{
	const struct sp_acc acc = as_acc(w, &w->now);

	if (acc.est_bytes > w->peak.raw_bytes) {
		w->peak.raw_bytes = acc.est_bytes;
		w->peak.time_ns = w->last_birth_ns;
		w->peak.samples = w->now.samples;
	}
	if (w->now.size_bytes > w->most_size_bytes)
		w->most_size_bytes = w->now.size_bytes;
	if (upper_bound(w, &acc) > w->upper)
		w->upper = fmax(w->upper,
				sp_estimate_bytes_p3(&acc, w->confidence).hi);
}

void sp_peak_walk_birth(struct sp_peak_walk *w, const struct sp_sample *sample)
{
	w->is_rising = true;
	w->last_birth_ns = sample->born_ns;
	step(w, sample, 1);
}

/* Frees of one moment are one step: in between the curve means nothing. */
void sp_peak_walk_free(struct sp_peak_walk *w, const struct sp_sample *sample,
		       uint64_t time_ns)
{
	if (w->is_rising)
		look_at_summit(w);
	if (w->is_rising || time_ns != w->last_free_ns)
		halves_look(w->half);
	w->is_rising = false;
	w->last_free_ns = time_ns;
	step(w, sample, -1);
}

/* (E23) Live bytes at the moment that a half chose: what is in it was there for
 * certain, the other half estimates the rest. */
static struct sp_interval measure(const struct sp_peak_walk *w,
				  const struct half *chooser, double confidence)
{
	const struct sp_acc rest = as_acc(w, &chooser->best_rest);
	const double known_bytes = (double)chooser->best_known_bytes;
	struct sp_interval live = sp_estimate_bytes_p3(&rest, confidence);

	live.value += known_bytes;
	live.lo += known_bytes;
	return live;
}

/*
 * (E24, E25) The end is a moment that nobody had to choose: the peak is no less
 * than what is alive then.  The best of three lower limits fails if one of them
 * does, so that each has a third of the level.
 */
void sp_peak_walk_end(struct sp_peak_walk *w, struct sp_peak *ret)
{
	const double each = 1 - (1 - w->confidence) / 3;
	const struct sp_acc alive = as_acc(w, &w->now);
	const struct sp_interval end = sp_estimate_bytes_p3(&alive, each);
	struct sp_interval a, b, *bytes = &w->peak.bytes;
	double value;

	look_at_summit(w);
	halves_look(w->half);
	a = measure(w, &w->half[0], each);
	b = measure(w, &w->half[1], each);
	value = fmax((a.value + b.value) / 2, end.value);
	bytes->lo = fmax(fmax(a.lo, b.lo), end.lo);
	bytes->lo = fmax(bytes->lo, (double)w->most_size_bytes);
	bytes->hi = fmax(w->upper, bytes->lo);
	bytes->value = fmin(fmax(value, bytes->lo), bytes->hi);
	*ret = w->peak;
}

struct sp_peak_walk *sp_peak_walk_new(const struct sp_profile *profile,
				      double confidence)
{
	struct sp_peak_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->profile = profile;
	w->confidence = confidence;
	w->spread = sp_special_normal_quantile(1 - (1 - confidence) / 2);
	w->period_bytes = profile->period_bytes;
	return w;
}

void sp_peak_walk_destroy(struct sp_peak_walk *w)
{
	free(w);
}

/* ---- events ---- */

/* Frees before births: an address that one nanosecond frees and gives out again
 * was not there twice. */
static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if ((x->what & 1) != (y->what & 1))
		return x->what & 1 ? 1 : -1;
	return x->what < y->what ? -1 : x->what > y->what;
}

/* Of objects that were alive at some moment. */
static size_t collect_events(const struct sp_profile *profile,
			     const struct sp_selection *births,
			     struct event *events)
{
	size_t n = 0;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sp_sample *s = &profile->samples[i];
		const uint64_t gone_ns = sp_sample_gone_ns(profile, s);

		if (gone_ns <= s->born_ns ||
		    !sp_selection_has(births, profile, s))
			continue;
		events[n++] = (struct event){s->born_ns, 2 * i + 1};
		if (gone_ns != SP_NEVER)
			events[n++] = (struct event){gone_ns, 2 * i};
	}
	qsort(events, n, sizeof(*events), compare_events);
	return n;
}

static void walk_over(struct sp_peak_walk *w, const struct event *events,
		      size_t n)
{
	const struct sp_sample *samples = w->profile->samples;

	for (size_t e = 0; e < n; e++) {
		const uint64_t r = samples[events[e].what >> 1].period_bytes;

		if (r > w->period_bytes)
			w->period_bytes = r;
	}
	for (size_t e = 0; e < n; e++) {
		const struct sp_sample *s = &samples[events[e].what >> 1];

		if (events[e].what & 1)
			sp_peak_walk_birth(w, s);
		else
			sp_peak_walk_free(w, s, events[e].time_ns);
	}
}

int sp_peak(const struct sp_profile *profile,
	    const struct sp_selection *selection, double confidence,
	    struct sp_peak *ret, struct sp_error *err)
{
	struct sp_selection births = *selection;
	struct sp_peak_walk *w;
	struct event *events;
	size_t n;

	if (profile->peak) {
		*ret = *profile->peak;
		return 0;
	}
	w = sp_peak_walk_new(profile, confidence);
	events = calloc(profile->n_samples + 1, 2 * sizeof(*events));
	if (!w || !events) {
		sp_peak_walk_destroy(w);
		free(events);
		return sp_error_set(err, -ENOMEM, profile->path,
				    "not enough memory for the peak of %zu "
				    "samples",
				    profile->n_samples);
	}
	births.view = SP_VIEW_ALLOC;
	n = collect_events(profile, &births, events);
	walk_over(w, events, n);
	sp_peak_walk_end(w, ret);
	sp_peak_walk_destroy(w);
	free(events);
	return 0;
}
