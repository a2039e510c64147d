/* SPDX-License-Identifier: MIT */
/*
 * Chunks of events are untrusted: a column is never read past its end, every
 * value is held against its range, and a chunk has to use up all that its
 * columns have.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pack/columns.h"
#include "pack/events.h"
#include "pack/namepack.h"
#include "pack/stackpack.h"

/* A column of exceptions: `left` events are as expected before the next; a
 * great number where none is left. */
struct exceptions {
	struct sp_slice in;
	uint64_t left;
};

struct sp_unpacker {
	uint64_t file_id;
	struct sp_events_state state;
	struct sp_events_header header;
	uint32_t n_left; /* of the chunk */
	uint32_t broken; /* kinds of which a chunk was: bit 1 << kind */
	bool is_complete;
	uint32_t kind; /* of the chunk */
	struct sp_unstack stacks;
	struct sp_unname names;
	struct sp_slice columns[SP_COLUMN_TIME + 1];
	struct exceptions exceptions[SP_EVENTS_COLUMNS];
	/* Of n events the times are spread so that one is at the end: each is
	 * step_ns and rest / n later than the one before, rounded up. */
	uint64_t spread, spread_left;
	uint64_t step_ns, rest, carry;
};

struct sp_unpacker *sp_unpacker_new(uint64_t file_id)
{
	struct sp_unpacker *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->file_id = file_id;
	sp_events_init(&u->state);
	return u;
}

void sp_unpacker_free(struct sp_unpacker *u)
{
	if (u) {
		sp_events_done(&u->state);
		sp_unstack_done(&u->stacks);
	}
	free(u);
}

bool sp_unpack_is_complete(const struct sp_unpacker *u,
			   uint64_t *ret_unmatched_frees,
			   uint64_t *ret_unfinished)
{
	*ret_unmatched_frees = u->is_complete ? u->header.unmatched_frees : 0;
	*ret_unfinished = u->is_complete ? u->header.unfinished : 0;
	return u->is_complete;
}

/* ---- a chunk ---- */

static void find_exception(struct exceptions *e)
{
	const bool is_last = e->in.at == e->in.end;

	e->left = is_last ? UINT64_MAX : sp_slice_varint(&e->in);
	/* More than a chunk has: it must not pass for that. */
	if (!is_last && e->left > UINT32_MAX)
		e->left = UINT32_MAX;
}

static bool is_exception(struct exceptions *e)
{
	if (!e->left)
		return true;
	e->left--;
	return false;
}

static const char *broken_field(struct sp_unpacker *u, const char *field)
{
	u->broken |= 1u << u->kind;
	u->n_left = 0;
	return field;
}

/* A chunk has nothing that those before it do not, but for its first number. */
static const char *open_events(struct sp_unpacker *u, const uint8_t *chunk,
			       size_t n)
{
	struct sp_events_header *h = &u->header;
	struct sp_slice columns[SP_EVENTS_COLUMNS];
	const char *wrong = sp_columns_open(&sp_events_layout, u->file_id,
					    chunk, n, h, columns);

	if (wrong)
		return wrong;
	if (u->is_complete || h->first != u->state.n_events)
		return "events number";
	if (h->is_last > 1 ||
	    (!h->is_last && (h->unmatched_frees || h->unfinished)))
		return "events end";
	memcpy(u->columns, columns, sizeof(u->columns));
	for (unsigned int i = SP_COLUMN_TIME + 1; i < SP_EVENTS_COLUMNS; i++) {
		u->exceptions[i].in = columns[i];
		find_exception(&u->exceptions[i]);
	}
	u->spread_left = 0;
	u->n_left = h->n_events;
	return NULL;
}

const char *sp_unpack_chunk(struct sp_unpacker *u, uint32_t kind,
			    const uint8_t *chunk, size_t n)
{
	const char *wrong;

	u->kind = kind;
	if (u->broken & 1u << kind)
		return "columns after damage";
	if (kind == SP_CHUNK_STACKS)
		wrong = sp_unstack_chunk(&u->stacks, u->file_id, chunk, n);
	else if (kind == SP_CHUNK_NAMES)
		wrong = sp_unname_chunk(&u->names, u->file_id, chunk, n);
	else
		wrong = open_events(u, chunk, n);
	return wrong ? broken_field(u, wrong) : NULL;
}

/* Every column was used up. */
static bool is_used_up(const struct sp_unpacker *u)
{
	for (unsigned int i = 0; i < SP_EVENTS_COLUMNS; i++) {
		const struct sp_slice *in = i <= SP_COLUMN_TIME
						    ? &u->columns[i]
						    : &u->exceptions[i].in;

		if (in->failed || in->at < in->end)
			return false;
		if (i > SP_COLUMN_TIME && u->exceptions[i].left <= UINT32_MAX)
			return false;
	}
	return u->spread_left == 0;
}

/* ---- an event ---- */

static const char *take_time(struct sp_unpacker *u)
{
	struct sp_slice *in = &u->columns[SP_COLUMN_TIME];

	while (!u->spread_left) {
		uint64_t ns;

		u->spread = sp_slice_varint(in);
		ns = sp_slice_varint(in);
		if (in->failed || u->spread > (uint64_t)u->n_left + 1)
			return "event time";
		u->spread_left = u->spread;
		if (!u->spread) {
			u->state.time_ns += ns;
			continue;
		}
		u->step_ns = ns / u->spread;
		u->rest = ns % u->spread;
		u->carry = u->spread - 1;
	}
	u->spread_left--;
	u->state.time_ns += u->step_ns;
	u->carry += u->rest;
	if (u->carry >= u->spread) {
		u->carry -= u->spread;
		u->state.time_ns++;
	}
	return NULL;
}

/* 0, -EBADMSG with *ret_field, or -ENOMEM. */
static int take_thread(struct sp_unpacker *u, const char **ret_field)
{
	struct exceptions *e = &u->exceptions[SP_COLUMN_THREAD];
	uint64_t index;

	if (is_exception(e)) {
		index = sp_slice_varint(&e->in);
		find_exception(e);
		if (e->in.failed || index > UINT32_MAX) {
			*ret_field = "event thread";
			return -EBADMSG;
		}
	} else if (u->state.position == UINT32_MAX) {
		index = 0;
	} else {
		return 0;
	}
	return sp_events_set_thread(&u->state, (uint32_t)index);
}

static int take_site(struct sp_unpacker *u, const char **ret_field)
{
	struct sp_slice *in = &u->columns[SP_COLUMN_SITE];
	const uint64_t stack = sp_slice_varint(in);
	const uint64_t entry = sp_slice_varint(in);

	if (in->failed || stack > UINT32_MAX || entry >= 32) {
		*ret_field = "event site";
		return -EBADMSG;
	}
	return sp_events_add_site(&u->state, (uint32_t)stack, (uint8_t)entry);
}

/* The fields that have columns of their own. */
static const char *take_fields(struct sp_unpacker *u,
			       struct sp_record_sample *r)
{
	struct exceptions *id = &u->exceptions[SP_COLUMN_ID];
	struct exceptions *period = &u->exceptions[SP_COLUMN_PERIOD];
	struct exceptions *offset = &u->exceptions[SP_COLUMN_OFFSET];
	struct sp_slice *size = &u->columns[SP_COLUMN_SIZE];

	r->id = u->state.sample_id + 1;
	if (is_exception(id)) {
		r->id += (uint64_t)sp_unzigzag(sp_slice_varint(&id->in));
		find_exception(id);
	}
	if (is_exception(period)) {
		u->state.period_bytes = sp_slice_varint(&period->in);
		find_exception(period);
	}
	r->period_bytes = u->state.period_bytes;
	r->size_bytes = sp_slice_varint(size);
	r->offset_bytes = 0;
	if (is_exception(offset)) {
		r->offset_bytes = sp_slice_varint(&offset->in);
		find_exception(offset);
	}
	if (id->in.failed || period->in.failed || size->failed ||
	    offset->in.failed)
		return "sample";
	if (r->period_bytes == 0 || r->period_bytes > SP_FORMAT_PERIOD_MAX)
		return "sample period";
	if (r->size_bytes == 0)
		return "sample size";
	if (r->offset_bytes >= r->size_bytes)
		return "sample offset";
	return NULL;
}

static uint64_t key_of(uint64_t site, uint32_t number)
{
	return site << 32 | number;
}

static int take_sample(struct sp_unpacker *u, uint64_t number,
		       struct sp_decoded *ret)
{
	struct sp_events_state *s = &u->state;
	struct sp_record_sample *r = &ret->u.sample;
	struct sp_open_sample open = {.group = 1, .object = s->position};
	struct sp_events_site *site;
	int code;

	if (number > s->n_sites || number > UINT32_MAX) {
		ret->field = "event";
		return -EBADMSG;
	}
	if (number == s->n_sites) {
		code = take_site(u, &ret->field);
		if (code)
			return code;
	}
	*r = (struct sp_record_sample){.time_ns = s->time_ns,
				       .thread = s->thread};
	ret->field = take_fields(u, r);
	if (ret->field)
		return -EBADMSG;
	site = &s->sites[number];
	r->stack = site->stack;
	r->entry = site->entry;
	s->sample_id = r->id;
	s->allocated[s->position] += r->size_bytes;
	open.id = key_of(number, site->samples++);
	open.sample = r->id;
	open.allocated_bytes = s->allocated[s->position];
	ret->type = SP_RECORD_SAMPLE;
	ret->field = "event";
	code = sp_open_samples_add(&s->open, &open);
	return code == -EEXIST ? -EBADMSG : code;
}

/* What was alive may have been freed before. */
static struct sp_open_sample *take_order(struct sp_unpacker *u, uint64_t number)
{
	struct exceptions *order = &u->exceptions[SP_COLUMN_ORDER];
	struct sp_events_site *site;
	uint64_t at;

	if (number >= u->state.n_sites)
		return NULL;
	site = &u->state.sites[number];
	at = site->expected;
	if (is_exception(order)) {
		at += (uint64_t)sp_unzigzag(sp_slice_varint(&order->in));
		find_exception(order);
	}
	if (order->in.failed || at >= site->samples)
		return NULL;
	site->expected = (uint32_t)at + 1;
	return sp_open_samples_find(&u->state.open,
				    key_of(number, (uint32_t)at));
}

static int take_free(struct sp_unpacker *u, uint64_t number,
		     struct sp_decoded *ret)
{
	struct sp_events_state *s = &u->state;
	struct exceptions *age = &u->exceptions[SP_COLUMN_AGE];
	struct sp_record_free *r = &ret->u.free;
	struct sp_open_sample *open = take_order(u, number);
	uint64_t flags;

	ret->field = "free";
	if (!open)
		return -EBADMSG;
	*r = (struct sp_record_free){
		.id = open->sample, .time_ns = s->time_ns, .thread = s->thread};
	r->has_age = sp_events_expected_age(
		s, open->object, open->allocated_bytes, &r->age_bytes);
	sp_open_samples_drop(&s->open, open);
	if (is_exception(age)) {
		flags = sp_slice_varint(&age->in);
		if (flags & SP_AGE_KNOWN)
			r->age_bytes += (uint64_t)sp_unzigzag(
				sp_slice_varint(&age->in));
		find_exception(age);
		if (age->in.failed || flags > (SP_AGE_KNOWN | SP_AGE_MISSED))
			return -EBADMSG;
		r->has_age = flags & SP_AGE_KNOWN;
		r->flags = flags & SP_AGE_MISSED ? SP_FREE_MISSED : 0;
	}
	if (!r->has_age)
		r->age_bytes = 0;
	ret->type = SP_RECORD_FREE;
	return 0;
}

static int take_event(struct sp_unpacker *u, struct sp_decoded *ret)
{
	struct sp_slice *in = &u->columns[SP_COLUMN_WHAT];
	const uint64_t what = sp_slice_varint(in);
	int r;

	ret->field = in->failed ? "event" : take_time(u);
	if (ret->field)
		return -EBADMSG;
	r = take_thread(u, &ret->field);
	if (r)
		return r;
	u->state.n_events++;
	return what & 1 ? take_free(u, what >> 1, ret)
			: take_sample(u, what >> 1, ret);
}

/* As sp_unpack_next(). */
static int next_event(struct sp_unpacker *u, struct sp_decoded *ret)
{
	int r;

	if (u->n_left) {
		u->n_left--;
		r = take_event(u, ret);
		return r < 0 ? r : 1;
	}
	if (!is_used_up(u)) {
		ret->field = "events column";
		return -EBADMSG;
	}
	u->is_complete = u->header.is_last;
	return 0;
}

int sp_unpack_next(struct sp_unpacker *u, struct sp_decoded *ret)
{
	int r;

	if (u->kind == SP_CHUNK_STACKS)
		r = sp_unstack_next(&u->stacks, ret);
	else if (u->kind == SP_CHUNK_NAMES)
		r = sp_unname_next(&u->names, u->stacks.places,
				   u->stacks.n_places, ret);
	else
		r = next_event(u, ret);
	if (r == -EBADMSG)
		broken_field(u, ret->field);
	return r;
}
