/* SPDX-License-Identifier: MIT */
/*
 * Known totals (E10, E17).  In each stratum the unseen amount of the subset
 * and of the rest together is known, and two independent estimates of the
 * subset's part of it are at hand: its own, and what the rest's leaves.  They
 * are weighted by their variances; the cumulants of the strata add up.
 *
 * One phantom is enough for all strata: that nothing of B bytes was sampled has
 * the probability e^(-B / R) wherever they are.  It stands where it moves the
 * limit most.  Upper limits have less of it where other strata are as uncertain
 * (E74).
 */
#include "stats/strata.h"

#include <math.h>
#include <stdbool.h>

#include "stats/special.h"

/* What was not sampled of one side of a stratum, as cumulants. */
struct side {
	double seen;
	double k1;
	double k2;
	double k3;
	double phantom[3]; /* its cumulants; 0 if everything was recorded */
	double rough;      /* half a step of the lattice */
	double smooth;     /* what a phantom leaves of it */
	double own_smooth; /* what is left of it beside the side's own one */
	double chance_samples;
	bool has_samples;
};

struct cell {
	struct side part;
	struct side rest;
	double unseen; /* of both together, at least; INFINITY: not known */
	double slack;  /* and at most that much more */
	double more;   /* that the part's phantom does not speak for */
	double gain;   /* of the part's value, if alone */
	bool is_alone; /* `unseen` is a bound only */
};

/* The part's unseen amount in one cell, or in all of them. */
struct law {
	double k1;
	double k2;
	double k3;
	double lattice;     /* in all: times k2 */
	double slack_share; /* what it gains by the slack; in all: at most */
};

enum phantom { NOWHERE, ON_PART, ON_REST };

static struct side side_of_bytes(const struct sp_acc *acc)
{
	const double r = acc->period_bytes == 1 ? 0 : (double)acc->period_bytes;
	const double step = acc->k2 > 0 ? acc->kz / acc->k2 : 0;
	const double smooth = r > 0 ? sp_estimator_lattice(step, r) : 0;

	return (struct side){
		.seen = (double)acc->size_bytes,
		.k1 = fmax(acc->est_bytes - (double)acc->size_bytes, 0),
		.k2 = acc->k2,
		.k3 = acc->k3,
		.phantom = {r, r * r, 2 * r * r * r},
		.rough = step / 2,
		.smooth = smooth,
		.own_smooth = r > 0 ? smooth * acc->k2 / (acc->k2 + r * r) : 0,
		.chance_samples = (double)(acc->samples - acc->sure_samples),
		.has_samples = acc->samples > 0,
	};
}

/* The phantom is the smallest object that there may be. */
static struct side side_of_objects(const struct sp_acc *acc,
				   uint64_t smallest_bytes)
{
	const uint64_t r = acc->period_bytes;
	const double n = 1 / sp_inclusion_probability(smallest_bytes, r);
	const double q = r == 1 ? 0 : exp(-(double)smallest_bytes / (double)r);

	return (struct side){
		.seen = (double)acc->samples,
		.k1 = fmax(acc->est_count - (double)acc->samples, 0),
		.k2 = acc->c2,
		.k3 = acc->c3,
		.phantom = {q * n, q * n * n, q * (1 + q) * n * n * n},
		.rough = 0.5,
		.smooth = 0.5,
		.own_smooth = 0.5,
		.chance_samples = (double)(acc->samples - acc->sure_samples),
		.has_samples = acc->samples > 0,
	};
}

/* A total that is too small by more than the slack is none. */
static struct cell cell_of(struct side part, struct side rest, double total,
			   double slack, bool is_alone)
{
	const double unseen = total - part.seen - rest.seen;
	const bool is_wrong = unseen < -slack;

	return (struct cell){
		.part = part,
		.rest = rest,
		.unseen = is_wrong ? INFINITY : fmax(unseen, 0),
		.slack = slack,
		.is_alone = is_alone || is_wrong,
	};
}

static void add_phantom(struct side *s)
{
	s->k1 += s->phantom[0];
	s->k2 += s->phantom[1];
	s->k3 += s->phantom[2];
}

/*
 * Neither side has anything to estimate from.  What is missing may be anyone's:
 * all of it for the upper limit, nothing for the lower one.  If the part was
 * not seen here at all, a phantom speaks for it, wherever that stands.
 */
static struct law law_of_nothing(const struct cell *c, bool is_upper)
{
	const bool spoken_for = !c->part.has_samples && c->part.phantom[1] > 0;

	if (!is_upper || spoken_for)
		return (struct law){0};
	return (struct law){.k1 = c->unseen, .slack_share = c->slack};
}

/*
 * (E17) The weights come from the same samples as what they weigh, which makes
 * the variance of s samples too small by 1 - 1/s.  A phantom makes up for that
 * in its own stratum.
 */
static double cell_freedom(const struct cell *c)
{
	const double s = c->part.chance_samples + c->rest.chance_samples;

	return s > 1 ? s / (s - 1) : 1;
}

/*
 * (E40) What is known to be missing shifts the part's unseen amount, and the
 * spread goes with it.  The tail towards nothing is that of the part, the one
 * towards everything that of the rest: of small objects an unseen byte there is
 * worth `shift` times as much.  A limit that was moved and kept its spread
 * would begin away from the end, and no level would bring it there.  Of large
 * objects there are that many times as many unseen ones; the part's long tail
 * only has to know if they are more than three times as many.
 */
static void scale_spread(struct law *law, const struct cell *c,
			 const struct side *a, const struct side *b,
			 bool is_upper)
{
	const double unseen = c->part.k1 + c->rest.k1;
	const double small = unseen / (unseen + c->part.seen + c->rest.seen);
	const bool of_rest = is_upper && law->k3 < 0;
	const double own = of_rest ? b->k1 : a->k1;
	const double left = of_rest ? c->unseen - law->k1 : law->k1;
	const double shift = own > 0 ? fmax(left / own, 0) : 1;

	/* more slack is more spread, too: at most all of it */
	if (of_rest || shift > 2)
		law->slack_share = c->slack;
	if (is_upper && !of_rest) {
		law->k2 *= fmax(1, shift - 2);
		law->k3 *= fmax(1, shift - 2);
	} else if (unseen > 0) {
		law->k2 *= 1 - small + small * shift * shift;
		law->k3 *= 1 - small + small * shift * shift * shift;
	}
}

/*
 * What is left of a third cumulant.  Where part and rest have as many samples
 * of the same sizes nothing is, and the order in which the samples were added
 * up is not to decide which of the two has the longer tail.
 */
#define EQUAL 1e-9

static double less_k3(double of_part, double of_rest)
{
	const double k3 = of_part - of_rest;

	return fabs(k3) > EQUAL * of_part ? k3 : 0;
}

/* (E10) in one cell. */
static struct law law_of(const struct cell *c, enum phantom phantom,
			 bool is_upper)
{
	struct side a = c->part, b = c->rest;
	double t, k = 0, l = 1, from_a, from_b;
	struct law law;

	if (phantom == ON_PART)
		add_phantom(&a);
	if (phantom == ON_REST)
		add_phantom(&b);
	from_a = a.rough;
	from_b = b.rough;
	if (is_upper)
		from_a = phantom == NOWHERE ? a.smooth : a.own_smooth;
	else
		from_b = phantom == NOWHERE ? b.smooth : b.own_smooth;
	if (c->is_alone)
		return (struct law){a.k1, a.k2, a.k3, from_a, 0};
	t = a.k2 + b.k2;
	if (!(t > 0))
		return law_of_nothing(c, is_upper);
	k = a.k2 / t;
	l = b.k2 / t;
	law = (struct law){
		.k1 = l * a.k1 + k * (c->unseen - b.k1),
		.k2 = k * b.k2 * (phantom == NOWHERE ? cell_freedom(c) : 1),
		.k3 = less_k3(l * l * l * a.k3, k * k * k * b.k3),
		.lattice = l * from_a + k * from_b,
		.slack_share = k * c->slack,
	};
	scale_spread(&law, c, &a, &b, is_upper);
	return law;
}

/* Independent parts add up; the lattice is a mean over the variance. */
static void add_law(struct law *sum, const struct law *one)
{
	sum->k1 += one->k1;
	sum->k2 += one->k2;
	sum->k3 += one->k3;
	sum->lattice += one->lattice * one->k2;
	sum->slack_share = fmax(sum->slack_share, one->slack_share);
}

/* Cornish and Fisher's first two terms: near enough to choose by. */
static double rough_quantile(double k1, double k2, double k3, double t)
{
	return k2 > 0 ? k1 + t * sqrt(k2) + (t * t - 1) * k3 / (6 * k2) : k1;
}

/* Where the phantom moves the limit most. */
static uint32_t place_phantom(const struct cell *cells, uint32_t n,
			      bool is_upper, double prob)
{
	const enum phantom kind = is_upper ? ON_PART : ON_REST;
	const double t = sp_special_normal_quantile(prob);
	const double sign = is_upper ? 1 : -1;
	struct law all = {0};
	double best = -INFINITY;
	uint32_t place = 0;

	for (uint32_t i = 0; n > 1 && i < n; i++) {
		const struct law one = law_of(&cells[i], NOWHERE, is_upper);

		add_law(&all, &one);
	}
	for (uint32_t i = 0; n > 1 && i < n; i++) {
		const struct law one = law_of(&cells[i], NOWHERE, is_upper);
		const struct law with = law_of(&cells[i], kind, is_upper);
		const double limit =
			rough_quantile(all.k1 - one.k1 + with.k1,
				       fmax(all.k2 - one.k2 + with.k2, 0),
				       all.k3 - one.k3 + with.k3, t);

		if (sign * limit > best) {
			best = sign * limit;
			place = i;
		}
	}
	return place;
}

/* All cells but the one where the phantom stands. */
static struct law law_of_others(const struct cell *cells, uint32_t n,
				uint32_t place, bool is_upper)
{
	struct law sum = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct law one = law_of(&cells[i], NOWHERE, is_upper);

		if (i != place)
			add_law(&sum, &one);
	}
	return sum;
}

/*
 * (E74) An upper limit with a whole phantom is one for the worst case: that
 * just so much is hidden, and nothing of it was sampled.  If other cells may be
 * too low or too high by much more than a phantom, that they are too low as
 * well is asked too much.  Computed: less than this misses more often.
 */
#define PHANTOM_LEAST 0.6
#define PHANTOM_MORE  0.03

static double phantom_strength(double others_k2, double phantom_k2, double t)
{
	if (!(others_k2 > 0) || !(phantom_k2 > 0))
		return 1;
	return fmin(1, PHANTOM_LEAST + PHANTOM_MORE * t * t * t *
					       sqrt(phantom_k2 / others_k2));
}

static void weaken_phantom(struct side *s, double strength)
{
	s->phantom[0] *= strength;
	s->phantom[1] *= strength * strength;
	s->phantom[2] *= strength * strength * strength;
}

/*
 * (E74) R log E e^(D/R), by which the limit of something with a tail e^(-x/R)
 * rises if D, whose mean is 0, is added: with the negative skewness of a gamma
 * distribution's mirror.
 */
static double rise_of_tail(double k2, double k3, double r)
{
	const double scale = -k3 / k2 / 2 / r, half = k2 / r / 2;

	if (scale < 1e-4) /* the normal distribution's */
		return half * (1 - scale * 2 / 3);
	return half * 2 * (scale - log1p(scale)) / (scale * scale);
}

/*
 * (E74) The phantom's tail is long, that of a cell where the part has nearly
 * all is short.  In one law for both the short tail would take from the long
 * one, and at high levels nothing would be left of it: so the limit is not
 * below that of the phantom's own cell with the others at their mean, moved by
 * what they add to such a tail if it is longer than they are wide.
 */
static double least_upper(const struct cell *c, const struct law *others,
			  double prob)
{
	const double r = sqrt(c->part.phantom[1]);
	const struct law own = law_of(c, NOWHERE, true);
	struct law with = law_of(c, ON_PART, true);
	double limit, length;

	with.k3 = -sp_estimator_end_at_zero(c->unseen - with.k1, with.k2,
					    -with.k3);
	limit = with.lattice +
		sp_estimator_p3_quantile(with.k1, with.k2, with.k3, prob);
	if (!(others->k3 < 0) || !(others->k2 > 0) || !(r > 0))
		return others->k1 + limit;
	length = (limit - own.k1) * r / others->k2;
	return others->k1 + limit +
	       rise_of_tail(others->k2, others->k3, r) *
		       fmin(fmax(length - 1, 0), 1);
}

/* One limit of the unseen amount, which lies between nothing and all of it. */
static double limit_of(const struct cell *cells, uint32_t n, bool is_upper,
		       double prob)
{
	const uint32_t place = place_phantom(cells, n, is_upper, prob);
	struct law all = law_of_others(cells, n, place, is_upper), one;
	double lattice, limit, most = 0, more = 0, least = -INFINITY;
	struct cell c;

	if (!n)
		return 0;
	c = cells[place];
	for (uint32_t i = 0; i < n; i++) {
		most += cells[i].unseen;
		more += cells[i].more;
	}
	if (is_upper && all.k2 > 0) {
		least = least_upper(&c, &all, prob);
		weaken_phantom(
			&c.part,
			phantom_strength(all.k2, c.part.phantom[1],
					 sp_special_normal_quantile(prob)));
	}
	one = law_of(&c, is_upper ? ON_PART : ON_REST, is_upper);
	add_law(&all, &one);
	lattice = all.k2 > 0 ? all.lattice / all.k2 : 0;
	all.k3 = is_upper ? -sp_estimator_end_at_zero(most - all.k1, all.k2,
						      -all.k3)
			  : sp_estimator_end_at_zero(all.k1, all.k2, all.k3);
	limit = sp_estimator_p3_quantile(all.k1, all.k2, all.k3, prob);
	if (!is_upper)
		return limit - lattice;
	return fmax(limit + lattice, least) + all.slack_share + more;
}

static double clamp_value(double v, double lo, double hi)
{
	return fmin(fmax(v, lo), hi);
}

/*
 * Where neither side can be estimated, what is missing is the part's as far as
 * only the part was seen there; where nothing was seen, as far as the part has
 * a `share` in all cells.
 */
static double value_of(const struct cell *c, double share)
{
	if (c->is_alone)
		return fmax(c->part.k1 + c->gain, 0);
	if (c->part.k2 + c->rest.k2 > 0)
		return law_of(c, NOWHERE, true).k1;
	if (!c->part.has_samples)
		return c->rest.has_samples ? 0 : share * c->unseen;
	return c->rest.has_samples ? c->unseen / 2 : c->unseen;
}

/* What the part has of what the samples of all cells stand for. */
static double share_of_part(const struct cell *cells, uint32_t n)
{
	double part = 0, rest = 0;

	for (uint32_t i = 0; i < n; i++) {
		part += cells[i].part.seen + cells[i].part.k1;
		rest += cells[i].rest.seen + cells[i].rest.k1;
	}
	return part > 0 ? part / (part + rest) : 0;
}

/* What was seen and what was not, of the part, in all cells. */
struct amount {
	double seen;
	double unseen;      /* at least that */
	double unseen_most; /* of both sides */
	bool has_samples;
};

static struct amount amount_of(const struct cell *cells, uint32_t n)
{
	const double share = share_of_part(cells, n);
	struct amount a = {0};
	double value = 0;

	for (uint32_t i = 0; i < n; i++) {
		a.seen += cells[i].part.seen;
		a.has_samples |= cells[i].part.has_samples;
		a.unseen_most += cells[i].unseen;
		value += value_of(&cells[i], share);
	}
	a.unseen = clamp_value(value, 0, a.unseen_most);
	return a;
}

static double lower_limit(const struct cell *cells, uint32_t n, double prob)
{
	const struct amount a = amount_of(cells, n);

	if (!a.has_samples)
		return 0;
	return a.seen +
	       clamp_value(limit_of(cells, n, false, prob), 0, a.unseen_most);
}

/* (E17) */
static struct sp_interval estimate_cells(const struct cell *cells, uint32_t n,
					 double confidence)
{
	const double half = (1 - confidence) / 2;
	const struct amount a = amount_of(cells, n);
	const double lo = lower_limit(cells, n, half);
	double slack = 0, hi;

	for (uint32_t i = 0; i < n; i++)
		slack = fmax(slack, cells[i].slack);
	hi = a.seen + clamp_value(limit_of(cells, n, true, 1 - half), 0,
				  a.unseen_most + slack);
	return sp_interval_around(a.seen + a.unseen, lo, hi);
}

static void make_byte_cells(const struct sp_stratum *strata, uint32_t n,
			    double slack_bytes, struct cell *ret)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = cell_of(side_of_bytes(&strata[i].part),
				 side_of_bytes(&strata[i].rest),
				 strata[i].total_bytes, slack_bytes,
				 strata[i].bytes_alone);
}

static void make_object_cells(const struct sp_stratum *strata, uint32_t n,
			      double slack_bytes, struct cell *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t z = strata[i].smallest.bytes;

		ret[i] = cell_of(side_of_objects(&strata[i].part, z),
				 side_of_objects(&strata[i].rest, z),
				 strata[i].total_objects,
				 slack_bytes / (double)z,
				 strata[i].objects_alone);
		ret[i].more = strata[i].smallest.more;
		ret[i].gain = strata[i].objects_gain;
	}
}

/* (E46) `part` and `rest` are independent, their variances add up. */
static double gain_of(const struct cell *c)
{
	const double variance = c->part.k2 + c->rest.k2;

	if (c->is_alone || !(variance > 0))
		return 0;
	return (c->unseen - c->part.k1 - c->rest.k1) / variance;
}

double sp_stratum_bytes_gain(const struct sp_stratum *stratum,
			     double slack_bytes)
{
	struct cell cell;

	make_byte_cells(stratum, 1, slack_bytes, &cell);
	return gain_of(&cell);
}

double sp_stratum_objects_gain(const struct sp_stratum *stratum,
			       double slack_bytes)
{
	struct cell cell;

	make_object_cells(stratum, 1, slack_bytes, &cell);
	return gain_of(&cell);
}

struct sp_interval sp_strata_bytes(const struct sp_stratum *strata, uint32_t n,
				   double slack_bytes, double confidence)
{
	struct cell cells[SP_STRATA_MAX];

	make_byte_cells(strata, n, slack_bytes, cells);
	return estimate_cells(cells, n, confidence);
}

struct sp_interval sp_strata_objects(const struct sp_stratum *strata,
				     uint32_t n, double slack_bytes,
				     double confidence)
{
	struct cell cells[SP_STRATA_MAX];

	make_object_cells(strata, n, slack_bytes, cells);
	return estimate_cells(cells, n, confidence);
}

double sp_strata_bytes_lower(const struct sp_stratum *strata, uint32_t n,
			     double slack_bytes, double prob)
{
	struct cell cells[SP_STRATA_MAX];

	make_byte_cells(strata, n, slack_bytes, cells);
	return lower_limit(cells, n, prob);
}

double sp_strata_objects_lower(const struct sp_stratum *strata, uint32_t n,
			       double slack_bytes, double prob)
{
	struct cell cells[SP_STRATA_MAX];

	make_object_cells(strata, n, slack_bytes, cells);
	return lower_limit(cells, n, prob);
}

double sp_strata_bytes_value(const struct sp_stratum *strata, uint32_t n,
			     double slack_bytes)
{
	struct cell cells[SP_STRATA_MAX];
	struct amount a;

	make_byte_cells(strata, n, slack_bytes, cells);
	a = amount_of(cells, n);
	return a.seen + a.unseen;
}

double sp_strata_objects_value(const struct sp_stratum *strata, uint32_t n,
			       double slack_bytes)
{
	struct cell cells[SP_STRATA_MAX];
	struct amount a;

	make_object_cells(strata, n, slack_bytes, cells);
	a = amount_of(cells, n);
	return a.seen + a.unseen;
}
