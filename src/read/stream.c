/* SPDX-License-Identifier: MIT */
#include "read/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/saturate.h"
#include "pack/open_samples.h"
#include "read/early.h"
#include "read/every_sample.h"
#include "read/group_sink.h"
#include "read/order.h"
#include "read/pairing.h"

struct sp_stream {
	struct sp_profile *profile;
	const struct sp_plan *plan;
	struct sp_sinks *sinks;
	uint64_t start_ns;  /* of the file, on the clock of all */
	uint64_t window_ns; /* on that clock */
	uint16_t part;
	struct sp_order order;
	uint64_t next; /* when the next event is; UINT64_MAX: none is known */
	/* Born and not freed.  Each knows its group; with every_sample it is
	 * one of the profile's samples, and `object` is the position. */
	struct sp_open_samples open;
	struct sp_early early;
	struct sp_pairing pairing; /* if frees have addresses */
	struct sp_group_sink sink;
	uint64_t period_bytes; /* the largest */
	uint64_t last_id;      /* the largest */
	uint64_t coins;
	bool in_window; /* samples count, and sinks are told */
	size_t samples_room;
};

/* ---- one event after the other ---- */

/* The same whichever files are read. */
static void set_role(const struct sp_stream *st, struct sp_sample *s)
{
	const unsigned int role =
		sp_peak_toss(st->coins, s->id, s->offset_bytes);

	s->role = (uint8_t)((1 + role) & 3);
}

static int tell_sinks(const struct sp_stream *st, enum sp_sample_event event,
		      const struct sp_sample *s)
{
	struct sp_sample told;

	if (!st->plan->tell)
		return 0;
	told = *s;
	set_role(st, &told);
	return st->plan->tell(st->plan->tell_arg, event, &told);
}

static int add_to_samples(struct sp_stream *st, const struct sp_sample *s)
{
	struct sp_sample kept = *s;

	set_role(st, &kept);
	return sp_every_sample_add(st->profile, &st->samples_room, &kept);
}

static struct sp_sample open_sample(const struct sp_stream *st,
				    const struct sp_open_sample *l)
{
	struct sp_sample s = sp_group_sink_sample(&st->sink, l->group - 1);

	s.id = l->id;
	s.born_ns = l->born_ns;
	s.offset_bytes = l->offset_bytes;
	s.part = st->part;
	return s;
}

/* It counts, and is alive from now on. */
static inline int begin_sample(struct sp_stream *st,
			       const struct sp_open_sample *l)
{
	struct sp_sample s;

	sp_sinks_birth(st->sinks, l->object, l->born_ns);
	if (!st->plan->tell)
		return 0;
	s = open_sample(st, l);
	return tell_sinks(st, SP_SAMPLE_BORN, &s);
}

/* It is over, by that free; NULL: as far as is known. */
static inline int settle_sample(struct sp_stream *st,
				const struct sp_open_sample *l,
				const struct sp_event *end)
{
	struct sp_sample s;

	if (st->plan->only_peak)
		return 0;
	if (!st->plan->tell)
		return sp_group_sink_add(&st->sink, l->group - 1, l->born_ns,
					 l->offset_bytes, end);
	s = open_sample(st, l);
	if (end)
		sp_event_end(end, &s);
	st->profile->n_grouped++;
	return tell_sinks(st, SP_SAMPLE_SETTLED, &s);
}

/* It never was alive: it was freed at its birth, or nobody tells of frees. */
static int pass_sample(struct sp_stream *st, const struct sp_open_sample *born,
		       const struct sp_event *end)
{
	struct sp_sample s;

	if (!st->plan->every_sample)
		return st->in_window ? settle_sample(st, born, end) : 0;
	s = open_sample(st, born);
	if (end)
		sp_event_end(end, &s);
	return add_to_samples(st, &s);
}

static int add_open_sample(struct sp_stream *st, const struct sp_open_sample *l)
{
	const struct sp_sample s = open_sample(st, l);

	return add_to_samples(st, &s);
}

/* With every sample: it gets its place. */
static int open_one_of_all(struct sp_stream *st, struct sp_open_sample *born)
{
	int r;

	born->object = (uint32_t)st->profile->n_samples;
	r = sp_open_samples_add(&st->open, born);
	return r < 0 ? r : add_open_sample(st, born);
}

static inline int take_birth(struct sp_stream *st, const struct sp_event *e)
{
	struct sp_open_sample born = {.id = e->id,
				      .born_ns = e->when >> 1,
				      .offset_bytes = e->u.birth.offset_bytes,
				      .group = e->u.birth.group + 1,
				      .object = e->u.birth.object};
	struct sp_event early;
	int r = 0;

	if (sp_early_left(&st->early))
		r = sp_early_take(&st->early, e, &early);
	if (r)
		return r < 0 ? r : pass_sample(st, &born, &early);
	if (!st->profile->has_frees)
		return pass_sample(st, &born, NULL);
	r = st->plan->every_sample ? open_one_of_all(st, &born)
				   : sp_open_samples_add(&st->open, &born);
	/* The same sample once more. */
	if (r == -EEXIST)
		return 0;
	return r < 0 || st->plan->every_sample || !st->in_window
		       ? r
		       : begin_sample(st, &born);
}

/* What was open has ended, by that free. */
static inline int end_sample(struct sp_stream *st,
			     const struct sp_open_sample *was,
			     const struct sp_event *e)
{
	if (st->plan->every_sample)
		sp_event_end(e, &st->profile->samples[was->object]);
	if (st->plan->every_sample || !st->in_window)
		return 0;
	sp_sinks_free(st->sinks, was->object, e->when >> 1);
	return settle_sample(st, was, e);
}

/* Here a free finds its sample. */
static inline int take_free(struct sp_stream *st, const struct sp_event *e)
{
	struct sp_open_sample *found = sp_open_samples_find(&st->open, e->id);
	int r;

	/* Its sample may come yet. */
	if (!found)
		return sp_early_add(&st->early, e);
	r = end_sample(st, found, e);
	sp_open_samples_drop(&st->open, found);
	return r;
}

/* What the shared sinks know a sample of that group by, which they want. */
static inline uint32_t object_of(const struct sp_stream *st, uint32_t group,
				 uint64_t id, uint64_t offset_bytes)
{
	const struct sp_sample_groups_group *g = &st->sink.groups.groups[group];

	if (g->is_certain)
		return g->kind << 1;
	if (g->key.role)
		return g->kind << 1 | (g->key.role - 1u);
	return g->kind << 1 | sp_peak_toss(st->coins, id, offset_bytes);
}

/* The same of one that is paired with its free, or SP_SINKS_NONE. */
static inline uint32_t object_for(const struct sp_stream *st,
				  const struct sp_open_sample *l)
{
	struct sp_sample s;

	if (!st->sinks->walk)
		return SP_SINKS_NONE;
	if (!st->sinks->has_all) {
		s = open_sample(st, l);
		if (!sp_sinks_choose(st->sinks, st->profile, &s, s.born_ns))
			return SP_SINKS_NONE;
	}
	return object_of(st, l->group - 1, l->id, l->offset_bytes);
}

/* An object that is open, as a sample. */
static inline struct sp_open_sample open_at(const struct sp_stream *st,
					    const struct sp_open_object *o)
{
	struct sp_open_sample l = {.id = o->id,
				   .born_ns = o->born_ns,
				   .offset_bytes = o->offset_bytes,
				   .group = o->group};

	l.object = st->plan->every_sample ? o->position : object_for(st, &l);
	return l;
}

/* Another object was born where it was. */
static int end_missed(struct sp_stream *st, const struct sp_event *birth,
		      const struct sp_open_object *missed)
{
	const struct sp_open_sample was = open_at(st, missed);
	const struct sp_event ended = {.when = birth->when & ~1ull,
				       .u.free = {.age_bytes = SP_UNKNOWN,
						  .thread = UINT32_MAX,
						  .missed = true}};

	return end_sample(st, &was, &ended);
}

/* The free of an object that was no sample means nothing. */
static inline int take_free_at(struct sp_stream *st, const struct sp_event *e)
{
	const struct sp_pairing_place place =
		sp_pairing_find(&st->pairing, e->id);
	struct sp_open_sample was;
	struct sp_event ended = *e;

	if (!place.object)
		return 0;
	was = open_at(st, place.object);
	ended.u.free.age_bytes =
		sp_pairing_age(&st->pairing, place.object,
			       st->sink.groups.groups[was.group - 1].key.thread,
			       e->u.free.thread);
	sp_pairing_drop(&st->pairing, &place);
	return end_sample(st, &was, &ended);
}

static inline int take_birth_at(struct sp_stream *st, const struct sp_event *e)
{
	const struct sp_sample_groups_key *key =
		&st->sink.groups.groups[e->u.birth_at.group].key;
	struct sp_open_object *object, missed;
	struct sp_open_sample born;
	int r = sp_pairing_birth(&st->pairing, e->u.birth_at.address,
				 key->thread, key->size_bytes,
				 key->period_bytes, &object, &missed);

	if (r < 0)
		return r;
	object->id = e->id;
	object->born_ns = e->when >> 1;
	object->group = e->u.birth_at.group + 1;
	object->offset_bytes = e->u.birth_at.offset_bytes;
	born = open_at(st, object);
	if (st->plan->every_sample)
		object->position = (uint32_t)st->profile->n_samples;
	if (r > 0)
		r = end_missed(st, e, &missed);
	if (r >= 0 && st->plan->every_sample)
		return add_open_sample(st, &born);
	return r < 0 || !st->in_window ? r : begin_sample(st, &born);
}

static inline int take_event(struct sp_stream *st, const struct sp_event *e)
{
	const bool is_birth = e->when & 1;

	if (st->profile->has_addresses)
		return is_birth ? take_birth_at(st, e) : take_free_at(st, e);
	return is_birth ? take_birth(st, e) : take_free(st, e);
}

/* Where frees have addresses. */
static const struct sp_pairing *pairing_of(const struct sp_stream *st)
{
	return st->profile->has_addresses ? &st->pairing : NULL;
}

/* As sp_pairing_list_open(). */
static struct sp_open_sample *list_open(const struct sp_stream *st, size_t *n)
{
	struct sp_open_sample *list =
		sp_pairing_list_open(&st->open, pairing_of(st), n);

	for (size_t i = 0; list && pairing_of(st) && i < *n; i++)
		list[i].object = object_for(st, &list[i]);
	return list;
}

/* What is open at the window counts, and begins. */
static int open_window(struct sp_stream *st)
{
	size_t n;
	struct sp_open_sample *list = list_open(st, &n);
	int r = list ? 0 : -ENOMEM;

	st->in_window = true;
	for (size_t i = 0; !r && i < n; i++)
		r = begin_sample(st, &list[i]);
	free(list);
	return r;
}

/* Where much is open its memory is far away: events ask for it before they
 * come.  Those with addresses find it near the one before. */
static inline void prefetch_event(const struct sp_stream *st,
				  const struct sp_event *e,
				  const struct sp_event *end)
{
	if (end - e > 16 && !st->profile->has_addresses)
		sp_open_samples_prefetch(&st->open, e[16].id);
}

static inline int pass_event(struct sp_stream *st, const struct sp_event *e)
{
	const uint64_t time_ns = e->when >> 1;
	int r = 0;

	if (!st->in_window && time_ns > st->window_ns)
		r = open_window(st);
	if (r >= 0)
		r = sp_sinks_pass(st->sinks, time_ns);
	return r < 0 ? r : take_event(st, e);
}

int sp_stream_pass(struct sp_stream *st, uint64_t limit)
{
	const struct sp_event *first, *e, *end;
	uint64_t until;

	while ((first = sp_order_look(&st->order, &end, &until)) &&
	       first->when < limit) {
		if (until > limit)
			until = limit;
		for (e = first; e < end && e->when < until; e++) {
			int r;

			prefetch_event(st, e, end);
			r = pass_event(st, e);
			if (r < 0)
				return r;
		}
		sp_order_leave(&st->order, (size_t)(e - first));
	}
	st->next = first ? first->when : UINT64_MAX;
	return 0;
}

uint64_t sp_stream_next(const struct sp_stream *st)
{
	return st->next;
}

/* ---- records of the file ---- */

int sp_stream_chunk(struct sp_stream *st)
{
	return sp_order_begin_run(&st->order);
}

/* On the clock of all files. */
static uint64_t common_time(const struct sp_stream *st, uint64_t time_ns)
{
	sp_sat_add(&time_ns, st->start_ns);
	return time_ns < SP_EVENT_LAST_NS ? time_ns : SP_EVENT_LAST_NS;
}

int sp_stream_sample(struct sp_stream *st, const struct sp_sample *s,
		     uint64_t address)
{
	const struct sp_sample_groups_key key = {
		.size_bytes = s->size_bytes,
		.period_bytes = s->period_bytes,
		.stack = st->plan->no_stacks || st->plan->only_peak ? 0
								    : s->stack,
		.thread = s->thread,
		.entry = s->entry,
		.role = st->plan->n_cuts
				? (uint16_t)(1 + sp_peak_toss(st->coins, s->id,
							      s->offset_bytes))
				: 0};
	const uint64_t born_ns = common_time(st, s->born_ns);
	const bool is_wanted =
		sp_sinks_want(st->sinks, st->profile, s, born_ns);
	const uint32_t group = sp_sample_groups_find(&st->sink.groups, &key);
	struct sp_event *e;

	if (!st->sinks->walk || is_wanted)
		sp_raise(&st->period_bytes, s->period_bytes);
	sp_raise(&st->last_id, s->id);
	if (group == UINT32_MAX ||
	    sp_sinks_meet(st->sinks, &st->sink.groups.groups[group]) < 0)
		return -ENOMEM;
	e = sp_order_put(&st->order, born_ns << 1 | 1);
	if (!e)
		return -ENOMEM;
	e->id = s->id;
	if (st->profile->has_addresses) {
		e->u.birth_at.address = address;
		e->u.birth_at.group = group;
		e->u.birth_at.offset_bytes = s->offset_bytes < UINT32_MAX
						     ? (uint32_t)s->offset_bytes
						     : UINT32_MAX;
	} else {
		e->u.birth.offset_bytes = s->offset_bytes;
		e->u.birth.group = group;
		e->u.birth.object =
			is_wanted ? object_of(st, group, s->id, s->offset_bytes)
				  : SP_SINKS_NONE;
	}
	return 0;
}

int sp_stream_free(struct sp_stream *st, const struct sp_stream_free *event)
{
	struct sp_event *e;

	/* A file that says that it has none is forged if it has. */
	if (!st->profile->has_frees)
		return 0;
	e = sp_order_put(&st->order, common_time(st, event->time_ns) << 1);
	if (!e)
		return -ENOMEM;
	e->id = event->id;
	e->u.free.age_bytes = event->age_bytes;
	e->u.free.thread = event->thread;
	e->u.free.missed = event->missed;
	return 0;
}

int sp_stream_mark(struct sp_stream *st, uint64_t time_ns)
{
	time_ns = common_time(st, time_ns);
	st->order.is_late |= time_ns << 1 < st->order.until;
	return sp_group_sink_mark(&st->sink, time_ns);
}

bool sp_stream_is_late(const struct sp_stream *st)
{
	return st->order.is_late;
}

uint64_t sp_stream_period_bytes(const struct sp_stream *st)
{
	return st->period_bytes;
}

uint64_t sp_stream_last_id(const struct sp_stream *st)
{
	return st->last_id;
}

/* ---- the end ---- */

/* What is alive in the end is settled by ids. */
static int give_open_samples(struct sp_stream *st)
{
	struct sp_profile *p = st->profile;
	struct sp_open_sample l;
	int r = 0;

	for (size_t i = 0;
	     !r && sp_pairing_next_open(&st->open, pairing_of(st), &i, &l);)
		r = add_open_sample(st, &l);
	sp_profile_sort_samples(p);
	for (size_t i = 0; i < p->n_samples && r >= 0; i++) {
		const struct sp_sample *s = &p->samples[i];

		sp_profile_count_samples(p, s->thread, s->size_bytes, 1);
		r = tell_sinks(st, SP_SAMPLE_SETTLED, s);
	}
	return r;
}

int sp_stream_stop(struct sp_stream *st, uint64_t time_ns)
{
	struct sp_open_sample *list;
	int r = sp_sinks_pass(st->sinks, time_ns);
	size_t n;

	if (r < 0 || !st->sinks->walk)
		return r;
	list = list_open(st, &n);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sp_sinks_free(st->sinks, list[i].object, time_ns);
	free(list);
	return 0;
}

int sp_stream_last(struct sp_stream *st)
{
	return sp_order_end(&st->order);
}

int sp_stream_end(struct sp_stream *st)
{
	struct sp_profile *p = st->profile;
	int r = st->in_window ? 0 : open_window(st);

	if (r >= 0 && st->plan->every_sample)
		sp_every_sample_end(p, st->window_ns);
	else if (r >= 0)
		r = give_open_samples(st);
	if (r >= 0)
		r = sp_group_sink_end(&st->sink, p);
	p->unmatched_frees += sp_early_left(&st->early);
	return r;
}

/* ---- begin ---- */

struct sp_stream *sp_stream_new(struct sp_profile *profile,
				struct sp_sinks *sinks, uint16_t part,
				uint64_t start_ns, bool keeps_all)
{
	struct sp_stream *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->profile = profile;
	st->plan = st->sink.plan = sinks->plan;
	st->sinks = sinks;
	st->part = part;
	st->start_ns = start_ns;
	st->window_ns = common_time(st, profile->window_ns);
	st->order.keeps_all = keeps_all;
	st->next = UINT64_MAX;
	sp_open_samples_init(&st->open);
	sp_pairing_init(&st->pairing);
	st->sink.groups.key = st->early.key = st->open.key;
	st->coins = sp_peak_coins(profile->seed, profile->start_unix_ns);
	st->open.is_brief = st->plan->every_sample;
	st->in_window = !profile->window_ns || st->plan->every_sample;
	if (sp_order_begin_run(&st->order) == 0 &&
	    (!profile->window_ns ||
	     sp_stream_mark(st, profile->window_ns) == 0))
		return st;
	sp_stream_destroy(st);
	return NULL;
}

void sp_stream_destroy(struct sp_stream *st)
{
	if (!st)
		return;
	sp_order_done(&st->order);
	sp_group_sink_done(&st->sink);
	sp_open_samples_done(&st->open);
	sp_pairing_done(&st->pairing);
	sp_early_done(&st->early);
	free(st);
}
