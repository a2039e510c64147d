/* SPDX-License-Identifier: MIT */
#include "report/analysis.h"

#include <math.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/order.h"
#include "stats/adjust.h"
#include "stats/percentile.h"

static bool has_moment(enum sp_view view)
{
	return view == SP_VIEW_LIVE || view == SP_VIEW_LEAKS;
}

/* The tables of all samples and of live ones.  A view that equals one of them
 * shares it. */
static int add_tables(struct sp_analysis *a, struct sp_error *err)
{
	const struct sp_profile *p = a->profile;
	struct sp_selection s = a->selection;
	int r = sp_sums_new(p, &a->selection, &a->view, err);

	if (r < 0)
		return r;
	a->whole = &a->view->all;
	if (s.keeps) {
		s.keeps = NULL;
		r = sp_sums_new(p, &s, &a->unfiltered, err);
		if (r < 0)
			return r;
		a->whole = &a->unfiltered->all;
		s = a->selection;
	}
	a->alloc = s.view == SP_VIEW_ALLOC ? a->view : NULL;
	if (!a->alloc) {
		s.view = SP_VIEW_ALLOC;
		r = sp_sums_new(p, &s, &a->alloc, err);
	}
	if (r < 0 || !p->has_frees)
		return r;
	a->live = a->selection.view == SP_VIEW_LIVE ? a->view : NULL;
	if (a->live)
		return 0;
	s.view = SP_VIEW_LIVE;
	s.at_ns = a->live_at_ns;
	return sp_sums_new(p, &s, &a->live, err);
}

/* The peak is at least what is alive at the end, which exact totals may know
 * better than the peak. */
static int raise_peak(const struct sp_analysis *a, const bool *keeps,
		      struct sp_peak *peak, struct sp_error *err)
{
	struct sp_selection end = a->selection;
	struct sp_sums *live;
	int r;

	end.view = SP_VIEW_LIVE;
	end.at_ns = SP_NEVER;
	end.keeps = keeps;
	r = sp_sums_new(a->profile, &end, &live, err);
	if (r < 0)
		return r;
	sp_peak_raise(peak, sp_estimate_bytes(&a->how, &live->all),
		      live->all.all.samples, a->profile->duration_ns);
	sp_sums_free(live, a->profile);
	return 0;
}

/* (E44) Nor is it more than all that was allocated. */
static void bound_peak(struct sp_analysis *a)
{
	const double most = a->how.method == SP_METHOD_P3T
				    ? a->population.most_bytes
				    : INFINITY;
	struct sp_interval *peak = &a->peak.bytes;

	*peak = (struct sp_interval){fmin(peak->value, most),
				     fmin(peak->lo, most),
				     fmin(peak->hi, most)};
}

/* The peak of those that are kept.  Objects that several processes left alive
 * need not have existed at the same time. */
static int find_peak(const struct sp_analysis *a, const bool *keeps,
		     struct sp_peak *ret, struct sp_error *err)
{
	struct sp_selection births = a->selection;
	int r;

	births.keeps = keeps;
	r = sp_peak(a->profile, &births, a->how.confidence, ret, err);
	return r < 0 || a->profile->n_parts != 1
		       ? r
		       : raise_peak(a, keeps, ret, err);
}

/* The peak of the selection, and the moment of SP_VIEW_PEAK. */
static int add_peak(struct sp_analysis *a, struct sp_error *err)
{
	const struct sp_whole whole = sp_whole_of(a->profile);
	struct sp_selection *s = &a->selection;
	struct sp_peak all;
	int r = find_peak(a, s->keeps, &a->peak, err);

	bound_peak(a);
	a->peak.bytes.hi += sp_whole_uncounted_bytes(a->profile);
	/* What the file has says nothing of what is missing. */
	if (sp_whole_peak_is_least(&whole))
		a->peak.bytes.hi = INFINITY;
	if (!whole.known_ns && !whole.has_rest)
		a->peak.bytes.lo = 0;
	if (r < 0 || s->view != SP_VIEW_PEAK)
		return r;
	if (s->at_ns != SP_NEVER) {
		s->peak_ns = s->at_ns;
		return 0;
	}
	all = a->peak;
	if (a->filter)
		r = find_peak(a, NULL, &all, err);
	s->at_ns = all.time_ns;
	s->peak_ns = all.rows_ns;
	return r;
}

/* Are the rows of the very moment of the peak above them? */
static bool shows_peak(const struct sp_analysis *a)
{
	return a->selection.view == SP_VIEW_PEAK && !a->filter &&
	       a->selection.peak_ns == a->peak.rows_ns;
}

/* The same sums were added up in another order: one figure has one value. */
static void take_rows(struct sp_analysis *a)
{
	const struct sp_interval rows =
		sp_estimate_bytes(&a->how, &a->view->all);
	struct sp_peak *peak = &a->peak;

	if (peak->bytes.value == peak->rows_bytes.value)
		peak->bytes.value = rows.value;
	if (peak->bytes.lo == peak->rows_bytes.lo)
		peak->bytes.lo = rows.lo;
	peak->bytes.hi = peak->bytes.hi == peak->rows_bytes.hi
				 ? rows.hi
				 : fmax(peak->bytes.hi, rows.hi);
	peak->rows_bytes = rows;
}

static int answer_question(struct sp_analysis *a,
			   const struct sp_question *question,
			   enum sp_view fallback, struct sp_error *err)
{
	const struct sp_profile *p = a->profile;
	int r = sp_question_select(question, p, fallback, &a->selection, err);

	if (r < 0)
		return r;
	if (a->filter)
		a->selection.keeps = sp_filter_keeps(a->filter);
	if (sp_population_init(&a->population, p) < 0)
		return sp_error_memory(err, p->path);
	a->how = (struct sp_estimation){.method = question->method,
					.confidence = question->confidence,
					.population = &a->population};
	/* Totals say nothing of a part of each object. */
	if (p->resident)
		a->how.method = SP_METHOD_P3;
	a->live_at_ns =
		has_moment(a->selection.view) ? a->selection.at_ns : SP_NEVER;
	if (p->has_frees && !p->is_timeless) {
		r = add_peak(a, err);
		if (r < 0)
			return r;
	}
	r = add_tables(a, err);
	if (r >= 0 && shows_peak(a))
		take_rows(a);
	return r;
}

int sp_analysis_new(const struct sp_profile *profile,
		    const struct sp_question *question, enum sp_view fallback,
		    struct sp_analysis **ret_analysis, struct sp_error *err)
{
	return sp_analysis_new_filtered(profile, question, NULL, fallback,
					ret_analysis, err);
}

int sp_analysis_new_filtered(const struct sp_profile *profile,
			     const struct sp_question *question,
			     const struct sp_filter *filter,
			     enum sp_view fallback,
			     struct sp_analysis **ret_analysis,
			     struct sp_error *err)
{
	struct sp_analysis *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return sp_error_memory(err, profile->path);
	a->profile = filter ? sp_filter_profile(filter) : profile;
	a->filter = filter;
	r = answer_question(a, question, fallback, err);
	if (r < 0) {
		sp_analysis_free(a);
		return r;
	}
	*ret_analysis = a;
	return 0;
}

struct sp_estimation sp_analysis_total_how(const struct sp_analysis *analysis)
{
	struct sp_estimation how = analysis->how;

	if (how.method == SP_METHOD_P3T &&
	    !sp_selection_is_subset(&analysis->selection))
		how.method = SP_METHOD_P3;
	return how;
}

struct sp_acc sp_analysis_part(const struct sp_analysis *analysis,
			       const struct sp_selection *selection,
			       const struct sp_sample *s)
{
	const struct sp_alike one = sp_alike_one(s);
	struct sp_acc part =
		sp_selection_terms(selection, analysis->profile, &one);

	if (!sp_selection_is_measured(selection))
		sp_adjust(&analysis->how, sp_format_class(s->size_bytes),
			  &part);
	return part;
}

struct sp_interval sp_analysis_share(const struct sp_acc *part,
				     const struct sp_acc *all,
				     double confidence)
{
	struct sp_acc rest = *all;

	sp_acc_subtract(&rest, part);
	return sp_estimate_share(part, &rest, confidence);
}

/* All bytes of the view, if the file knows them without its samples. */
static bool exact_total(const struct sp_analysis *a, struct sp_interval *ret)
{
	const struct sp_profile *p = a->profile;
	struct sp_selection births = a->selection;

	births.keeps = NULL;
	if (births.view != SP_VIEW_ALLOC || sp_selection_is_subset(&births) ||
	    a->how.method != SP_METHOD_P3T || !a->population.has_totals)
		return false;
	ret->value = ret->lo = (double)p->exact_alloc_bytes;
	ret->hi = ret->lo + (double)p->missing_bytes_max;
	return ret->lo > 0;
}

struct sp_interval sp_analysis_row_share(const struct sp_analysis *a,
					 const struct sp_estimation *how,
					 const struct sp_class_sums *row)
{
	const bool is_whole = !row->is_unknown && !row->is_least &&
			      !(a->population.gap_bytes > 0);
	struct sp_interval part, all;

	if (!exact_total(a, &all)) {
		if (is_whole)
			return sp_analysis_share(&row->all, &a->whole->all,
						 how->confidence);
		all = sp_estimate_bytes(how, a->whole);
	}
	part = sp_estimate_bytes(how, row);
	return sp_interval_around(
		all.value > 0 ? fmin(part.value / all.value, 1) : 0,
		all.hi > 0 ? fmin(part.lo / all.hi, 1) : 0,
		all.lo > 0 ? fmin(part.hi / all.lo, 1) : 1);
}

uint64_t sp_analysis_peak_rss(const struct sp_profile *profile)
{
	uint64_t peak = 0;

	for (size_t i = 0; i < profile->n_rss; i++)
		if (profile->rss[i].rss_bytes > peak)
			peak = profile->rss[i].rss_bytes;
	return peak;
}

bool sp_analysis_rss_at(const struct sp_profile *profile, uint64_t time_ns,
			uint64_t *ret_bytes)
{
	size_t at;

	SP_LOWER_BOUND(at, profile->n_rss, profile->rss[at].time_ns <= time_ns);
	if (!at)
		return false;
	*ret_bytes = profile->rss[at - 1].rss_bytes;
	return true;
}

static double class_amount(const struct sp_profile *profile, unsigned int class,
			   bool of_bytes)
{
	const struct sp_class_total *total = &profile->classes[class];

	return (double)(of_bytes ? total->bytes : total->objects);
}

uint64_t sp_analysis_size_percentile(const struct sp_profile *profile,
				     bool of_bytes, double share)
{
	double total = 0, sum = 0;

	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++)
		total += class_amount(profile, i, of_bytes);
	if (!profile->has_classes || !(total > 0))
		return 0;
	for (unsigned int i = 0; i < SP_FORMAT_CLASSES; i++) {
		sum += class_amount(profile, i, of_bytes);
		if (sum >= share * total)
			return sp_format_class_max(i);
	}
	return UINT64_MAX;
}

bool sp_analysis_may_have_size(const struct sp_analysis *analysis,
			       unsigned int class)
{
	const struct sp_selection *s = &analysis->selection;
	const struct sp_population *population = &analysis->population;
	const uint64_t least = class ? sp_format_class_max(class - 1) + 1 : 1;

	if (least > s->max_size_bytes ||
	    sp_format_class_max(class) < s->min_size_bytes)
		return false;
	return !population->has_totals || population->slack_bytes ||
	       population->low[class].objects;
}

struct sp_interval sp_analysis_size_bytes(const struct sp_analysis *analysis,
					  unsigned int first, unsigned int last,
					  uint64_t *ret_samples)
{
	const struct sp_population *population = &analysis->population;
	const struct sp_class_sums *all = &analysis->view->all;
	double most = (double)population->slack_bytes;
	struct sp_interval bytes;
	struct sp_class_sums part; /* its classes are the view's */

	sp_class_sums_init(&part, all->all.period_bytes);
	sp_class_sums_judge(&part, all);
	for (uint32_t i = 0; i < all->n_classes; i++) {
		struct sp_class_sums_class *c = &all->classes[i];

		if (c->class < first || c->class > last)
			continue;
		if (!part.n_classes++)
			part.classes = c;
		sp_acc_merge(&part.all, &c->acc);
	}
	*ret_samples = part.all.samples;
	bytes = sp_estimate_bytes(&analysis->how, &part);
	if (analysis->how.method != SP_METHOD_P3T ||
	    isinf(population->most_bytes))
		return bytes;
	for (unsigned int i = first; i <= last; i++)
		most += (double)population->low[i].bytes;
	return (struct sp_interval){fmin(bytes.value, most),
				    fmin(bytes.lo, most), fmin(bytes.hi, most)};
}

/* The upper end of a class within the selection.  There are no objects beyond
 * 2^63. */
static double class_end(const struct sp_selection *s, unsigned int class)
{
	uint64_t end = sp_format_class_max(class);

	if (end > s->max_size_bytes)
		end = s->max_size_bytes;
	return end > INT64_MAX ? INFINITY : (double)end;
}

static double class_begin(const struct sp_selection *s, unsigned int class)
{
	return fmax(class ? (double)sp_format_class_max(class - 1) + 1 : 1,
		    (double)s->min_size_bytes);
}

struct sized {
	uint64_t size_bytes;
	double bytes;
};

SP_ORDER(compare_sized, struct sized, SP_UP(size_bytes));

/* If everything was recorded; 0 without memory. */
static uint64_t exact_percentile(const struct sp_analysis *a, double share)
{
	const struct sp_profile *p = a->profile;
	struct sized *sizes = malloc((sp_alike_n(p) + 1) * sizeof(*sizes));
	double all = 0, sum = 0;
	uint64_t found = 0;
	size_t n = 0;

	if (!sizes)
		return 0;
	for (size_t i = 0; i < sp_alike_n(p); i++) {
		const struct sp_alike s = sp_alike_at(p, i);
		const uint64_t size_bytes = s.one->size_bytes;

		if (!sp_selection_has(&a->selection, p, s.one))
			continue;
		sizes[n] = (struct sized){
			size_bytes, (double)s.samples * (double)size_bytes};
		all += sizes[n++].bytes;
	}
	qsort(sizes, n, sizeof(*sizes), compare_sized);
	for (size_t i = 0; i < n && !found; i++) {
		sum += sizes[i].bytes;
		if (sum >= share * all || i + 1 == n)
			found = sizes[i].size_bytes;
	}
	free(sizes);
	return found;
}

/* (E20) with classes in place of sizes: a limit is the end of a class, and the
 * value is the mean size of the samples in it. */
static struct sp_interval percentile_of_classes(const struct sp_analysis *a,
						double share)
{
	const struct sp_class_sums *all = &a->view->all;
	struct sp_value_group groups[SP_FORMAT_CLASSES];
	unsigned int first = 0, last = SP_FORMAT_CLASSES - 1;
	struct sp_interval at, size;
	uint32_t i;

	for (i = 0; i < all->n_classes; i++)
		groups[i] = (struct sp_value_group){i, all->classes[i].acc};
	at = sp_percentile(groups, all->n_classes, share, a->how.confidence);
	/* Unseen objects are of a size that there can be. */
	while (first < last && !sp_analysis_may_have_size(a, first))
		first++;
	while (last > first && !sp_analysis_may_have_size(a, last))
		last--;
	if (at.lo >= 0)
		first = all->classes[(uint32_t)at.lo].class;
	if (at.hi < all->n_classes)
		last = all->classes[(uint32_t)at.hi].class;
	size.lo = class_begin(&a->selection, first);
	size.hi = class_end(&a->selection, last);
	i = (uint32_t)at.value;
	size.value =
		all->classes[i].acc.est_bytes / all->classes[i].acc.est_count;
	return sp_interval_around(size.value, size.lo, size.hi);
}

bool sp_analysis_is_every(const struct sp_analysis *a)
{
	return a->view->all.all.period_bytes == 1 && !a->view->all.is_unknown &&
	       !a->view->all.is_least && !(a->population.gap_objects > 0);
}

bool sp_analysis_view_percentile(const struct sp_analysis *analysis,
				 double share, struct sp_interval *ret_size)
{
	const struct sp_acc *all = &analysis->view->all.all;
	uint64_t exact = 0;

	if (!all->samples)
		return false;
	if (sp_analysis_is_every(analysis))
		exact = exact_percentile(analysis, share);
	if (exact)
		*ret_size = (struct sp_interval){(double)exact, (double)exact,
						 (double)exact};
	else
		*ret_size = percentile_of_classes(analysis, share);
	return true;
}

void sp_analysis_free(struct sp_analysis *analysis)
{
	if (!analysis)
		return;
	if (analysis->alloc != analysis->view)
		sp_sums_free(analysis->alloc, analysis->profile);
	if (analysis->live != analysis->view)
		sp_sums_free(analysis->live, analysis->profile);
	sp_sums_free(analysis->view, analysis->profile);
	sp_sums_free(analysis->unfiltered, analysis->profile);
	sp_population_free(&analysis->population);
	free(analysis);
}
