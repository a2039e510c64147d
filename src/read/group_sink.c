/* SPDX-License-Identifier: MIT */
#include "read/group_sink.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bisect.h"
#include "stats/sums.h"

/* How many of the ascending times are earlier. */
static uint32_t count_before(const uint64_t *times, size_t above,
			     uint64_t time_ns)
{
	size_t at;

	SP_LOWER_BOUND(at, above, times[at] < time_ns);
	return (uint32_t)at;
}

static uint32_t cuts_before(const struct sp_plan *plan, uint64_t time_ns)
{
	return count_before(plan->cuts, plan->n_cuts, time_ns);
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
#define CLASS_CUTS      SP_PLAN_CUTS_MAX /* a mask: of the birth */
#define CLASS_END       9
#define CLASS_LIFETIME  18
#define CLASS_TEMPORARY (1u << 31)

static uint32_t class_of(const struct sp_group_sink *sink, uint32_t group,
			 uint64_t born_ns, const struct sp_event *end)
{
	const struct sp_plan *plan = sink->plan;
	const uint64_t freed_ns = end ? end->when >> 1 : 0;
	uint32_t class = 0;
	struct sp_sample s;

	if (plan->n_cuts)
		class = cuts_before(plan, born_ns);
	if (!end)
		return class;
	if (plan->n_cuts)
		class |= cuts_before(plan, freed_ns) << CLASS_END;
	if (plan->has_lifetimes)
		class |= lifetime_class(freed_ns - born_ns) << CLASS_LIFETIME;
	if (!plan->has_temporary)
		return class;
	s = (struct sp_sample){.born_ns = born_ns,
			       .thread = sink->groups.groups[group].key.thread};
	sp_event_end(end, &s);
	return sp_sample_is_temporary(&s, plan->within_bytes, plan->within_ns)
		       ? class | CLASS_TEMPORARY
		       : class;
}

struct sp_sample sp_group_sink_sample(const struct sp_group_sink *sink,
				      uint32_t group)
{
	const struct sp_sample_groups_key *key =
		&sink->groups.groups[group].key;

	return (struct sp_sample){.freed_ns = SP_NEVER,
				  .size_bytes = key->size_bytes,
				  .period_bytes = key->period_bytes,
				  .age_bytes = SP_UNKNOWN,
				  .stack = key->stack,
				  .thread = key->thread,
				  .freed_by = UINT32_MAX,
				  .entry = (uint8_t)key->entry};
}

int sp_group_sink_mark(struct sp_group_sink *sink, uint64_t time_ns)
{
	size_t i = sink->n_marks;

	if (sp_array_reserve((void **)&sink->marks, &sink->marks_room, i,
			     sizeof(*sink->marks)))
		return -ENOMEM;
	for (; i && sink->marks[i - 1] > time_ns; i--)
		sink->marks[i] = sink->marks[i - 1];
	sink->marks[i] = time_ns;
	sink->n_marks++;
	return 0;
}

/* What is known by now was not when the sample was read: 0 or -ENOMEM. */
static int find_stretch(struct sp_group_sink *sink, uint64_t born_ns,
			uint32_t *group)
{
	const uint32_t stretch =
		count_before(sink->marks, sink->n_marks, born_ns + 1);
	struct sp_sample_groups_key key = sink->groups.groups[*group].key;

	if (!stretch)
		return 0;
	key.stretch = stretch;
	*group = sp_sample_groups_find(&sink->groups, &key);
	return *group == UINT32_MAX ? -ENOMEM : 0;
}

int sp_group_sink_classify(struct sp_group_sink *sink, uint32_t group,
			   uint64_t born_ns, uint64_t offset_bytes,
			   const struct sp_event *end)
{
	if (sink->n_marks && find_stretch(sink, born_ns, &group) < 0)
		return -ENOMEM;
	return sp_sample_groups_add(
		&sink->groups, group, class_of(sink, group, born_ns, end),
		sink->groups.groups[group].key.size_bytes - offset_bytes,
		end ? (end->when >> 1) - born_ns : 0);
}

/* The first moment that is later than n of the cuts. */
static uint64_t time_after(const struct sp_plan *plan, uint32_t n)
{
	return n ? plan->cuts[n - 1] + 1 : 0;
}

/* One that stands for a class. */
static struct sp_sample ended_sample(const struct sp_group_sink *sink,
				     const struct sp_sample_groups_class *c,
				     bool has_frees)
{
	const struct sp_sample_groups_key *key =
		&sink->groups.groups[c->group].key;
	struct sp_sample s = sp_group_sink_sample(sink, c->group);
	uint64_t freed_ns;

	s.role = (uint8_t)(key->role & 3);
	s.born_ns = time_after(sink->plan, c->class & CLASS_CUTS);
	if (key->stretch && sink->marks[key->stretch - 1] > s.born_ns)
		s.born_ns = sink->marks[key->stretch - 1];
	if (!has_frees)
		return s;
	freed_ns = time_after(sink->plan, c->class >> CLASS_END & CLASS_CUTS);
	s.freed_ns = freed_ns > s.born_ns ? freed_ns : s.born_ns;
	s.is_temporary = c->class & CLASS_TEMPORARY;
	return s;
}

int sp_group_sink_end(struct sp_group_sink *sink, struct sp_profile *p)
{
	struct sp_sample_groups *g = &sink->groups;

	sp_sample_groups_end(g);
	for (size_t i = 0; i < g->n_classes; i++) {
		const struct sp_sample_groups_key *key =
			&g->groups[g->classes[i].group].key;

		sp_profile_count_samples(p, key->thread, key->size_bytes,
					 g->classes[i].samples);
	}
	p->groups = malloc((g->n_classes + 1) * sizeof(*p->groups));
	if (!p->groups)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_classes; i++) {
		const struct sp_sample_groups_class *c = &g->classes[i];

		p->groups[p->n_groups++] = (struct sp_sample_group){
			.one = ended_sample(sink, c, p->has_frees),
			.samples = c->samples,
			.tail_bytes = c->tail_bytes,
			.lived_ns = c->lived_ns,
		};
		p->n_grouped += c->samples;
	}
	return 0;
}

void sp_group_sink_done(struct sp_group_sink *sink)
{
	sp_sample_groups_done(&sink->groups);
	free(sink->marks);
}
