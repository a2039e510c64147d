/* SPDX-License-Identifier: MIT */
/*
 * A page selects views and parts of the run, and computes intervals itself.
 * They need sums over samples that depend only on size and period.  So a sample
 * is reduced to the columns of any such selection: its stack, its kind, the
 * bins of its birth and its end, and flags for views that no bin determines.
 * Equal rows are counted.
 */
#include "export/html_cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/intern.h"
#include "base/order.h"
#include "stats/timeline.h"

/* Input for putting samples into cells. */
struct sorter {
	const struct sp_analysis *analysis;
	struct sp_selection births;
	struct sp_selection peak;
	struct sp_selection leaks;
	struct sp_selection temporary;
	struct sp_selection live; /* at the end */
	uint64_t begin_ns;
	uint64_t end_ns;
};

static void sorter_init(struct sorter *s, const struct sp_analysis *a,
			uint64_t tail_ns)
{
	const struct sp_selection *births = &a->selection;

	*s = (struct sorter){
		.analysis = a,
		.births = *births,
		.begin_ns = births->from_ns,
		.end_ns = a->profile->duration_ns,
	};
	if (s->begin_ns < a->profile->window_ns)
		s->begin_ns = a->profile->window_ns;
	if (births->to_ns < s->end_ns)
		s->end_ns = births->to_ns;
	if (s->end_ns < s->begin_ns)
		s->end_ns = s->begin_ns;
	s->births.view = SP_VIEW_ALLOC;
	s->births.has_survivors = true;
	s->peak = s->leaks = s->temporary = s->live = s->births;
	s->peak.view = SP_VIEW_PEAK;
	s->peak.peak_ns = a->peak.rows_ns;
	s->leaks.view = SP_VIEW_LEAKS;
	s->leaks.tail_ns = tail_ns;
	s->temporary.view = SP_VIEW_TEMPORARY;
	s->temporary.within_bytes = 0;
	s->temporary.within_ns = SP_NEVER;
	s->live.view = SP_VIEW_LIVE;
	s->live.at_ns = SP_NEVER;
}

/* The time of an edge, as sp_timeline() places its points. */
static uint64_t edge_ns(const struct sorter *s, unsigned int edge)
{
	return sp_timeline_place(s->begin_ns, s->end_ns, edge,
				 SP_HTML_BINS_MAX + 1);
}

/* How many edges come before that time. */
static unsigned int edges_before(const struct sorter *s, uint64_t time_ns)
{
	size_t at;

	SP_LOWER_BOUND(at, SP_HTML_BINS_MAX + 1,
		       edge_ns(s, (unsigned int)at) < time_ns);
	return (unsigned int)at;
}

/* Samples before the first edge are in the first bin. */
static uint16_t bin_of_birth(const struct sorter *s, uint64_t time_ns)
{
	unsigned int n = time_ns == UINT64_MAX ? SP_HTML_BINS_MAX + 1
					       : edges_before(s, time_ns + 1);

	if (n > SP_HTML_BINS_MAX)
		n = SP_HTML_BINS_MAX;
	return (uint16_t)(n ? n - 1 : 0);
}

static uint16_t edge_of_end(const struct sorter *s, uint64_t time_ns)
{
	unsigned int edge;

	if (time_ns == SP_NEVER)
		return 0;
	edge = edges_before(s, time_ns);
	if (edge > SP_HTML_BINS_MAX)
		edge = SP_HTML_BINS_MAX;
	return (uint16_t)(1 + edge);
}

static uint8_t flags_of(const struct sorter *s, const struct sp_sample *sample)
{
	const struct sp_profile *p = s->analysis->profile;
	uint8_t flags = 0;

	if (sp_sample_is_survivor(p, sample))
		flags |= SP_HTML_IS_SURVIVOR;
	if (!p->has_frees)
		return flags;
	if (sp_selection_has(&s->peak, p, sample))
		flags |= sp_peak_measures(p, sample) ? SP_HTML_AT_PEAK
						     : SP_HTML_CHOSE_PEAK;
	if (sp_selection_has(&s->leaks, p, sample))
		flags |= SP_HTML_IS_LEAK;
	if (sp_selection_has(&s->temporary, p, sample))
		flags |= SP_HTML_IS_TEMPORARY;
	if (sp_selection_has(&s->live, p, sample))
		flags |= SP_HTML_AT_END;
	return flags;
}

/* As in estimates, adding a sample to sums shows whether it is certain. */
static bool is_sure(const struct sp_profile *p, const struct sp_sample *sample)
{
	struct sp_acc acc;

	sp_acc_init(&acc, sample->period_bytes);
	sp_acc_add(&acc, &p->law, sample->size_bytes, sample->offset_bytes,
		   sample->period_bytes);
	return acc.sure_samples != 0;
}

SP_ORDER(compare_cells, struct sp_html_cell,
	 SP_UP(stack) || SP_UP(kind) || SP_UP(born) || SP_UP(freed) ||
		 SP_UP(flags));

/* Sort, and merge equal cells. */
static void merge_cells(struct sp_html_cells *cells)
{
	size_t n = 0;

	qsort(cells->cells, cells->n_cells, sizeof(*cells->cells),
	      compare_cells);
	for (size_t i = 0; i < cells->n_cells; i++) {
		if (n && !compare_cells(&cells->cells[n - 1], &cells->cells[i]))
			cells->cells[n - 1].count += cells->cells[i].count;
		else
			cells->cells[n++] = cells->cells[i];
	}
	cells->n_cells = n;
}

/* Every other edge goes. */
static void halve_bins(struct sp_html_cells *cells)
{
	for (size_t i = 0; i < cells->n_cells; i++) {
		struct sp_html_cell *c = &cells->cells[i];

		c->born /= 2;
		if (c->freed)
			c->freed = (uint16_t)(1 + c->freed / 2);
	}
	cells->n_bins /= 2;
	merge_cells(cells);
}

static int add_cell(struct sp_html_cells *cells, const struct sorter *s,
		    const uint32_t *path_of_stack, struct sp_intern *kinds,
		    struct sp_alike samples)
{
	const struct sp_profile *p = s->analysis->profile;
	const struct sp_sample *sample = samples.one;
	const uint64_t key[3] = {sample->size_bytes, sample->period_bytes,
				 is_sure(p, sample)};
	struct sp_html_cell *c = &cells->cells[cells->n_cells];

	if (!sp_selection_has(&s->births, p, sample))
		return 0;
	*c = (struct sp_html_cell){
		.stack = path_of_stack[sample->stack],
		.born = bin_of_birth(s, sample->born_ns),
		.freed = edge_of_end(s, sp_sample_gone_ns(p, sample)),
		.flags = flags_of(s, sample),
		.count = samples.samples,
	};
	cells->n_cells++;
	return sp_intern_add(kinds, key, sizeof(key), &c->kind);
}

static int collect_cells(struct sp_html_cells *cells, const struct sorter *s,
			 const uint32_t *path_of_stack, struct sp_intern *kinds)
{
	const struct sp_profile *p = s->analysis->profile;
	int r = 0;

	for (size_t i = 0; !r && i < sp_alike_n(p); i++)
		r = add_cell(cells, s, path_of_stack, kinds, sp_alike_at(p, i));
	return r;
}

struct frequency {
	uint32_t kind;
	uint64_t count; /* of samples */
	uint64_t key[3];
};

SP_ORDER(compare_frequency, struct frequency,
	 SP_DOWN(count) || SP_BY(memcmp(x->key, y->key, sizeof(x->key))));

/* The kinds in that order, and their periods. */
static int take_kinds(struct sp_html_cells *cells,
		      const struct sp_intern *interned,
		      const struct frequency *order)
{
	const size_t n = interned->n_entries;
	struct sp_intern periods = {0};
	int r = 0;

	cells->kinds = calloc(n + 1, sizeof(*cells->kinds));
	cells->periods = calloc(n + 1, sizeof(*cells->periods));
	if (!cells->kinds || !cells->periods)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !r; i++) {
		struct sp_html_kind *kind = &cells->kinds[i];
		const uint64_t *key = order[i].key;

		kind->size_bytes = key[0];
		kind->is_sure = key[2] != 0;
		r = sp_intern_add(&periods, &key[1], sizeof(key[1]),
				  &kind->period);
		if (!r)
			cells->periods[kind->period] = key[1];
	}
	cells->n_kinds = n;
	cells->n_periods = periods.n_entries;
	sp_intern_done(&periods);
	return r;
}

/* Frequent kinds get small numbers, which take less room. */
static int number_kinds(struct sp_html_cells *cells,
			const struct sp_intern *interned)
{
	const size_t n = interned->n_entries;
	struct frequency *order = calloc(n + 1, sizeof(*order));
	uint32_t *place = calloc(n + 1, sizeof(*place));
	int r = -ENOMEM;

	if (order && place) {
		for (uint32_t i = 0; i < n; i++) {
			order[i].kind = i;
			memcpy(order[i].key, sp_intern_bytes(interned, i),
			       sizeof(order[i].key));
		}
		for (size_t i = 0; i < cells->n_cells; i++)
			order[cells->cells[i].kind].count +=
				cells->cells[i].count;
		qsort(order, n, sizeof(*order), compare_frequency);
		for (uint32_t i = 0; i < n; i++)
			place[order[i].kind] = i;
		for (size_t i = 0; i < cells->n_cells; i++)
			cells->cells[i].kind = place[cells->cells[i].kind];
		r = take_kinds(cells, interned, order);
	}
	free(order);
	free(place);
	return r;
}

int sp_html_cells_init(struct sp_html_cells *cells,
		       const struct sp_analysis *analysis,
		       const uint32_t *path_of_stack, uint64_t tail_ns,
		       size_t cells_max, struct sp_error *err)
{
	const struct sp_profile *p = analysis->profile;
	struct sp_intern kinds = {0};
	struct sorter s;
	int r = -ENOMEM;

	sorter_init(&s, analysis, tail_ns);
	*cells = (struct sp_html_cells){.n_bins = SP_HTML_BINS_MAX};
	cells->cells = calloc(sp_alike_n(p) + 1, sizeof(*cells->cells));
	if (cells->cells)
		r = collect_cells(cells, &s, path_of_stack, &kinds);
	if (r >= 0)
		r = number_kinds(cells, &kinds);
	sp_intern_done(&kinds);
	if (r < 0) {
		sp_html_cells_done(cells);
		return sp_error_memory(err, p->path);
	}
	if (cells->n_kinds > SP_HTML_KINDS_MAX) {
		sp_html_cells_done(cells);
		return sp_error_set(err, -E2BIG, p->path,
				    "a page cannot show objects of more than "
				    "%u sizes: choose some of them by "
				    "--size, --from or --to",
				    SP_HTML_KINDS_MAX);
	}
	merge_cells(cells);
	while (cells->n_cells > cells_max && cells->n_bins > SP_HTML_BINS_MIN)
		halve_bins(cells);
	return 0;
}

void sp_html_cells_renumber(struct sp_html_cells *cells,
			    const uint32_t *path_of_path)
{
	for (size_t i = 0; i < cells->n_cells; i++)
		cells->cells[i].stack = path_of_path[cells->cells[i].stack];
	merge_cells(cells);
}

void sp_html_cells_done(struct sp_html_cells *cells)
{
	free(cells->kinds);
	free(cells->periods);
	free(cells->cells);
	*cells = (struct sp_html_cells){0};
}
