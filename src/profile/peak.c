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

#include "base/rng.h"
#include "profile/special.h"

/* Just before the end of time: whatever was never freed is alive. */
#define LAST_MOMENT (SP_NEVER - 1)

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

/* The curve that half of the samples makes, and where it is highest: the last
 * moment of the last of equally high stretches. */
struct half {
	struct sum curve;
	double best;
	uint64_t time_ns;
};

struct event {
	uint64_t time_ns;
	uint64_t what; /* twice the sample's position, + 1 for its birth */
};

struct walk {
	const struct sp_profile *profile;
	double confidence;
	/* What is alive now. */
	uint64_t samples;
	unsigned __int128 size_bytes;
	struct sum est, k2, k3, kz;
	/* The highest so far. */
	unsigned __int128 most_size_bytes;
	double upper;
	double spread;         /* normal quantile of the upper limit */
	uint64_t period_bytes; /* the largest */
	uint64_t last_birth_ns;
	struct half half[2];
	struct sp_peak *peak;
};

/* The sums of one sample alone. */
static struct sp_acc terms(const struct sp_profile *profile,
			   const struct sp_sample *s)
{
	struct sp_acc one;

	sp_acc_init(&one, s->period_bytes);
	sp_acc_add(&one, &profile->law, s->size_bytes, s->offset_bytes,
		   s->period_bytes);
	return one;
}

/* The half of a sample, by a coin: the same in every report, another in every
 * run, and without regard to when the sample was alive. */
static unsigned int half_of(const struct sp_profile *profile, size_t i)
{
	uint64_t state = profile->seed ^ profile->start_unix_ns;

	state = sp_splitmix64(&state) ^ profile->samples[i].offset_bytes;
	state = sp_splitmix64(&state) ^ i;
	return (unsigned int)(sp_splitmix64(&state) >> 63);
}

/* ---- the walk ---- */

/* Samples that were certain are in both halves, the rest doubled in one. */
static void halves_add(struct half *half, unsigned int own, bool certain,
		       double est_bytes)
{
	if (certain) {
		sum_add(&half[!own].curve, est_bytes);
		sum_add(&half[own].curve, est_bytes);
		return;
	}
	sum_add(&half[own].curve, 2 * est_bytes);
}

static void halves_look(struct half *half, uint64_t time_ns)
{
	for (unsigned int k = 0; k < 2; k++) {
		const double now = sum_value(&half[k].curve);

		if (now < half[k].best)
			continue;
		half[k].best = now;
		half[k].time_ns = time_ns;
	}
}

static void step(struct walk *w, const struct event *e)
{
	const bool born = e->what & 1;
	const size_t i = e->what >> 1;
	const struct sp_acc one = terms(w->profile, &w->profile->samples[i]);
	const bool certain = !(one.k2 > 0);
	const double sign = born ? 1 : -1;

	w->samples += born ? 1 : UINT64_MAX;
	if (born)
		w->size_bytes += one.size_bytes;
	else
		w->size_bytes -= one.size_bytes;
	sum_add(&w->est, sign * one.est_bytes);
	sum_add(&w->k2, sign * one.k2);
	sum_add(&w->k3, sign * one.k3);
	sum_add(&w->kz, sign * one.kz);
	halves_add(w->half, half_of(w->profile, i), certain,
		   sign * one.est_bytes);
	if (born)
		w->last_birth_ns = e->time_ns;
}

/* No less than (E8)'s upper limit of `acc`, without its costly quantile: Wilson
 * and Hilferty's falls short of it by less than a hundredth of the squared
 * skewness, in standard deviations; ten times that is added. */
static double upper_bound(const struct walk *w, const struct sp_acc *acc)
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

/* The samples alive now as an accumulator for limits of bytes.  Without any the
 * sums are zero, but for what rounding left. */
static struct sp_acc now_alive(const struct walk *w)
{
	struct sp_acc acc;

	sp_acc_init(&acc, w->period_bytes);
	if (!w->samples)
		return acc;
	acc.samples = w->samples;
	acc.size_bytes = w->size_bytes > UINT64_MAX ? UINT64_MAX
						    : (uint64_t)w->size_bytes;
	acc.est_bytes = sum_value(&w->est);
	acc.k2 = sum_value(&w->k2);
	acc.k3 = sum_value(&w->k3);
	acc.kz = sum_value(&w->kz);
	return acc;
}

/* Between the last birth and a free, or at the end: a summit of the curve. */
static void look_at_summit(struct walk *w)
{
	const struct sp_acc acc = now_alive(w);

	if (acc.est_bytes > w->peak->raw_bytes) {
		w->peak->raw_bytes = acc.est_bytes;
		w->peak->time_ns = w->last_birth_ns;
		w->peak->samples = w->samples;
	}
	if (w->size_bytes > w->most_size_bytes)
		w->most_size_bytes = w->size_bytes;
	if (upper_bound(w, &acc) > w->upper)
		w->upper = fmax(w->upper,
				sp_estimate_bytes_p3(&acc, w->confidence).hi);
}

static void walk_over(struct walk *w, const struct event *events, size_t n)
{
	bool rising = true;

	for (size_t i = 0; i < n; i++) {
		const bool born = events[i].what & 1;

		if (!born) {
			if (rising)
				look_at_summit(w);
			halves_look(w->half, events[i].time_ns - 1);
		}
		rising = born;
		step(w, &events[i]);
	}
	look_at_summit(w);
	halves_look(w->half, LAST_MOMENT);
}

/* ---- what a half says of the moment that the other chose ---- */

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

/* (E23) Live bytes at the moment that half `chooser` chose: what is in it was
 * there for certain, the other half estimates the rest. */
static struct sp_interval measure(const struct walk *w, unsigned int chooser,
				  const struct event *events, size_t n,
				  double confidence)
{
	const struct sp_profile *profile = w->profile;
	const uint64_t time_ns = w->half[chooser].time_ns;
	unsigned __int128 known_bytes = 0;
	struct sp_interval live;
	struct sp_acc rest;

	sp_acc_init(&rest, profile->period_bytes);
	for (size_t e = 0; e < n; e++) {
		const size_t i = events[e].what >> 1;
		const struct sp_sample *s = &profile->samples[i];
		struct sp_acc one;

		if (!(events[e].what & 1) || s->born_ns > time_ns ||
		    s->freed_ns <= time_ns)
			continue;
		one = terms(profile, s);
		if (half_of(profile, i) == chooser || !(one.k2 > 0)) {
			known_bytes += one.size_bytes;
			continue;
		}
		one = half_terms(one);
		sp_acc_merge(&rest, &one);
	}
	live = sp_estimate_bytes_p3(&rest, confidence);
	live.value += (double)known_bytes;
	live.lo += (double)known_bytes;
	return live;
}

/*
 * (E24, E25) The end is a moment that nobody had to choose: the peak is no less
 * than what is alive then.  The best of three lower limits fails if one of them
 * does, so that each has a third of the level.
 */
static void conclude(const struct walk *w, const struct event *events, size_t n)
{
	const double each = 1 - (1 - w->confidence) / 3;
	const struct sp_interval a = measure(w, 0, events, n, each);
	const struct sp_interval b = measure(w, 1, events, n, each);
	const struct sp_acc alive = now_alive(w);
	const struct sp_interval end = sp_estimate_bytes_p3(&alive, each);
	struct sp_interval *bytes = &w->peak->bytes;
	double value = fmax((a.value + b.value) / 2, end.value);

	bytes->lo = fmax(fmax(a.lo, b.lo), end.lo);
	bytes->lo = fmax(bytes->lo, (double)w->most_size_bytes);
	bytes->hi = fmax(w->upper, bytes->lo);
	bytes->value = fmin(fmax(value, bytes->lo), bytes->hi);
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

		if (s->freed_ns <= s->born_ns ||
		    !sp_selection_has(births, profile, s))
			continue;
		events[n++] = (struct event){s->born_ns, 2 * i + 1};
		if (s->freed_ns != SP_NEVER)
			events[n++] = (struct event){s->freed_ns, 2 * i};
	}
	qsort(events, n, sizeof(*events), compare_events);
	return n;
}

static void walk_init(struct walk *w, const struct sp_profile *profile,
		      double confidence, const struct event *events, size_t n,
		      struct sp_peak *peak)
{
	*w = (struct walk){
		.profile = profile,
		.confidence = confidence,
		.spread = sp_special_normal_quantile(1 - (1 - confidence) / 2),
		.period_bytes = profile->period_bytes,
		.peak = peak,
	};
	for (size_t e = 0; e < n; e++) {
		const uint64_t r =
			profile->samples[events[e].what >> 1].period_bytes;

		if (r > w->period_bytes)
			w->period_bytes = r;
	}
	w->half[0].time_ns = LAST_MOMENT;
	w->half[1].time_ns = LAST_MOMENT;
	*peak = (struct sp_peak){.raw_bytes = 0};
}

int sp_peak(const struct sp_profile *profile,
	    const struct sp_selection *selection, double confidence,
	    struct sp_peak *ret, struct sp_error *err)
{
	struct sp_selection births = *selection;
	struct event *events;
	struct walk w;
	size_t n;

	events = calloc(profile->n_samples + 1, 2 * sizeof(*events));
	if (!events)
		return sp_error_set(err, -ENOMEM, profile->path,
				    "not enough memory for the peak of %zu "
				    "samples",
				    profile->n_samples);
	births.view = SP_VIEW_ALLOC;
	n = collect_events(profile, &births, events);
	walk_init(&w, profile, confidence, events, n, ret);
	walk_over(&w, events, n);
	conclude(&w, events, n);
	free(events);
	return 0;
}
