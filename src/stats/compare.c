/* SPDX-License-Identifier: MIT */
/*
 * Differences between two sides, in one primitive: the contrast
 * new - factor * old with its interval.  A limit on relative growth is a
 * contrast with a factor, one on an absolute amount a contrast with factor 1,
 * and a p-value the level at which an interval of it begins to be beyond.  What
 * is printed and what decides can therefore never disagree.
 */
#include "stats/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "stats/special.h"

static double square_of(double x)
{
	return x * x;
}

static void set_values(struct sp_runs *runs, double sum, double squares,
		       size_t n)
{
	const double count = (double)n;

	runs->n = n;
	runs->mean = sum / count;
	runs->var = n > 1 ? fmax(squares, 0) / (count - 1) : 0;
}

/* Of the logarithms of values that come one by one. */
struct logs {
	double n, mean, squares;
};

static void add_log(struct logs *logs, double value)
{
	double logarithm, from_mean;

	logs->n++;
	if (!(value > 0))
		logs->squares = INFINITY;
	/* nothing makes it finite again */
	if (isinf(logs->squares))
		return;
	logarithm = log(value);
	from_mean = logarithm - logs->mean;
	logs->mean += from_mean / logs->n;
	logs->squares += from_mean * (logarithm - logs->mean);
}

static double log_variance(const struct logs *logs)
{
	if (logs->n < 2)
		return 0;
	return isfinite(logs->squares) ? logs->squares / (logs->n - 1)
				       : INFINITY;
}

void sp_runs_exact(struct sp_runs *ret, const double *values, size_t n)
{
	double sum = 0, squares = 0;
	struct logs logs = {0};

	*ret = (struct sp_runs){.level = 0};
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	for (size_t i = 0; i < n; i++) {
		squares += square_of(values[i] - sum / (double)n);
		add_log(&logs, values[i]);
	}
	set_values(ret, sum, squares, n);
	ret->log_var = log_variance(&logs);
	ret->limits = (struct sp_interval){ret->mean, ret->mean, ret->mean};
	ret->certain = ret->mean;
}

static double normal_two_sided(double level)
{
	return sp_special_normal_quantile(0.5 + level / 2);
}

/* Limits of a mean of independent estimates: their distances add up as their
 * squares do. */
void sp_runs_estimated(struct sp_runs *ret, const struct sp_interval *runs,
		       size_t n, double level)
{
	const double count = (double)n;
	const double t = level > 0 ? normal_two_sided(level) : 0;
	double sum = 0, squares = 0, below = 0, above = 0, widths = 0;
	struct logs logs = {0};

	*ret = (struct sp_runs){.level = level};
	for (size_t i = 0; i < n; i++)
		sum += runs[i].value;
	for (size_t i = 0; i < n; i++) {
		squares += square_of(runs[i].value - sum / count);
		add_log(&logs, runs[i].value);
		below += square_of(runs[i].value - runs[i].lo);
		above += square_of(runs[i].hi - runs[i].value);
		if (level > 0)
			widths +=
				square_of((runs[i].hi - runs[i].lo) / (2 * t));
	}
	set_values(ret, sum, squares, n);
	ret->log_var = log_variance(&logs);
	ret->noise = widths / count;
	ret->limits = (struct sp_interval){
		ret->mean, fmax(ret->mean - sqrt(below) / count, 0),
		ret->mean + sqrt(above) / count};
}

static double acc_value(const struct sp_acc *acc, bool is_count)
{
	return is_count ? acc->est_count : acc->est_bytes;
}

void sp_runs_sampled(struct sp_runs *ret, const struct sp_acc *runs, size_t n,
		     bool is_count)
{
	double sum = 0, squares = 0;
	struct logs logs = {0};

	*ret = (struct sp_runs){.of_acc = true, .is_count = is_count};
	sp_acc_init(&ret->acc, runs[0].period_bytes);
	for (size_t i = 0; i < n; i++) {
		sum += acc_value(&runs[i], is_count);
		sp_acc_merge(&ret->acc, &runs[i]);
	}
	for (size_t i = 0; i < n; i++) {
		squares += square_of(acc_value(&runs[i], is_count) -
				     sum / (double)n);
		add_log(&logs, acc_value(&runs[i], is_count));
	}
	set_values(ret, sum, squares, n);
	ret->log_var = log_variance(&logs);
	ret->noise = (is_count ? ret->acc.c2 : ret->acc.k2) / (double)n;
	ret->certain = (is_count ? (double)ret->acc.samples
				 : (double)ret->acc.size_bytes) /
		       (double)n;
}

struct sp_interval sp_runs_mean(const struct sp_runs *runs, double confidence)
{
	const double n = (double)runs->n;
	struct sp_interval i = runs->limits;
	double scale;

	if (runs->of_acc) {
		i = runs->is_count
			    ? sp_estimate_objects_p3(&runs->acc,
						     SP_SMALLEST_UNKNOWN,
						     confidence)
			    : sp_estimate_bytes_p3(&runs->acc, confidence);
		return (struct sp_interval){i.value / n, i.lo / n, i.hi / n};
	}
	if (!(runs->level > 0) || confidence == runs->level)
		return i;
	scale = normal_two_sided(confidence) / normal_two_sided(runs->level);
	return (struct sp_interval){
		i.value,
		fmax(i.value - scale * (i.value - i.lo), runs->certain),
		i.value + scale * (i.hi - i.value)};
}

/* Student's t for real degrees of freedom, by the beta distribution. */
static double student_quantile(double two_sided, double freedom)
{
	double x;

	if (freedom > 1e6)
		return normal_two_sided(two_sided);
	x = sp_special_beta_quantile(freedom / 2, 0.5, 1 - two_sided);
	return x > 0 ? sqrt(freedom * (1 - x) / x) : INFINITY;
}

size_t sp_runs_freedom(const struct sp_runs *old, const struct sp_runs *new)
{
	return old->n + new->n - 2;
}

/* Of one run of that side, sampling and the program's usual noise together. */
static double expected_variance(const struct sp_runs *runs, double spread)
{
	return runs->noise + spread * square_of(runs->mean);
}

/* The variance between runs over the expected one: of both sides, each by its
 * degrees of freedom; 0 if none is expected. */
double sp_run_variance_ratio(const struct sp_runs *old,
			     const struct sp_runs *new, double spread)
{
	const struct sp_runs *const sides[] = {old, new};
	double sum = 0, freedom = 0;

	for (int i = 0; i < 2; i++) {
		const double expected = expected_variance(sides[i], spread);
		const double d = (double)(sides[i]->n - 1);

		if (!(d > 0) || !(expected > 0))
			continue;
		sum += d * sides[i]->var / expected;
		freedom += d;
	}
	return freedom > 0 ? sum / freedom : 0;
}

/* How far the limits are from the change. */
struct distances {
	double below, above;
};

static struct distances both_ways(double half)
{
	return (struct distances){half, half};
}

/* Both sides together, each by its degrees of freedom: of one run, the other
 * one's. */
static double pooled(const struct sp_runs *old, double of_old,
		     const struct sp_runs *new, double of_new)
{
	if (old->n == 1)
		return of_new;
	if (new->n == 1)
		return of_old;
	return ((double)(old->n - 1) * of_old + (double)(new->n - 1) * of_new) /
	       (double)sp_runs_freedom(old, new);
}

/* (E28) Welch's, of several runs on both sides. */
static double half_by_welch(const struct sp_runs *old,
			    const struct sp_runs *new, double factor,
			    double confidence)
{
	const double a = square_of(factor) * old->var / (double)old->n;
	const double b = new->var / (double)new->n;
	double freedom;

	if (!(a + b > 0))
		return 0;
	freedom = square_of(a + b) / (square_of(a) / (double)(old->n - 1) +
				      square_of(b) / (double)(new->n - 1));
	return student_quantile(confidence, freedom) * sqrt(a + b);
}

static double relative_noise(const struct sp_runs *runs)
{
	return runs->mean > 0 ? runs->noise / square_of(runs->mean) : 0;
}

/*
 * (E45) The side of fewer runs is as noisy as the other; whether those are out
 * of the ordinary depends on the tail of the noise, of which a few runs say
 * little.  Limits are the wider ones of the values and of their logarithms, the
 * latter with fewer degrees of freedom.  More old runs do not show the tail of
 * a single new one: it has two at most.  What sampling explains of the
 * logarithms' variance has no such tail.  Nothing with one run on each.
 */
#define SINGLE_FREEDOM     0.42
#define SINGLE_FREEDOM_MAX 2

static double freedom_of_tail(const struct sp_runs *old,
			      const struct sp_runs *new)
{
	const double freedom = (double)sp_runs_freedom(old, new);
	const double fewest = (double)(old->n < new->n ? old->n : new->n);
	const double ret = fmin(SINGLE_FREEDOM * fewest, 1) * freedom;

	return fewest > 1 ? ret : fmin(ret, SINGLE_FREEDOM_MAX);
}

/* Runs agree by chance where sampling is as large as the program's noise: then
 * only twice the distance that sampling goes is out of the ordinary. */
#define SAMPLING_TIMES 2

static struct distances distances_uneven(const struct sp_runs *old,
					 const struct sp_runs *new,
					 double factor, double confidence)
{
	const double freedom = (double)sp_runs_freedom(old, new);
	/* few runs of one side are looked at: runs without a sample, which do
	 * not vary, do not make it certain */
	const double var = fmax(pooled(old, old->var, new, new->var),
				fmax(old->noise, new->noise));
	const double log_var = pooled(old, old->log_var, new, new->log_var);
	/* of the same runs as log_var: periods may differ */
	const double explained =
		pooled(old, relative_noise(old), new, relative_noise(new));
	const double sampled = fmax(relative_noise(old), relative_noise(new));
	const double by_runs = sqrt(var * (square_of(factor) / (double)old->n +
					   1 / (double)new->n));
	const double t =
		student_quantile(confidence, freedom_of_tail(old, new));
	const double z = SAMPLING_TIMES * normal_two_sided(confidence);
	const double half = student_quantile(confidence, freedom) * by_runs;
	double ratio;

	if (!(var > 0))
		return both_ways(0);
	if (!isfinite(log_var) || !(new->mean > 0))
		return both_ways(t * by_runs);
	ratio = sqrt(fmax(square_of(t) * (log_var - explained),
			  square_of(z) * sampled) *
		     (1 / (double)old->n + 1 / (double)new->n));
	return (struct distances){fmax(half, -new->mean *expm1(-ratio)),
				  fmax(half, new->mean *expm1(ratio))};
}

static struct distances distances_between(const struct sp_runs *old,
					  const struct sp_runs *new,
					  double factor, double confidence)
{
	const bool is_single = old->n == 1 || new->n == 1;
	const double welch =
		is_single ? 0 : half_by_welch(old, new, factor, confidence);
	struct distances d = both_ways(welch);

	if (old->n == new->n)
		return d;
	d = distances_uneven(old, new, factor, confidence);
	return (struct distances){fmax(d.below, welch), fmax(d.above, welch)};
}

/* (E30) The row's own ratio, drawn towards that of all rows. */
static double half_moderated(const struct sp_runs *old,
			     const struct sp_runs *new, double factor,
			     const struct sp_run_noise *noise,
			     double confidence)
{
	const double d = (double)sp_runs_freedom(old, new);
	const double var =
		square_of(factor) * expected_variance(old, noise->spread) /
			(double)old->n +
		expected_variance(new, noise->spread) / (double)new->n;
	double ratio = noise->ratio;

	if (isfinite(noise->freedom))
		ratio = (noise->freedom * noise->ratio +
			 d * sp_run_variance_ratio(old, new, noise->spread)) /
			(noise->freedom + d);
	/* the others do not make it less noisy than it is seen to be */
	ratio = fmax(ratio, sp_run_variance_ratio(old, new, noise->spread));
	return student_quantile(confidence, noise->freedom + d) *
	       sqrt(ratio * var);
}

/* The level of the bound on all rows at once (E56). */
#define WHOLE_LEVEL 0.99

static struct distances distances_of_whole(const struct sp_run_noise *noise,
					   double factor)
{
	return distances_between(&noise->old_whole, &noise->new_whole, factor,
				 WHOLE_LEVEL);
}

/* (E27) */
struct sp_interval sp_contrast(const struct sp_runs *old,
			       const struct sp_runs *new, double factor,
			       const struct sp_run_noise *noise,
			       double confidence)
{
	const struct sp_interval a = sp_runs_mean(old, confidence);
	const struct sp_interval b = sp_runs_mean(new, confidence);
	const double d = new->mean - factor * old->mean;
	const double below =
		hypot(new->mean - b.lo, factor * (a.hi - old->mean));
	const double above =
		hypot(b.hi - new->mean, factor * (old->mean - a.lo));
	const bool is_moderated =
		noise && noise->freedom > 0 && old->noise + new->noise > 0;
	struct distances by_rows =
		is_moderated ? both_ways(half_moderated(old, new, factor, noise,
							confidence))
			     : distances_between(old, new, factor, confidence);

	by_rows.below = fmax(by_rows.below, below);
	by_rows.above = fmax(by_rows.above, above);
	if (noise && noise->is_bounded && !sp_run_is_wild(old, new, noise)) {
		const struct distances whole =
			distances_of_whole(noise, factor);

		by_rows.below = fmin(by_rows.below, below + whole.below);
		by_rows.above = fmin(by_rows.above, above + whole.above);
	}
	return (struct sp_interval){d, d - by_rows.below, d + by_rows.above};
}

/* (E29) The contrasts of an allowance: beyond it if both are positive. */
static void contrast_runs(const struct sp_runs *old, const struct sp_runs *new,
			  const struct sp_allowance *allowance, bool is_down,
			  const struct sp_run_noise *noise, double confidence,
			  struct sp_interval ret[2])
{
	const double factors[] = {
		is_down ? 1 - allowance->growth : 1 + allowance->growth, 1};
	const double shifts[] = {0, allowance->amount};

	for (int i = 0; i < 2; i++) {
		struct sp_interval c =
			sp_contrast(old, new, factors[i], noise, confidence);

		if (is_down)
			c = (struct sp_interval){-c.value, -c.hi, -c.lo};
		ret[i] = (struct sp_interval){c.value - shifts[i],
					      c.lo - shifts[i],
					      c.hi - shifts[i]};
	}
}

static enum sp_change change_of(const struct sp_runs *old,
				const struct sp_runs *new,
				const struct sp_allowance *allowance,
				bool is_down, const struct sp_run_noise *noise,
				double confidence)
{
	struct sp_interval c[2];

	contrast_runs(old, new, allowance, is_down, noise, confidence, c);
	if (c[0].lo > 0 && c[1].lo > 0)
		return SP_CHANGE_BEYOND;
	return c[0].hi <= 0 || c[1].hi <= 0 ? SP_CHANGE_WITHIN
					    : SP_CHANGE_MAYBE;
}

enum sp_change sp_change_up(const struct sp_runs *old,
			    const struct sp_runs *new,
			    const struct sp_allowance *allowance,
			    const struct sp_run_noise *noise, double confidence)
{
	return change_of(old, new, allowance, false, noise, confidence);
}

enum sp_change sp_change_down(const struct sp_runs *old,
			      const struct sp_runs *new,
			      const struct sp_allowance *allowance,
			      const struct sp_run_noise *noise,
			      double confidence)
{
	return change_of(old, new, allowance, true, noise, confidence);
}

bool sp_change_is_beyond(const struct sp_runs *old, const struct sp_runs *new,
			 const struct sp_allowance *allowance, bool is_down,
			 const struct sp_run_noise *noise, double p)
{
	struct sp_interval c[2];

	contrast_runs(old, new, allowance, is_down, noise, 1 - 2 * p, c);
	return c[0].lo > 0 && c[1].lo > 0;
}

/* No p-value is smaller: beyond it the special functions are not tested. */
#define P_SMALLEST 1e-12

double sp_change_p(const struct sp_runs *old, const struct sp_runs *new,
		   const struct sp_allowance *allowance, bool is_down,
		   const struct sp_run_noise *noise, double largest)
{
	double lo = log(P_SMALLEST), hi = log(fmin(largest, 0.499));

	if (!sp_change_is_beyond(old, new, allowance, is_down, noise, exp(hi)))
		return 1;
	if (sp_change_is_beyond(old, new, allowance, is_down, noise,
				P_SMALLEST))
		return P_SMALLEST;
	/* it is beyond at exp(hi), and not at exp(lo) */
	for (int i = 0; i < 30; i++) {
		const double mid = (lo + hi) / 2;

		if (sp_change_is_beyond(old, new, allowance, is_down, noise,
					exp(mid)))
			hi = mid;
		else
			lo = mid;
	}
	return exp(hi);
}

SP_ORDER(ascending_values, double, SP_BY((*x > *y) - (*x < *y)));

/* (E31) */
int sp_false_discovery(const double *p, size_t n, double rate, double *ret)
{
	double *sorted = malloc((n + 1) * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	*ret = -1;
	if (n)
		memcpy(sorted, p, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), ascending_values);
	for (size_t i = 0; i < n; i++)
		if (sorted[i] <= rate * (double)(i + 1) / (double)n)
			*ret = sorted[i];
	free(sorted);
	return 0;
}
