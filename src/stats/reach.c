/* SPDX-License-Identifier: MIT */
/* What a comparison could have found (compare.h): by the test that decides, on
 * sides that are made up. */
#include <math.h>

#include "stats/compare.h"
#include "stats/special.h"

static double square_of(double x)
{
	return x * x;
}

/* Between the runs of both sides, each by its degrees of freedom. */
static double pooled_variance(const struct sp_runs *old,
			      const struct sp_runs *new)
{
	const double a = (double)(old->n - 1), b = (double)(new->n - 1);

	return a + b > 0 ? (a * old->var + b * new->var) / (a + b) : 0;
}

double sp_runs_own_variance(const struct sp_runs *old,
			    const struct sp_runs *new,
			    const struct sp_run_noise *noise)
{
	const double mean = fmax(old->mean, new->mean);
	const double sampling = fmax(old->noise, new->noise);
	double var = pooled_variance(old, new) - sampling;

	if (noise && noise->is_bounded && !sp_run_is_wild(old, new, noise))
		var = pooled_variance(&noise->old_whole, &noise->new_whole);
	else if (noise && noise->freedom > 0)
		var = noise->ratio *
			      (sampling + noise->spread * square_of(mean)) -
		      sampling;
	return mean > 0 ? fmax(var, 0) / square_of(mean) : 0;
}

/* ---- what would be found ---- */

/* (E32) What is seen is less than what is there once in 1 / (1 - power): the
 * factor between them, of means whose logarithms have that variance. */
static double factor_of(const struct sp_reach *r, double variance)
{
	return exp(sp_special_normal_quantile(r->power) * sqrt(variance));
}

/* As many samples as all the runs of that side have if each run has `factor`
 * times those of `runs`. */
static struct sp_acc scaled_acc(const struct sp_runs *runs, size_t n,
				double factor)
{
	const double by = factor * (double)n / (double)runs->n;
	struct sp_acc acc = runs->acc;

	acc.samples = (uint64_t)ceil((double)acc.samples * by);
	acc.size_bytes = (uint64_t)((double)acc.size_bytes * by);
	acc.est_bytes *= by;
	acc.est_count *= by;
	acc.k2 *= by;
	acc.k3 *= by;
	acc.kz *= by;
	acc.c2 *= by;
	acc.c3 *= by;
	return acc;
}

/* A side of n runs, each with `factor` times what the runs of `like` have. */
static struct sp_runs scaled_side(const struct sp_runs *like, size_t n,
				  double factor, double own)
{
	struct sp_runs side = *like;
	const double narrower = sqrt(factor * (double)like->n / (double)n);

	side.n = n;
	side.mean *= factor;
	side.noise *= factor;
	side.certain *= factor;
	side.var = n > 1 ? side.noise + own * square_of(side.mean) : 0;
	side.log_var = n > 1 ? side.var / square_of(side.mean) : 0;
	side.limits = (struct sp_interval){
		side.mean,
		side.mean - narrower * (like->mean - like->limits.lo),
		side.mean + narrower * (like->limits.hi - like->mean)};
	side.acc = scaled_acc(like, n, factor);
	return side;
}

static bool is_found(const struct sp_reach *r, const struct sp_runs *old,
		     const struct sp_runs *new)
{
	return sp_change_is_beyond(old, new, &r->allowance, false, r->noise,
				   r->p);
}

/* More than this is as good as nothing found. */
#define FACTOR_MAX 1e6

double sp_reach_growth(const struct sp_reach *r)
{
	const struct sp_runs *old = r->old;
	const double own = sp_runs_own_variance(old, r->new, r->noise);
	const double u = old->noise / square_of(old->mean);
	double lo = 0, hi = log(FACTOR_MAX), seen;

	for (int i = 0; i < 60; i++) {
		const double mid = (lo + hi) / 2;
		const struct sp_runs new =
			scaled_side(old, r->new->n, exp(mid), own);

		if (is_found(r, old, &new))
			hi = mid;
		else
			lo = mid;
	}
	if (hi > log(FACTOR_MAX / 2))
		return INFINITY;
	seen = exp(hi);
	/* what has grown is sampled more often */
	lo = 0;
	for (int i = 0; i < 60; i++) {
		const double there = seen * exp(lo);
		const double var = (u + own) / (double)old->n +
				   (u / there + own) / (double)r->new->n;

		lo = log(factor_of(r, var));
	}
	return seen * exp(lo) - 1;
}

/* A side on which n samples of tiny objects are all that its runs have. */
static struct sp_runs side_of_samples(size_t runs, uint64_t n,
				      uint64_t period_bytes, double own)
{
	static const struct sp_law_used plain;
	struct sp_runs side;
	struct sp_acc acc;

	sp_acc_init(&acc, period_bytes);
	if (n)
		sp_acc_add_many(&acc, &plain, 1, n, n, period_bytes);
	sp_runs_sampled(&side, &acc, 1, false);
	if (n)
		return scaled_side(&side, runs, 1 / (double)runs, own);
	side.n = runs;
	side.log_var = runs > 1 ? INFINITY : 0;
	return side;
}

#define SAMPLES_MAX (1ull << 40)

double sp_reach_new(const struct sp_reach *r, uint64_t period_bytes)
{
	double own = sp_runs_own_variance(r->old, r->new, r->noise), bytes;
	const struct sp_runs old =
		side_of_samples(r->old->n, 0, period_bytes, own);
	const size_t n = r->new->n;
	uint64_t least = 1, most = 1;
	struct sp_runs new = side_of_samples(n, 1, period_bytes, own);

	while (!is_found(r, &old, &new)) {
		if (most >= SAMPLES_MAX)
			return INFINITY;
		least = most + 1;
		most *= 2;
		new = side_of_samples(n, most, period_bytes, own);
	}
	while (least < most) {
		const uint64_t mid = least + (most - least) / 2;

		new = side_of_samples(n, mid, period_bytes, own);
		if (is_found(r, &old, &new))
			most = mid;
		else
			least = mid + 1;
	}
	/* the expected number of which fewer are seen once in so often */
	bytes = square_of(sqrt((double)most) +
			  sp_special_normal_quantile(r->power) / 2) *
		(double)period_bytes / (double)n;
	new = side_of_samples(n, most, period_bytes, own);
	own = sp_runs_own_variance(&old, &new, r->noise);
	return bytes * factor_of(r, own / (double)n);
}

/* (E33) */
double sp_variance_needed(double allowed, double confidence, double power)
{
	const double t = sp_special_normal_quantile(0.5 + confidence / 2) +
			 sp_special_normal_quantile(power);

	return square_of(log1p(allowed) / t) / 2;
}
