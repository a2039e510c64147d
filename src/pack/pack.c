/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "pack/columns.h"
#include "pack/events.h"

/* More than the columns of one event take, with the times that it ends. */
#define EVENT_MAX 256u

struct sp_packer {
	struct sp_events_state state;
	struct sp_idmap sites; /* stack to its first site */
	/* Times: `spread` events are between the border before base_ns and
	 * border_ns, the last of them at last_ns. */
	uint64_t tick_ns;
	const uint64_t *moments;
	size_t n_moments;
	uint64_t base_ns;
	uint64_t border_ns;
	uint64_t last_ns;
	uint64_t spread;
	uint32_t n_events; /* of the chunk */
	/* Events since the last exception. */
	uint64_t expected[SP_EVENTS_COLUMNS];
	struct sp_columns columns;
};

struct sp_packer *sp_packer_new(uint64_t file_id, uint64_t first_chunk,
				uint64_t tick_ns, const uint64_t *moments,
				size_t n_moments, sp_chunk_fn *fn, void *arg)
{
	struct sp_packer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	sp_columns_init(&p->columns, &sp_events_layout, file_id, first_chunk,
			fn, arg);
	p->tick_ns = tick_ns;
	p->moments = moments;
	p->n_moments = n_moments;
	sp_events_init(&p->state);
	return p;
}

void sp_packer_free(struct sp_packer *p)
{
	if (!p)
		return;
	sp_events_done(&p->state);
	sp_idmap_done(&p->sites);
	free(p);
}

/* ---- columns ---- */

/* There is room: see make_room(). */
static void put_value(struct sp_packer *p, enum sp_events_column column,
		      uint64_t value)
{
	sp_columns_put(&p->columns, column, value);
}

static void put_signed(struct sp_packer *p, enum sp_events_column column,
		       uint64_t difference)
{
	put_value(p, column, sp_zigzag((int64_t)difference));
}

/* The value of an exception comes behind it. */
static void put_exception(struct sp_packer *p, enum sp_events_column column)
{
	put_value(p, column, p->expected[column]);
	p->expected[column] = 0;
}

static void as_expected(struct sp_packer *p, enum sp_events_column column)
{
	p->expected[column]++;
}

/* ---- times ---- */

/* How many of the moments are no later. */
static size_t moments_until(const struct sp_packer *p, uint64_t ns)
{
	size_t at;

	SP_LOWER_BOUND(at, p->n_moments, p->moments[at] <= ns);
	return at;
}

static uint64_t last_border(const struct sp_packer *p, uint64_t ns)
{
	const uint64_t tick = ns / p->tick_ns * p->tick_ns;
	const size_t n = moments_until(p, ns);

	return n && p->moments[n - 1] > tick ? p->moments[n - 1] : tick;
}

static uint64_t next_border(const struct sp_packer *p, uint64_t ns)
{
	const uint64_t left = p->tick_ns - ns % p->tick_ns;
	const uint64_t tick = left > UINT64_MAX - ns ? UINT64_MAX : ns + left;
	const size_t n = moments_until(p, ns);

	return n < p->n_moments && p->moments[n] < tick ? p->moments[n] : tick;
}

static void put_times(struct sp_packer *p, uint64_t n, uint64_t end_ns)
{
	put_value(p, SP_COLUMN_TIME, n);
	put_value(p, SP_COLUMN_TIME, end_ns - p->base_ns);
	p->base_ns = end_ns;
}

static void end_spread(struct sp_packer *p, uint64_t end_ns)
{
	put_times(p, p->spread, end_ns);
	p->spread = 0;
}

/* Between two borders the events are spread evenly. */
static void put_time(struct sp_packer *p, uint64_t ns)
{
	p->last_ns = ns;
	if (p->spread && ns >= p->border_ns)
		end_spread(p, p->border_ns - 1);
	if (!p->tick_ns || (!p->spread && ns == p->base_ns)) {
		put_times(p, 1, ns);
		return;
	}
	if (!p->spread) {
		p->border_ns = next_border(p, p->base_ns + 1);
		if (ns >= p->border_ns) {
			put_times(p, 0, last_border(p, ns) - 1);
			p->border_ns = next_border(p, ns);
		}
	}
	p->spread++;
}

/* ---- chunks ---- */

static int flush_columns(struct sp_packer *p, struct sp_events_header *h)
{
	if (p->spread)
		end_spread(p, p->last_ns);
	h->first = p->state.n_events - p->n_events;
	h->n_events = p->n_events;
	p->n_events = 0;
	memset(p->expected, 0, sizeof(p->expected));
	return sp_columns_flush(&p->columns, h);
}

static int make_room(struct sp_packer *p)
{
	struct sp_events_header h = {0};

	return p->columns.room < EVENT_MAX ? flush_columns(p, &h) : 0;
}

int sp_pack_end(struct sp_packer *p, uint64_t unmatched_frees,
		uint64_t unfinished)
{
	struct sp_events_header h = {.is_last = 1,
				     .unmatched_frees = unmatched_frees,
				     .unfinished = unfinished};

	return flush_columns(p, &h);
}

/* ---- events ---- */

static int begin_event(struct sp_packer *p, uint64_t time_ns, uint64_t thread)
{
	struct sp_events_state *s = &p->state;
	int r;

	if (time_ns < p->last_ns || thread > UINT32_MAX)
		return -EILSEQ;
	r = make_room(p);
	if (r < 0)
		return r;
	s->n_events++;
	p->n_events++;
	put_time(p, time_ns);
	if (thread == s->thread) {
		as_expected(p, SP_COLUMN_THREAD);
		return s->position == UINT32_MAX
			       ? sp_events_set_thread(s, s->thread)
			       : 0;
	}
	put_exception(p, SP_COLUMN_THREAD);
	put_value(p, SP_COLUMN_THREAD, thread);
	return sp_events_set_thread(s, (uint32_t)thread);
}

/* The number of its site, which may be new. */
static int find_site(struct sp_packer *p, const struct sp_record_sample *r,
		     uint32_t *ret)
{
	struct sp_events_state *s = &p->state;
	const uint32_t stack = (uint32_t)r->stack;
	const uint32_t first = sp_idmap_find(&p->sites, stack);
	uint32_t last = UINT32_MAX;
	int code;

	for (uint32_t i = first; i != UINT32_MAX; i = s->sites[i].next - 1) {
		*ret = last = i;
		if (s->sites[i].entry == r->entry)
			return 0;
	}
	*ret = (uint32_t)s->n_sites;
	code = sp_events_add_site(s, stack, r->entry);
	if (!code && last == UINT32_MAX)
		code = sp_idmap_add(&p->sites, stack, *ret);
	else if (!code)
		s->sites[last].next = *ret + 1;
	put_value(p, SP_COLUMN_SITE, stack);
	put_value(p, SP_COLUMN_SITE, r->entry);
	return code;
}

static void put_fields(struct sp_packer *p, const struct sp_record_sample *r)
{
	struct sp_events_state *s = &p->state;

	put_value(p, SP_COLUMN_SIZE, r->size_bytes);
	if (r->id == s->sample_id + 1) {
		as_expected(p, SP_COLUMN_ID);
	} else {
		put_exception(p, SP_COLUMN_ID);
		put_signed(p, SP_COLUMN_ID, r->id - s->sample_id - 1);
	}
	s->sample_id = r->id;
	if (r->period_bytes == s->period_bytes) {
		as_expected(p, SP_COLUMN_PERIOD);
	} else {
		put_exception(p, SP_COLUMN_PERIOD);
		put_value(p, SP_COLUMN_PERIOD, r->period_bytes);
	}
	s->period_bytes = r->period_bytes;
	if (!r->offset_bytes) {
		as_expected(p, SP_COLUMN_OFFSET);
	} else {
		put_exception(p, SP_COLUMN_OFFSET);
		put_value(p, SP_COLUMN_OFFSET, r->offset_bytes);
	}
}

int sp_pack_sample(struct sp_packer *p, const struct sp_record_sample *r)
{
	struct sp_events_state *s = &p->state;
	struct sp_open_sample open = {.id = r->id};
	uint32_t site;
	int code = begin_event(p, r->time_ns, r->thread);

	if (code >= 0)
		code = find_site(p, r, &site);
	if (code < 0)
		return code;
	put_value(p, SP_COLUMN_WHAT, (uint64_t)site << 1);
	put_fields(p, r);
	s->allocated[s->position] += r->size_bytes;
	open.group = site + 1;
	open.object = s->sites[site].samples++;
	open.sample = s->position;
	open.allocated_bytes = s->allocated[s->position];
	code = sp_open_samples_add(&s->open, &open);
	return code == -EEXIST ? -EILSEQ : code;
}

/* What is told of the end, if it is not what was expected. */
static void put_age(struct sp_packer *p, const struct sp_open_sample *open,
		    const struct sp_record_free *r)
{
	const bool missed = r->flags & SP_FREE_MISSED;
	uint64_t bytes;
	const bool is_known =
		sp_events_expected_age(&p->state, (uint32_t)open->sample,
				       open->allocated_bytes, &bytes);

	if (!missed && r->has_age == is_known &&
	    (!is_known || bytes == r->age_bytes)) {
		as_expected(p, SP_COLUMN_AGE);
		return;
	}
	put_exception(p, SP_COLUMN_AGE);
	put_value(p, SP_COLUMN_AGE,
		  (r->has_age ? SP_AGE_KNOWN : 0) |
			  (missed ? SP_AGE_MISSED : 0));
	if (r->has_age)
		put_signed(p, SP_COLUMN_AGE, r->age_bytes - bytes);
}

int sp_pack_free(struct sp_packer *p, const struct sp_record_free *r)
{
	struct sp_open_sample *open =
		sp_open_samples_find(&p->state.open, r->id);
	struct sp_events_site *site;
	int code;

	if (!open)
		return -EILSEQ;
	code = begin_event(p, r->time_ns, r->thread);
	if (code < 0)
		return code;
	site = &p->state.sites[open->group - 1];
	put_value(p, SP_COLUMN_WHAT, (uint64_t)(open->group - 1) << 1 | 1);
	if (open->object == site->expected) {
		as_expected(p, SP_COLUMN_ORDER);
	} else {
		put_exception(p, SP_COLUMN_ORDER);
		put_signed(p, SP_COLUMN_ORDER,
			   (uint64_t)open->object - site->expected);
	}
	site->expected = open->object + 1;
	put_age(p, open, r);
	sp_open_samples_drop(&p->state.open, open);
	return 0;
}
