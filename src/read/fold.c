/* SPDX-License-Identifier: MIT */
#include "read/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "pack/living.h"
#include "read/groups.h"
#include "read/load.h"
#include "stats/curve.h"
#include "stats/table.h"

/* How much older than the first record of a chunk those of later ones may be:
 * a thread may be off the processor between the clock and the chunk. */
#define SLACK_NS 100000000ull

/* More threads than that fill chunks of one time in no sane file. */
#define RUNS_MAX 4096u

/* A free that has not met its sample: at the same nanosecond it may come. */
#define ORPHANS_MAX 16u

/* Twice the time, + 1 for a birth: at one moment frees come first. */
#define LAST_NS (UINT64_MAX / 2)

struct event {
	uint64_t when;
	uint64_t id;
	union {
		struct {
			uint64_t offset_bytes;
			uint32_t group;
			uint32_t object; /* of the peak */
		} birth;
		struct {
			uint64_t age_bytes;
			uint32_t thread;
			bool missed;
		} free;
	} u;
};

/* What a chunk has, in order of time. */
struct run {
	struct event *events;
	size_t n, room, at;
	bool is_sorted;
};

/* A run that waits, with the time of its next event. */
struct head {
	uint64_t when;
	struct run *run;
};

struct sp_fold {
	const struct sp_profile *profile;
	const struct sp_fold_plan *plan;
	struct sp_peak_walk *walk;
	struct head heads[RUNS_MAX]; /* a heap, the earliest first */
	size_t n_heads;
	struct run *filling; /* not in the heap */
	struct run *spare;   /* its room is used again, or NULL */
	uint64_t passed;     /* what is older would come too late */

	struct sp_living living;
	struct event orphans[ORPHANS_MAX];
	size_t n_orphans;
	struct sp_curve curve;
	struct sp_groups groups;
};

/* ---- one event after the other ---- */

/* How many of the plan's moments are earlier. */
static uint32_t cuts_before(const struct sp_fold_plan *plan, uint64_t time_ns)
{
	size_t n = 0, above = plan->n_cuts;

	while (n < above) {
		const size_t middle = (n + above) / 2;

		if (plan->cuts[middle] < time_ns)
			n = middle + 1;
		else
			above = middle;
	}
	return (uint32_t)n;
}

/* A lifetime as a floating-point number with LIFETIME_BITS after the first: a
 * class has those that agree in it.  Less than 64 << LIFETIME_BITS. */
#define LIFETIME_BITS 7
#define LIFETIME_MASK ((1u << LIFETIME_BITS) - 1)

static uint32_t lifetime_class(uint64_t ns)
{
	unsigned int shift;

	if (ns <= LIFETIME_MASK)
		return (uint32_t)ns;
	shift = 63 - LIFETIME_BITS - (unsigned int)__builtin_clzll(ns);
	return (shift + 1) << LIFETIME_BITS |
	       (uint32_t)(ns >> shift & LIFETIME_MASK);
}

/* A class: what became of a sample, as far as the plan asks. */
#define CLASS_CUTS      SP_FOLD_CUTS_MAX /* a mask: of the birth */
#define CLASS_END       9
#define CLASS_LIFETIME  18
#define CLASS_TEMPORARY (1u << 31)

static uint32_t class_of(const struct sp_fold_plan *plan,
			 const struct sp_sample *s)
{
	uint32_t class = 0;

	if (plan->n_cuts)
		class = cuts_before(plan, s->born_ns) |
			cuts_before(plan, s->freed_ns) << CLASS_END;
	if (plan->has_lifetimes)
		class |= lifetime_class(s->freed_ns - s->born_ns)
			 << CLASS_LIFETIME;
	if (plan->has_temporary &&
	    sp_sample_is_temporary(s, plan->within_bytes, plan->within_ns))
		class |= CLASS_TEMPORARY;
	return class;
}

static struct sp_sample sample_of(const struct sp_groups_key *key)
{
	return (struct sp_sample){.freed_ns = SP_NEVER,
				  .size_bytes = key->size_bytes,
				  .period_bytes = key->period_bytes,
				  .age_bytes = SP_UNKNOWN,
				  .stack = key->stack,
				  .thread = key->thread,
				  .freed_by = UINT32_MAX,
				  .entry = (uint8_t)key->entry,
				  .half = key->half != 0};
}

static struct sp_sample living_sample(const struct sp_fold *f,
				      const struct sp_living_sample *l)
{
	struct sp_sample s = sample_of(&f->groups.groups[l->group - 1].key);

	s.id = l->id;
	s.born_ns = l->born_ns;
	s.offset_bytes = l->offset_bytes;
	s.half = l->object & 1;
	return s;
}

static int tell(const struct sp_fold *f, enum sp_sample_event event,
		const struct sp_sample *s)
{
	return f->plan->tell ? f->plan->tell(f->plan->tell_arg, event, s) : 0;
}

/* It has ended with the event `e`. */
static int count(struct sp_fold *f, const struct sp_living_sample *l,
		 const struct event *e)
{
	struct sp_sample s = living_sample(f, l);
	int r;

	s.freed_ns = e->when >> 1;
	s.age_bytes = e->u.free.age_bytes;
	s.freed_by = e->u.free.thread;
	s.free_missed = e->u.free.missed;
	r = sp_groups_add(&f->groups, l->group - 1, class_of(f->plan, &s),
			  s.size_bytes - s.offset_bytes,
			  s.freed_ns - s.born_ns);
	return r < 0 ? r : tell(f, SP_SAMPLE_SETTLED, &s);
}

/* Was it freed at the nanosecond of its birth?  Then it never was alive. */
static bool is_orphan(struct sp_fold *f, const struct event *e,
		      struct event *ret_free)
{
	for (size_t i = 0; i < f->n_orphans; i++) {
		if (f->orphans[i].id != e->id ||
		    f->orphans[i].when >> 1 != e->when >> 1)
			continue;
		*ret_free = f->orphans[i];
		f->orphans[i] = f->orphans[--f->n_orphans];
		return true;
	}
	return false;
}

static int be_born(struct sp_fold *f, const struct event *e)
{
	const struct sp_living_sample born = {.id = e->id,
					      .born_ns = e->when >> 1,
					      .offset_bytes =
						      e->u.birth.offset_bytes,
					      .group = e->u.birth.group + 1,
					      .object = e->u.birth.object};
	struct sp_sample s;
	struct event end;
	int r;

	if (f->n_orphans && is_orphan(f, e, &end))
		return count(f, &born, &end);
	r = sp_living_add(&f->living, &born);
	if (r < 0)
		return r == -EEXIST ? -EILSEQ : r;
	sp_peak_walk_birth(f->walk, born.object, born.born_ns);
	if (!f->plan->tell)
		return 0;
	s = living_sample(f, &born);
	return tell(f, SP_SAMPLE_BORN, &s);
}

static int die(struct sp_fold *f, const struct event *e)
{
	struct sp_living_sample *found = sp_living_find(&f->living, e->id);
	struct sp_living_sample was;

	if (!found) {
		if (f->n_orphans == ORPHANS_MAX)
			return -EILSEQ;
		f->orphans[f->n_orphans++] = *e;
		return 0;
	}
	was = *found;
	sp_living_drop(&f->living, found);
	sp_peak_walk_free(f->walk, was.object, e->when >> 1);
	return count(f, &was, e);
}

/* The one at the top has changed, or is new there. */
static void sift_down(struct sp_fold *f)
{
	const struct head head = f->heads[0];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= f->n_heads)
			break;
		if (child + 1 < f->n_heads &&
		    f->heads[child + 1].when < f->heads[child].when)
			child++;
		if (f->heads[child].when >= head.when)
			break;
		f->heads[i] = f->heads[child];
		i = child;
	}
	f->heads[i] = head;
}

static void free_run(struct run *run)
{
	if (run)
		free(run->events);
	free(run);
}

/* The events of the first run that are older than `until` and no younger than
 * those of the others. */
static int pass_run(struct sp_fold *f, uint64_t until)
{
	struct run *run = f->heads[0].run;

	for (size_t i = 1; i < 3 && i < f->n_heads; i++)
		if (f->heads[i].when < until)
			until = f->heads[i].when + 1;
	while (run->at < run->n && run->events[run->at].when < until) {
		const struct event *e = &run->events[run->at++];
		int r;

		if (f->n_orphans && f->orphans[0].when >> 1 != e->when >> 1)
			return -EILSEQ;
		r = sp_curve_pass(&f->curve, f->walk, e->when >> 1);
		if (!r)
			r = e->when & 1 ? be_born(f, e) : die(f, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What is older than `until` has its turn. */
static int pass(struct sp_fold *f, uint64_t until)
{
	while (f->n_heads && f->heads[0].when < until) {
		struct run *run = f->heads[0].run;
		int r = pass_run(f, until);

		if (r < 0)
			return r;
		if (run->at < run->n) {
			f->heads[0].when = run->events[run->at].when;
		} else {
			free_run(f->spare);
			f->spare = run;
			f->heads[0] = f->heads[--f->n_heads];
		}
		if (f->n_heads)
			sift_down(f);
	}
	if (until > f->passed)
		f->passed = until;
	return 0;
}

/* ---- filling ---- */

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return (x->when > y->when) - (x->when < y->when);
}

/* The run that was filled joins the others. */
static int close_run(struct sp_fold *f)
{
	struct run *run = f->filling;
	size_t i = f->n_heads;
	struct head head;

	f->filling = NULL;
	if (!run || !run->n) {
		free_run(run);
		return 0;
	}
	if (!run->is_sorted)
		qsort(run->events, run->n, sizeof(*run->events),
		      compare_events);
	head = (struct head){run->events[0].when, run};
	if (f->n_heads == RUNS_MAX || head.when < f->passed) {
		free_run(run);
		return -EILSEQ;
	}
	f->n_heads++;
	for (; i && head.when < f->heads[(i - 1) / 2].when; i = (i - 1) / 2)
		f->heads[i] = f->heads[(i - 1) / 2];
	f->heads[i] = head;
	return 0;
}

int sp_fold_chunk(struct sp_fold *f)
{
	const uint64_t first =
		f->filling && f->filling->n ? f->filling->events[0].when : 0;
	int r = close_run(f);

	if (r >= 0 && first > 2 * SLACK_NS + 1)
		r = pass(f, (first & ~1ull) - 2 * SLACK_NS);
	if (r < 0)
		return r;
	f->filling = f->spare ? f->spare : calloc(1, sizeof(*f->filling));
	if (!f->filling)
		return -ENOMEM;
	f->spare = NULL;
	f->filling->n = f->filling->at = 0;
	f->filling->is_sorted = true;
	return 0;
}

static int put(struct sp_fold *f, const struct event *e)
{
	struct run *run = f->filling;

	if (sp_array_reserve((void **)&run->events, &run->room, run->n,
			     sizeof(*run->events)))
		return -ENOMEM;
	if (run->n && e->when < run->events[run->n - 1].when)
		run->is_sorted = false;
	run->events[run->n++] = *e;
	return 0;
}

static uint32_t find_group(struct sp_fold *f, const struct sp_sample *s)
{
	const struct sp_groups_key key = {
		.size_bytes = s->size_bytes,
		.period_bytes = s->period_bytes,
		.stack = s->stack,
		.thread = s->thread,
		.entry = s->entry,
		.half = f->plan->n_cuts &&
			sp_peak_walk_object(f->walk, 0, s->id,
					    s->offset_bytes)};

	return sp_groups_find(&f->groups, &key);
}

/* Where nothing is known of frees, nobody asks what is alive. */
int sp_fold_sample(struct sp_fold *f, const struct sp_sample *s)
{
	const uint32_t group = find_group(f, s);
	uint32_t *kind;

	if (group == UINT32_MAX)
		return -ENOMEM;
	if (!f->profile->has_frees) {
		int r = sp_groups_add(&f->groups, group,
				      cuts_before(f->plan, s->born_ns),
				      s->size_bytes - s->offset_bytes, 0);

		return r < 0 ? r : tell(f, SP_SAMPLE_SETTLED, s);
	}
	/* The walk has to know the largest before it begins. */
	if (s->period_bytes > f->profile->period_bytes || s->born_ns > LAST_NS)
		return -EILSEQ;
	kind = &f->groups.groups[group].kind;
	if (*kind == UINT32_MAX)
		*kind = sp_peak_walk_kind(f->walk, s->size_bytes,
					  s->period_bytes);
	if (*kind == UINT32_MAX)
		return -ENOMEM;
	return put(f,
		   &(struct event){.when = s->born_ns << 1 | 1,
				   .id = s->id,
				   .u.birth = {.offset_bytes = s->offset_bytes,
					       .group = group,
					       .object = sp_peak_walk_object(
						       f->walk, *kind, s->id,
						       s->offset_bytes)}});
}

int sp_fold_free(struct sp_fold *f, const struct sp_samples_free *event)
{
	if (!f->profile->has_frees)
		return 0;
	if (event->time_ns > LAST_NS)
		return -EILSEQ;
	return put(f, &(struct event){.when = event->time_ns << 1,
				      .id = event->id,
				      .u.free = {.age_bytes = event->age_bytes,
						 .thread = event->thread,
						 .missed = event->missed}});
}

/* ---- begin and end ---- */

struct sp_fold *sp_fold_new(const struct sp_profile *profile,
			    const struct sp_fold_plan *plan)
{
	struct sp_fold *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->profile = profile;
	f->plan = plan;
	sp_living_init(&f->living);
	f->groups.key = f->living.key;
	f->walk = sp_peak_walk_new(profile, plan->confidence);
	if (f->walk && sp_curve_init(&f->curve, profile, plan->n_points) == 0 &&
	    sp_fold_chunk(f) == 0)
		return f;
	sp_fold_destroy(f);
	return NULL;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sp_sample *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* What is alive at the end, by ids. */
static int give_alive(const struct sp_fold *f, struct sp_profile *p)
{
	struct sp_sample *alive = malloc((f->living.n + 1) * sizeof(*alive));
	int r = 0;

	if (!alive)
		return -ENOMEM;
	p->samples = alive;
	for (size_t i = 0; i < f->living.n_cells; i++) {
		const struct sp_living_sample *l = &f->living.cells[i];

		if (l->group)
			alive[p->n_samples++] = living_sample(f, l);
	}
	qsort(alive, p->n_samples, sizeof(*alive), compare_samples);
	for (size_t i = 0; i < p->n_samples && !r; i++)
		r = tell(f, SP_SAMPLE_SETTLED, &alive[i]);
	return r;
}

/* A moment that is later than n of the cuts, and not later than the next. */
static uint64_t time_after(const struct sp_fold_plan *plan, uint32_t n)
{
	if (!plan->n_cuts)
		return 0;
	return n < plan->n_cuts ? plan->cuts[n] : plan->cuts[n - 1] + 1;
}

/* One that stands for a class. */
static struct sp_sample ended_sample(const struct sp_fold *f,
				     const struct sp_groups_class *c)
{
	struct sp_sample s = sample_of(&f->groups.groups[c->group].key);

	s.born_ns = time_after(f->plan, c->class & CLASS_CUTS);
	if (!f->profile->has_frees)
		return s;
	s.freed_ns = time_after(f->plan, c->class >> CLASS_END & CLASS_CUTS);
	if (c->class & CLASS_TEMPORARY) {
		s.freed_by = s.thread;
		s.age_bytes = 0;
	}
	return s;
}

static int give_groups(const struct sp_fold *f, struct sp_profile *p)
{
	const struct sp_groups *g = &f->groups;

	p->groups = malloc((g->n_classes + 1) * sizeof(*p->groups));
	if (!p->groups)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_classes; i++) {
		const struct sp_groups_class *c = &g->classes[i];

		p->groups[p->n_groups++] = (struct sp_group){
			.one = ended_sample(f, c),
			.samples = c->samples,
			.tail_bytes = c->tail_bytes,
			.lived_ns = c->lived_ns,
		};
		p->n_folded += c->samples;
	}
	return 0;
}

int sp_fold_finish(struct sp_fold *f, struct sp_profile *p)
{
	struct sp_peak *peak;
	int r = close_run(f);

	if (r >= 0)
		r = pass(f, UINT64_MAX);
	if (r >= 0 && f->n_orphans)
		r = -EILSEQ;
	if (r < 0)
		return r;
	peak = sp_blocks_get(&p->storage, sizeof(*peak));
	if (!peak)
		return -ENOMEM;
	r = sp_curve_pass(&f->curve, f->walk, SP_NEVER);
	if (r >= 0)
		r = sp_curve_give(&f->curve, p);
	if (r < 0)
		return r;
	sp_peak_walk_end(f->walk, peak);
	p->peak = peak;
	r = give_alive(f, p);
	return r < 0 ? r : give_groups(f, p);
}

void sp_fold_destroy(struct sp_fold *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_heads; i++)
		free_run(f->heads[i].run);
	free_run(f->filling);
	free_run(f->spare);
	sp_peak_walk_destroy(f->walk);
	sp_groups_done(&f->groups);
	sp_curve_done(&f->curve);
	sp_living_done(&f->living);
	free(f);
}
