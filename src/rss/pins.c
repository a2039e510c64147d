/* SPDX-License-Identifier: MIT */
#include "rss/pins.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/load.h"
#include "rss/alive.h"
#include "rss/beside.h"
#include "rss/left.h"

/* Objects in the caches of a thread of glibc, by default: 7 of each of 64
 * sizes. */
#define CACHED_OBJECTS 448u

struct finder {
	const struct sp_rss_pins_question *question;
	const struct sp_rss_pins_process *process;
	struct sp_rss_pins *pins;
	struct sp_rss_alive alive;
	struct sp_rss_places places;
	struct sp_amounts_known known;
	struct sp_amounts all_pinned, all_trim;
	struct sp_amounts *pinned, *trim; /* by rows */
	size_t n_rows;
};

/* ---- can it be told? ---- */

static bool is_everything(const struct sp_profile *p)
{
	const struct sp_whole whole = sp_whole_of(p);

	return p->period_bytes <= 1 && !p->unsampled_bytes &&
	       sp_whole_is_all(&whole);
}

/* What the file says that malloc was: a path. */
static bool is_jemalloc(const struct sp_profile *p)
{
	const char *path = sp_profile_info(p, "allocator");
	const char *base = path ? strrchr(path, '/') : NULL;

	return path && strstr(base ? base : path, "jemalloc");
}

static enum sp_rss_pins_state choose_way(struct finder *f)
{
	const struct sp_rss_pins_process *process = f->process;
	struct sp_rss_pins *pins = f->pins;
	const struct sp_profile *p = pins->profile;

	if (p->n_parts > 1)
		return SP_RSS_PINS_SEVERAL;
	if (!p->has_frees)
		return SP_RSS_PINS_NO_FREES;
	if (process->is_glibc) {
		pins->rule = SP_RSS_PINS_BY_HEADERS;
		return sp_rss_pages_can_read(process->pages)
			       ? SP_RSS_PINS_KNOWN
			       : SP_RSS_PINS_UNREADABLE;
	}
	pins->rule = SP_RSS_PINS_BY_ASKING;
	if (process->objects)
		return SP_RSS_PINS_KNOWN;
	return !process->was_asked && is_jemalloc(p) ? SP_RSS_PINS_NO_ANSWER
						     : SP_RSS_PINS_CANNOT_ASK;
}

/* ---- sums ---- */

/* In use, as it seems, and no object of the profile: then the holes beside it
 * are in no row.  How many bytes at most, if it is with them as with the
 * objects of the profile. */
static double unseen_bytes(const struct finder *f, double all, double objects)
{
	const struct sp_rss_pins *p = f->pins;
	const double others = (double)(p->fast_objects + p->cached_objects_max);

	return objects > 0 ? all * others / (others + objects) : all;
}

/* The sum for which nothing is known of so many of its bytes. */
static void hold_against(struct finder *f, uint64_t free_bytes, double unseen)
{
	const double all = (double)free_bytes;

	f->pins->free_bytes = free_bytes;
	f->known = (struct sp_amounts_known){true, all - unseen, all};
	f->pins->is_held = sp_amounts_can_hold(&f->all_pinned, f->known);
}

static bool has_all_objects(const struct sp_rss_pins *pins)
{
	return !pins->is_exact && !pins->unknown &&
	       !sp_profile_off_bytes(pins->profile) &&
	       !sp_profile_info(pins->profile, "attached.before_bytes");
}

/* What the allocator counts as free, less what is in no hole (E71). */
static void hold_glibc(struct finder *f, double objects)
{
	struct sp_rss_pins *pins = f->pins;
	const struct sp_rss_pins_process *p = f->process;
	uint64_t in_holes;

	pins->fast_bytes = p->glibc.fast_bytes;
	pins->fast_objects = p->glibc.fast_objects;
	pins->cached_objects_max = CACHED_OBJECTS * p->threads;
	if (!sp_rss_beside_tops(p, &pins->top_bytes) ||
	    !has_all_objects(pins) ||
	    p->free_bytes < pins->top_bytes + pins->fast_bytes)
		return;
	in_holes = p->free_bytes - pins->top_bytes - pins->fast_bytes;
	hold_against(f, in_holes, unseen_bytes(f, (double)in_holes, objects));
}

/* What is in the caches of threads lies beside free memory as other objects do,
 * byte by byte. */
static void hold_jemalloc(struct finder *f)
{
	struct sp_rss_pins *pins = f->pins;
	const struct sp_control_slabs *s = &f->process->slabs;
	double part = 1;

	pins->cached_bytes = s->cached_bytes;
	if (s->cached_bytes < s->alive_bytes)
		part = (double)s->cached_bytes / (double)s->alive_bytes;
	if (has_all_objects(pins))
		hold_against(f, s->free_bytes, part * (double)s->free_bytes);
}

static void hold_bounds(struct finder *f, double objects)
{
	if (f->pins->rule == SP_RSS_PINS_BY_HEADERS &&
	    f->process->glibc.has_more)
		hold_glibc(f, objects);
	else if (f->pins->rule == SP_RSS_PINS_BY_ASKING)
		hold_jemalloc(f);
}

static uint32_t row_of(const struct finder *f, uint32_t stack)
{
	return f->pins->aggregate->row_of_stack[stack];
}

static int add_up(struct finder *f)
{
	struct sp_rss_pins *pins = f->pins;
	const struct sp_profile *p = pins->profile;
	double objects = 0;
	uint64_t period;

	f->pinned = calloc(f->n_rows + 1, sizeof(*f->pinned));
	f->trim = calloc(f->n_rows + 1, sizeof(*f->trim));
	if (!f->pinned || !f->trim)
		return -ENOMEM;
	period = pins->is_exact ? 1 : p->period_bytes;
	for (size_t i = 0; i <= f->n_rows; i++) {
		sp_amounts_init(&f->pinned[i], period);
		sp_amounts_init(&f->trim[i], period);
	}
	sp_amounts_init(&f->all_pinned, period);
	sp_amounts_init(&f->all_trim, period);
	for (size_t i = 0; i < f->alive.n; i++) {
		const struct sp_rss_object *o = &f->alive.list[i];
		const struct sp_sample *s = &o->sample;
		const uint32_t row = row_of(f, s->stack);

		pins->gone += o->is_gone;
		if (o->is_gone || !(o->hole > 0) || row >= f->n_rows)
			continue;
		sp_amounts_add(&f->pinned[row], &p->law, s->size_bytes,
			       s->period_bytes, o->pinned, o->hole);
		sp_amounts_add(&f->trim[row], &p->law, s->size_bytes,
			       s->period_bytes, o->trim, o->hole);
		objects += 1 / sp_inclusion_probability(s->size_bytes,
							s->period_bytes);
	}
	for (size_t i = 0; i < f->n_rows; i++) {
		sp_amounts_merge(&f->all_pinned, &f->pinned[i]);
		sp_amounts_merge(&f->all_trim, &f->trim[i]);
	}
	pins->samples = f->all_pinned.samples;
	hold_bounds(f, objects);
	return 0;
}

/* ---- periods ---- */

/* Of a row, or of all: UINT32_MAX. */
static uint64_t period_for(const struct finder *f, uint32_t row,
			   struct sp_amounts_object *room)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->alive.n; i++) {
		const struct sp_rss_object *o = &f->alive.list[i];

		if (!o->is_gone && o->pinned > 0 &&
		    (row == UINT32_MAX || row_of(f, o->sample.stack) == row))
			room[n++] = (struct sp_amounts_object){
				o->sample.size_bytes, o->sample.period_bytes,
				o->pinned};
	}
	return sp_amounts_period_for(room, n, &f->pins->profile->law,
				     SP_RSS_PINS_ERROR, f->pins->confidence,
				     1ull << 40);
}

/* Intervals are a little wider than what (E72) is about: then the period that
 * was used would do by it. */
static uint64_t shorter_period(const struct finder *f, uint64_t period)
{
	const uint64_t used = f->pins->profile->period_bytes;

	while (period > 1 && period >= used)
		period /= 2;
	return period;
}

static bool is_good(struct sp_interval i)
{
	return i.hi - i.lo <= 2 * SP_RSS_PINS_ERROR * i.value;
}

/* Rows that anybody looks at. */
#define PERIODS_MAX 100

static int find_periods(struct finder *f)
{
	struct sp_rss_pins *pins = f->pins;
	struct sp_amounts_object *room = calloc(f->alive.n + 1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	if (!is_good(pins->pinned))
		pins->needs_period_bytes =
			shorter_period(f, period_for(f, UINT32_MAX, room));
	for (size_t i = 0; i < pins->n_sites && i < PERIODS_MAX; i++)
		if (!is_good(pins->sites[i].pinned))
			pins->sites[i].needs_period_bytes = shorter_period(
				f, period_for(f, pins->sites[i].function->row,
					      room));
	free(room);
	return 0;
}

/* ---- sites ---- */

static int compare_sites(const void *a, const void *b)
{
	const struct sp_rss_pin_site *x = a, *y = b;
	int order =
		sp_aggregate_compare_values(x->pinned.value, y->pinned.value);

	if (!order)
		order = sp_aggregate_compare_values(x->trim.value,
						    y->trim.value);
	return order ? order : sp_aggregate_compare(x->function, y->function);
}

/* Bytes that the objects of each of the profile's stacks pin; NULL without
 * memory. */
static double *pinned_by_stack(const struct finder *f)
{
	const struct sp_profile *p = f->pins->profile;
	double *values = calloc(p->n_stacks + 1, sizeof(*values));

	for (size_t i = 0; values && i < f->alive.n; i++) {
		const struct sp_rss_object *o = &f->alive.list[i];

		if (!o->is_gone)
			values[o->sample.stack] += sp_amounts_share(
				&f->all_pinned, f->known, &p->law,
				o->sample.size_bytes, o->sample.period_bytes,
				o->pinned, o->hole);
	}
	return values;
}

static void find_heaviest(const struct finder *f, const double *values,
			  struct sp_rss_pin_site **by_row)
{
	const struct sp_aggregate *a = f->pins->aggregate;

	for (size_t i = 0; i < a->n_stacks; i++) {
		const struct sp_aggregate_stack *s = &a->stacks[i];
		const size_t at = (size_t)(s->stack - f->pins->profile->stacks);
		const uint32_t row = row_of(f, (uint32_t)at);
		struct sp_rss_pin_site *site =
			row < f->n_rows ? by_row[row] : NULL;
		double share;

		if (!site || !(site->pinned.value > 0))
			continue;
		share = values[at] / site->pinned.value;
		if (share <= site->stack_share)
			continue;
		site->stack = s;
		site->stack_share = fmin(share, 1);
	}
}

static int find_stacks(struct finder *f)
{
	struct sp_rss_pins *pins = f->pins;
	struct sp_rss_pin_site **by_row =
		calloc(f->n_rows + 1, sizeof(*by_row));
	double *values = pinned_by_stack(f);
	int r = values && by_row ? 0 : -ENOMEM;

	if (r == 0) {
		for (size_t i = 0; i < pins->n_sites; i++)
			by_row[pins->sites[i].function->row] = &pins->sites[i];
		find_heaviest(f, values, by_row);
	}
	free(values);
	free(by_row);
	return r;
}

static int list_sites(struct finder *f)
{
	struct sp_rss_pins *pins = f->pins;
	const double level = pins->confidence;

	pins->sites = calloc(f->n_rows + 1, sizeof(*pins->sites));
	if (!pins->sites)
		return -ENOMEM;
	for (uint32_t row = 0; row < f->n_rows; row++) {
		struct sp_rss_pin_site *site = &pins->sites[pins->n_sites];

		if (!f->pinned[row].samples)
			continue;
		pins->n_sites++;
		site->function = sp_aggregate_at(pins->aggregate, row);
		site->samples = f->pinned[row].samples;
		site->pinned = sp_amounts_estimate(
			&f->pinned[row], &f->all_pinned, f->known, level);
		site->trim = sp_amounts_estimate(&f->trim[row], &f->all_trim,
						 f->known, level);
	}
	pins->pinned = sp_amounts_estimate(&f->all_pinned, &f->all_pinned,
					   f->known, level);
	pins->trim = sp_amounts_estimate(&f->all_trim, &f->all_trim, f->known,
					 level);
	if (pins->n_sites)
		qsort(pins->sites, pins->n_sites, sizeof(*pins->sites),
		      compare_sites);
	return 0;
}

/* ---- all of it ---- */

static int look_at_objects(struct finder *f, struct sp_error *err)
{
	struct sp_rss_pins *pins = f->pins;
	int r = sp_rss_beside_find(pins, f->process, &f->alive, &f->places);

	if (r < 0)
		return sp_error_memory(err, NULL);
	return sp_rss_alive_look_again(f->question->path, pins->profile,
				       &f->places, &f->alive, err);
}

static int estimate_rows(struct finder *f)
{
	struct sp_rss_pins *pins = f->pins;
	int r = add_up(f);

	if (r == 0)
		r = list_sites(f);
	if (r == 0)
		r = find_stacks(f);
	if (r == 0)
		r = find_periods(f);
	if (r == 0)
		r = sp_rss_left_find(pins, &f->alive, &f->places);
	pins->can_tell = pins->is_exact || pins->samples >= SP_AMOUNTS_SAMPLES;
	return r;
}

/* What it is about, without names yet. */
static int find_objects(struct finder *f, struct sp_error *err)
{
	struct sp_rss_pins *pins = f->pins;
	int r = sp_rss_alive_find(f->question->path, pins->profile, &f->alive,
				  err);

	pins->unknown = f->alive.unknown;
	if (r >= 0 && f->alive.n && f->alive.unknown == f->alive.n)
		pins->state = SP_RSS_PINS_NO_ADDRESS;
	return r;
}

/* What is alive has rows of its own: of a file that discarded samples some of
 * it is in no view of what was allocated. */
static int name_sites(struct finder *f, struct sp_error *err)
{
	struct sp_rss_pins *pins = f->pins;
	const struct sp_answer answer = {
		.profile = pins->profile,
		.question = &pins->question,
		.symbols = f->question->symbols,
		.progress = f->question->progress,
	};
	int r;

	sp_question_init(&pins->question);
	pins->answer = answer;
	pins->left_answer = answer;
	r = sp_answer_analyse(&pins->answer, SP_VIEW_LIVE, err);
	if (r >= 0)
		r = sp_answer_aggregate(&pins->answer, f->question->granularity,
					&pins->aggregate, err);
	if (r >= 0)
		r = sp_answer_whole(&pins->left_answer,
				    f->question->granularity,
				    &pins->left_aggregate, err);
	if (r < 0)
		return r;
	f->n_rows = pins->aggregate->n_functions;
	return 0;
}

static int find_pins(struct finder *f, struct sp_error *err)
{
	struct sp_rss_pins *pins = f->pins;
	int r;

	pins->state = choose_way(f);
	pins->is_exact = is_everything(pins->profile);
	pins->has_trim = pins->rule == SP_RSS_PINS_BY_HEADERS;
	if (pins->state != SP_RSS_PINS_KNOWN)
		return 0;
	r = find_objects(f, err);
	if (r < 0 || pins->state != SP_RSS_PINS_KNOWN)
		return r;
	r = look_at_objects(f, err);
	if (r < 0)
		return r;
	r = name_sites(f, err);
	if (r < 0)
		return r;
	return estimate_rows(f) < 0 ? sp_error_memory(err, NULL) : 0;
}

static int load_profile(struct finder *f, struct sp_error *err)
{
	const struct sp_load_needs needs = {.while_written = true};
	struct sp_question question;

	sp_question_init(&question);
	question.confidence = f->question->confidence;
	return sp_load(&f->question->path, 1, &question, &needs,
		       f->question->progress, NULL, &f->pins->profile, err);
}

int sp_rss_pins_find(const struct sp_rss_pins_question *question,
		     const struct sp_rss_pins_process *process,
		     struct sp_rss_pins **ret, struct sp_error *err)
{
	struct sp_rss_pins *pins = calloc(1, sizeof(*pins));
	struct finder f = {
		.question = question, .process = process, .pins = pins};
	int r;

	if (!pins)
		return sp_error_memory(err, NULL);
	pins->confidence = question->confidence;
	r = load_profile(&f, err);
	if (r >= 0)
		r = find_pins(&f, err);
	sp_rss_alive_free(&f.alive);
	sp_rss_places_free(&f.places);
	free(f.pinned);
	free(f.trim);
	if (r < 0) {
		sp_rss_pins_free(pins);
		return r;
	}
	*ret = pins;
	return 0;
}

struct sp_rss_pins *sp_rss_pins_unknown(enum sp_rss_pins_state state)
{
	struct sp_rss_pins *pins = calloc(1, sizeof(*pins));

	if (pins)
		pins->state = state;
	return pins;
}

void sp_rss_pins_free(struct sp_rss_pins *pins)
{
	if (!pins)
		return;
	free(pins->sites);
	if (pins->left_aggregate)
		sp_aggregate_free(pins->left_aggregate);
	sp_answer_done(&pins->left_answer);
	if (pins->aggregate)
		sp_aggregate_free(pins->aggregate);
	sp_answer_done(&pins->answer);
	if (pins->profile)
		sp_profile_free(pins->profile);
	free(pins);
}
