/* SPDX-License-Identifier: MIT */
/*
 * The writer repeats in each segment of the file what is mapped: records of one
 * number are parts of one mapping, and what they have in common counts once.
 * Calls between the first of them and a repetition have their own records, so
 * that all of a number can be taken together, in its place.
 */
#include "read/mappings.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"
#include "base/saturate.h"

struct sp_mapping_call {
	struct sp_span span;
	bool is_end;
};

static int add_call(struct sp_mappings *m, const struct sp_mapping_call *call)
{
	if (sp_array_reserve((void **)&m->calls, &m->room, m->n,
			     sizeof(*m->calls)))
		return -ENOMEM;
	m->calls[m->n++] = *call;
	return 0;
}

int sp_mappings_add(struct sp_mappings *m, const struct sp_record_map *r,
		    uint32_t stack, uint32_t thread)
{
	const struct sp_mapping_call call = {
		.span = {.start = r->start,
			 .end = r->start + r->bytes,
			 .number = r->number,
			 .time_ns = r->time_ns,
			 .stack = stack,
			 .thread = thread,
			 .flags = (uint32_t)r->flags}};

	return add_call(m, &call);
}

int sp_mappings_end(struct sp_mappings *m, const struct sp_record_unmap *r)
{
	const struct sp_mapping_call call = {
		.span = {.start = r->start,
			 .end = r->start + r->bytes,
			 .number = r->number,
			 .time_ns = r->time_ns},
		.is_end = true};

	return add_call(m, &call);
}

void sp_mappings_each_made(const struct sp_mappings *m,
			   void (*fn)(void *arg, const struct sp_span *made),
			   void *arg)
{
	for (size_t i = 0; i < m->n; i++)
		if (!m->calls[i].is_end)
			fn(arg, &m->calls[i].span);
}

SP_ORDER(compare_calls, struct sp_mapping_call,
	 SP_UP(span.number) || SP_UP(span.start));

struct play {
	struct sp_spans now;
	size_t room;
	sp_mapping_fn *fn;
	void *arg;
	struct sp_mapped *sums;
	uint64_t time_ns; /* of the call */
	int error;
};

static bool is_reserved(const struct sp_span *s)
{
	return s->flags & SP_MAP_NO_ACCESS;
}

static uint64_t *sum_of(struct play *p, const struct sp_span *s)
{
	return is_reserved(s) ? &p->sums->reserved_bytes : &p->sums->bytes;
}

static int tell_part(struct play *p, const struct sp_span *part,
		     uint64_t gone_ns)
{
	return p->fn ? p->fn(p->arg, part, gone_ns) : 0;
}

static void end_part(void *arg, const struct sp_span *part)
{
	struct play *p = arg;

	*sum_of(p, part) -= part->end - part->start;
	/* Times of calls that came at the same moment may be the other way. */
	if (!p->error)
		p->error = tell_part(p, part,
				     p->time_ns < part->time_ns ? part->time_ns
								: p->time_ns);
}

/* Room for one more, wherever that is needed. */
static int reserve_span(struct play *p)
{
	int r = sp_array_reserve((void **)&p->now.at, &p->room, p->now.n,
				 sizeof(*p->now.at));

	p->now.room = p->room;
	return r;
}

static int end_spans(struct play *p, const struct sp_span *s)
{
	int r = reserve_span(p);

	if (r)
		return r;
	p->time_ns = s->time_ns;
	sp_spans_cut(&p->now, s->start, s->end, s->number, end_part, p);
	return p->error;
}

/* Without what an earlier record of the number has, up to *covered. */
static int begin_span(struct play *p, struct sp_span s, uint64_t *covered)
{
	int r;

	if (s.start < *covered)
		s.start = *covered;
	if (s.start >= s.end)
		return 0;
	*covered = s.end;
	r = end_spans(p, &s);
	if (!r)
		r = reserve_span(p);
	if (r)
		return r;
	sp_spans_put(&p->now, &s);
	sp_sat_add(sum_of(p, &s), s.end - s.start);
	if (!is_reserved(&s)) {
		sp_sat_add(&p->sums->made_bytes, s.end - s.start);
		p->sums->made++;
	}
	if (p->sums->bytes > p->sums->peak_bytes) {
		p->sums->peak_bytes = p->sums->bytes;
		p->sums->peak_ns = s.time_ns;
	}
	return 0;
}

static int play_calls(struct play *p, const struct sp_mappings *m)
{
	uint64_t covered = 0, number = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct sp_mapping_call *call = &m->calls[i];
		int r;

		if (call->span.number != number)
			covered = 0;
		number = call->span.number;
		r = call->is_end ? end_spans(p, &call->span)
				 : begin_span(p, call->span, &covered);
		if (r)
			return r;
	}
	return 0;
}

int sp_mappings_play(struct sp_mappings *m, sp_mapping_fn *fn, void *arg,
		     struct sp_mapped *ret)
{
	struct play p = {.fn = fn, .arg = arg, .sums = ret};
	int r;

	*ret = (struct sp_mapped){.is_known = m->n != 0};
	if (m->n)
		qsort(m->calls, m->n, sizeof(*m->calls), compare_calls);
	r = play_calls(&p, m);
	for (size_t i = 0; !r && i < p.now.n; i++) {
		ret->live += !is_reserved(&p.now.at[i]);
		r = tell_part(&p, &p.now.at[i], SP_NEVER);
	}
	free(p.now.at);
	sp_mappings_done(m);
	return r;
}

void sp_mappings_done(struct sp_mappings *m)
{
	free(m->calls);
	*m = (struct sp_mappings){.n = 0};
}
