/* SPDX-License-Identifier: MIT */
/*
 * From the samples of a profile to the growth of its sites.  Samples are told
 * one by one, twice: first, how much is born and freed when, which says where
 * the run ends and whether time alone may cut it; then, what each site has in
 * each window.  So memory is proportional to the rows, whatever the samples.
 */
#include "stats/leaks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/saturate.h"
#include "model/walk.h"
#include "model/whole.h"

/* How finely the run is known after the first reading. */
#define BINS 8192

/* A teardown leaves at most that much of what was alive, and frees so many
 * times what it allocates. */
#define TEARDOWN_LEFT  0.5
#define TEARDOWN_TIMES 10

/* Before and after what is judged a program is idle while it allocates at less
 * than that share of its usual rate, for as long as a window. */
#define IDLE 0.01

/* A run is uneven if the busier half of its windows has so much of its bytes:
 * also where other programs kept the processor for a while. */
#define UNEVEN 0.55

/* Windows by bytes follow what grows if so much of them stays. */
#define OWN_CLOCK 0.1

/* Not if so much is freed before it is as old as a window: that is the load,
 * and windows are cut by it alone. */
#define LOAD 0.5

struct teardown {
	uint64_t begin_ns;
	double freed; /* since then, less TEARDOWN_TIMES of what was born */
	double alive_before;
	double alive;
};

/* What the first reading finds. */
struct bins {
	double born[BINS];
	double soon[BINS]; /* of that, what was freed soon */
	struct teardown teardown;
};

struct reading {
	const struct sp_profile *profile;
	const uint32_t *row_of_stack;
	struct sp_leaks *leaks;
	struct bins *bins; /* of the first reading; else NULL */
	struct sp_growth_clock clocks[SP_LEAK_CLOCKS];
	struct sp_leak_clocks judged;
};

static int bin_at(const struct sp_profile *p, uint64_t time_ns)
{
	int bin;

	/* also where it has no duration */
	if (time_ns >= p->duration_ns)
		return BINS - 1;
	bin = (int)((double)time_ns / (double)p->duration_ns * BINS);
	return bin < BINS ? bin : BINS - 1;
}

static uint64_t bin_begin(const struct sp_profile *p, int bin)
{
	return p->duration_ns / BINS * (uint64_t)bin +
	       p->duration_ns % BINS * (uint64_t)bin / BINS;
}

/* ---- where the run ends ---- */

/* One of the events of the first reading, in the order of time.  The teardown
 * is the end of the run in which, from wherever one begins to count, ten times
 * as much is freed as born. */
static void add_event(struct teardown *t, uint64_t time_ns, double born,
		      double freed)
{
	if (!(t->freed > 0)) {
		t->begin_ns = time_ns;
		t->freed = 0;
		t->alive_before = t->alive;
	}
	t->freed += freed - TEARDOWN_TIMES * born;
	t->alive += born - freed;
}

/* SP_NEVER: it frees nothing but what it does not need. */
static uint64_t teardown_of(const struct sp_profile *p,
			    const struct teardown *t)
{
	const bool is_there = p->end == SP_PROFILE_END_CLEAN && !p->is_cut &&
			      t->freed > 0 &&
			      t->alive <= TEARDOWN_LEFT * t->alive_before;

	return is_there ? t->begin_ns : SP_NEVER;
}

/* ---- samples ---- */

static void add_to_rows(const struct reading *r, const struct sp_sample *s,
			uint64_t gone_ns, const struct sp_acc *one)
{
	struct sp_leaks *l = r->leaks;
	const uint32_t row = r->row_of_stack[s->stack];
	const uint64_t to_ns = r->clocks[0].edge_ns[SP_GROWTH_WINDOWS];

	if (row >= l->n_rows)
		return;
	for (unsigned int c = 0; c < SP_LEAK_CLOCKS; c++) {
		sp_growth_add(&l->rows[row].growth[c], &r->clocks[c],
			      s->born_ns, gone_ns, one);
		sp_growth_add(&l->rows[l->n_rows].growth[c], &r->clocks[c],
			      s->born_ns, gone_ns, one);
	}
	if (gone_ns >= to_ns &&
	    s->born_ns >= r->clocks[0].edge_ns[SP_GROWTH_START - 1] &&
	    s->born_ns < r->clocks[0].edge_ns[SP_GROWTH_WINDOWS - 1])
		l->gained_bytes[s->stack] += one->est_bytes;
}

static void add_birth(const struct reading *r, uint64_t born_ns, bool is_soon,
		      double bytes)
{
	const int bin = bin_at(r->profile, born_ns);

	r->bins->born[bin] += bytes;
	if (is_soon)
		r->bins->soon[bin] += bytes;
}

static int take_sample(void *arg, enum sp_sample_event event,
		       const struct sp_sample *s)
{
	const struct reading *r = arg;
	const uint64_t gone_ns = sp_sample_gone_ns(r->profile, s);
	const uint64_t window_ns = r->profile->duration_ns / SP_GROWTH_WINDOWS;
	struct sp_acc one;

	if (!r->bins && event != SP_SAMPLE_SETTLED)
		return 0;
	sp_acc_init(&one, s->period_bytes);
	sp_acc_add(&one, &r->profile->law, s->size_bytes, s->offset_bytes,
		   s->period_bytes);
	if (!r->bins)
		add_to_rows(r, s, gone_ns, &one);
	else if (event == SP_SAMPLE_BORN)
		add_event(&r->bins->teardown, s->born_ns, one.est_bytes, 0);
	else
		add_birth(r, s->born_ns, gone_ns - s->born_ns < window_ns,
			  one.est_bytes);
	/* what ended in the moment of its birth does not matter */
	if (r->bins && event == SP_SAMPLE_SETTLED && gone_ns > s->born_ns &&
	    gone_ns != SP_NEVER)
		add_event(&r->bins->teardown, gone_ns, 0, one.est_bytes);
	return 0;
}

/* ---- windows by bytes ---- */

SP_ORDER(compare_doubles, double, SP_BY((*x > *y) - (*x < *y)));

static bool is_uneven(const struct sp_profile *p, const double *bytes,
		      const struct sp_growth_clock *clock)
{
	double windows[SP_GROWTH_WINDOWS] = {0}, all = 0, least = 0;
	unsigned int at = 0;

	for (int i = 0; i < BINS; i++) {
		const uint64_t begin = bin_begin(p, i);

		while (at < SP_GROWTH_WINDOWS &&
		       clock->edge_ns[at + 1] <= begin)
			at++;
		if (at == SP_GROWTH_WINDOWS || begin < clock->edge_ns[0])
			continue;
		windows[at] += bytes[i];
		all += bytes[i];
	}
	qsort(windows, SP_GROWTH_WINDOWS, sizeof(*windows), compare_doubles);
	for (unsigned int i = 0; i < SP_GROWTH_WINDOWS / 2; i++)
		least += windows[i];
	return least < (1 - UNEVEN) * all;
}

/* The moment at which a bin has that share of its bytes, if they are even in
 * it: what is starved for long and runs for a moment has its bytes in few
 * bins. */
static uint64_t moment_in_bin(const struct sp_profile *p, int bin, double share)
{
	const uint64_t begin = bin_begin(p, bin), end = bin_begin(p, bin + 1);

	return begin + (uint64_t)(share * (double)(end - begin));
}

/* As many bytes in each, as far as the bins tell. */
static struct sp_growth_clock clock_by_bytes(const struct sp_profile *p,
					     const double *bytes,
					     const struct sp_growth_clock *even)
{
	const uint64_t from_ns = even->edge_ns[0];
	const uint64_t to_ns = even->edge_ns[SP_GROWTH_WINDOWS];
	struct sp_growth_clock clock = *even;
	double all = 0, sum = 0;
	unsigned int at = 1;

	for (int i = bin_at(p, from_ns); i < BINS; i++)
		if (bin_begin(p, i) < to_ns)
			all += bytes[i];
	for (int i = bin_at(p, from_ns); i < BINS; i++) {
		sum += bytes[i];
		for (; at < SP_GROWTH_WINDOWS &&
		       sum >= all * at / SP_GROWTH_WINDOWS;
		     at++) {
			const double wanted = all * at / SP_GROWTH_WINDOWS;
			const uint64_t end = moment_in_bin(
				p, i, 1 - (sum - wanted) / bytes[i]);

			clock.edge_ns[at] = end < to_ns ? end : to_ns;
		}
	}
	return clock;
}

/* ---- all of it ---- */

static double sum_after_start(const struct sp_profile *p, const double *bytes,
			      const struct sp_growth_clock *clock)
{
	double sum = 0;

	for (int i = bin_at(p, clock->edge_ns[SP_GROWTH_START]); i < BINS; i++)
		if (bin_begin(p, i) < clock->edge_ns[SP_GROWTH_WINDOWS])
			sum += bytes[i];
	return sum;
}

/* The moment from which on the profile has all samples. */
static uint64_t all_samples_from(const struct sp_profile *p)
{
	uint64_t from_ns = p->window_ns;

	/* Recorded from the first stretch on that was sampled. */
	for (size_t i = 0; i < p->n_stretches; i++) {
		const struct sp_stretch *s = &p->stretches[i];

		if (s->part)
			break;
		if (!s->period_bytes)
			continue;
		if (s->from_ns > from_ns)
			from_ns = s->from_ns;
		break;
	}
	return from_ns;
}

/* The rate of the usual bin in which anything was sampled. */
static double usual_bin(const struct bins *b)
{
	double sorted[BINS] = {0};
	size_t n = 0;

	for (int i = 0; i < BINS; i++)
		if (b->born[i] > 0)
			sorted[n++] = b->born[i];
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
	return n ? sorted[n / 2] : 0;
}

/* Leave out what is idle.  Time makes objects old, and those of a cache would
 * seem to stay. */
static bool leave_idle(const struct sp_profile *p, const struct bins *b,
		       bool at_begin, bool at_end, uint64_t *from_ns,
		       uint64_t *to_ns)
{
	const double least = IDLE * usual_bin(b);
	int first = bin_at(p, *from_ns), last = bin_at(p, *to_ns);
	const int window = (last - first) / (int)SP_GROWTH_WINDOWS;
	int begin = first, end = last;

	if (bin_begin(p, last) == *to_ns)
		end = --last;
	while (begin < last && b->born[begin] <= least)
		begin++;
	while (end > begin && b->born[end] <= least)
		end--;
	at_begin &= begin - first > window;
	at_end &= last - end > window;
	if (at_begin)
		*from_ns = bin_begin(p, begin);
	if (at_end)
		*to_ns = bin_begin(p, end + 1);
	return at_begin || at_end;
}

/* More than chance hides: of bytes, or as many as of samples. */
static double lost_bytes(const struct sp_profile *p, const double *born)
{
	const struct sp_whole whole = sp_whole_of(p);
	const double lost = (double)sp_profile_lost_samples(p);
	double all =
		(double)sp_sat_sub(p->exact_alloc_bytes, p->unsampled_bytes);
	double seen = 0;

	if (!whole.is_starved)
		return sp_whole_uncounted_bytes(p);
	for (int i = 0; i < BINS; i++)
		seen += born[i];
	return fmax(all - seen,
		    all * lost / (lost + (double)sp_profile_samples(p)));
}

/* (E54) By what is freed soon, if that is most of the bytes. */
static void cut_by_bytes(struct reading *r)
{
	const struct sp_profile *p = r->profile;
	const double *bytes = r->bins->born;
	struct sp_leaks *l = r->leaks;

	l->alloc_bytes = sum_after_start(p, bytes, &l->clock);
	r->judged.is_load = sum_after_start(p, r->bins->soon, &l->clock) >=
			    LOAD * l->alloc_bytes;
	if (r->judged.is_load)
		bytes = r->bins->soon;
	l->is_uneven = is_uneven(p, bytes, &l->clock);
	r->clocks[SP_LEAK_BY_TIME] = l->clock;
	r->clocks[SP_LEAK_BY_BYTES] = clock_by_bytes(p, bytes, &l->clock);
	r->judged.is_uneven = l->is_uneven;
	bytes = r->bins->born;
	r->judged.gap_bytes = lost_bytes(p, bytes);
	r->clocks[SP_LEAK_BY_ALL] = clock_by_bytes(p, bytes, &l->clock);
	r->judged.has_all = r->judged.is_load && is_uneven(p, bytes, &l->clock);
}

/* After the first reading. */
static int cut_run(struct reading *r, uint64_t from_ns, uint64_t to_ns,
		   struct sp_error *err)
{
	const bool is_from = from_ns == SP_NEVER, is_to = to_ns == SP_NEVER;
	const struct sp_profile *p = r->profile;
	const struct sp_whole whole = sp_whole_of(p);
	struct sp_leaks *l = r->leaks;

	if (!whole.known_ns && !whole.has_rest)
		return sp_error_set(err, -ENODATA, p->path,
				    whole.is_cut
					    ? "the file is cut short: what was "
					      "alive is not known"
					    : "what was alive is not known: "
					      "parts of the file cannot be "
					      "read, or frees were lost");
	l->teardown_ns = to_ns == SP_NEVER ? teardown_of(p, &r->bins->teardown)
					   : SP_NEVER;
	if (is_from)
		from_ns = all_samples_from(p);
	if (is_to)
		to_ns = p->duration_ns;
	/* Who was alive later nobody knows. */
	if (whole.known_ns < to_ns && !whole.has_rest)
		to_ns = whole.known_ns;
	if (l->teardown_ns < to_ns && l->teardown_ns > from_ns)
		to_ns = l->teardown_ns;
	if (from_ns < to_ns)
		l->left_idle = leave_idle(p, r->bins, is_from, is_to, &from_ns,
					  &to_ns);
	if (to_ns <= from_ns || to_ns - from_ns < SP_GROWTH_WINDOWS)
		return sp_error_set(err, -ENODATA, p->path,
				    "the run is too short to be cut into "
				    "windows");
	l->clock = sp_growth_clock_even(from_ns, to_ns);
	cut_by_bytes(r);
	r->bins = NULL;
	return 0;
}

static bool is_own_clock(const struct sp_leaks *l)
{
	const struct sp_growth *all =
		&l->rows[l->n_rows].growth[SP_LEAK_BY_TIME];

	return all->gained[0].est_bytes > OWN_CLOCK * l->alloc_bytes;
}

static int read_twice(struct reading *r, uint64_t from_ns, uint64_t to_ns,
		      struct sp_error *err)
{
	struct sp_leaks *l = r->leaks;
	int e = sp_profile_walk(r->profile, NULL, NULL, take_sample, r, err);

	if (e >= 0)
		e = cut_run(r, from_ns, to_ns, err);
	if (e >= 0)
		e = sp_profile_walk(r->profile, NULL, NULL, take_sample, r,
				    err);
	r->judged.is_own = is_own_clock(l);
	if (e >= 0 && sp_leak_judge(l->rows, l->n_rows + 1, l->n_rows,
				    &r->judged, &l->judging) < 0)
		e = sp_error_memory(err, r->profile->path);
	return e;
}

int sp_leaks_new(const struct sp_profile *p, const uint32_t *row_of_stack,
		 size_t n_rows, uint64_t from_ns, uint64_t to_ns,
		 struct sp_leaks **ret, struct sp_error *err)
{
	struct sp_leaks *l;
	struct bins *bins;
	struct reading r = {.profile = p, .row_of_stack = row_of_stack};
	int e;

	if (!p->has_frees || p->is_timeless)
		return sp_error_set(err, -ENODATA, p->path,
				    "the profile has no %s: nobody knows what "
				    "stayed",
				    p->has_frees ? "times" : "frees");
	l = calloc(1, sizeof(*l));
	r.leaks = l;
	r.bins = calloc(1, sizeof(*r.bins));
	if (l) {
		l->n_rows = n_rows;
		l->rows = calloc(n_rows + 1, sizeof(*l->rows));
		l->gained_bytes = calloc(p->n_stacks + 1, sizeof(double));
	}
	if (!l || !r.bins || !l->rows || !l->gained_bytes) {
		free(r.bins);
		sp_leaks_free(l);
		return sp_error_memory(err, p->path);
	}
	for (size_t i = 0; i <= n_rows; i++)
		for (int c = 0; c < SP_LEAK_CLOCKS; c++)
			sp_growth_init(&l->rows[i].growth[c], p->period_bytes);
	bins = r.bins;
	e = read_twice(&r, from_ns, to_ns, err);
	free(bins);
	if (e < 0) {
		sp_leaks_free(l);
		return e;
	}
	*ret = l;
	return 0;
}

void sp_leaks_free(struct sp_leaks *leaks)
{
	if (!leaks)
		return;
	free(leaks->rows);
	free(leaks->gained_bytes);
	free(leaks);
}
