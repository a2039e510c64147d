/* SPDX-License-Identifier: MIT */
#include "rss/alive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/idmap.h"
#include "base/order.h"
#include "read/reader.h"

/* Freed objects that are kept; 40 bytes each. */
#define FREED_MAX (8u << 20)

void sp_rss_alive_free(struct sp_rss_alive *alive)
{
	free(alive->list);
	free(alive->freed);
}

/* ---- which are alive ---- */

static int gather_objects(const struct sp_profile *p, struct sp_rss_alive *a)
{
	size_t room = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		if (p->samples[i].freed_ns != SP_NEVER)
			continue;
		if (sp_array_reserve((void **)&a->list, &room, a->n,
				     sizeof(*a->list)) < 0)
			return -ENOMEM;
		a->list[a->n++] =
			(struct sp_rss_object){.sample = p->samples[i]};
	}
	return 0;
}

/* ---- where they are ---- */

SP_ORDER(compare_ids, struct sp_rss_object, SP_UP(sample.id));

SP_ORDER(compare_addresses, struct sp_rss_object,
	 SP_UP(address) || SP_UP(sample.id));

static struct sp_rss_object *find_id(const struct sp_rss_alive *a, uint64_t id)
{
	const struct sp_rss_object key = {.sample = {.id = id}};

	return a->n ? bsearch(&key, a->list, a->n, sizeof(key), compare_ids)
		    : NULL;
}

/* Called for each record: 0, or negative errno. */
typedef int record_fn(void *arg, const struct sp_decoded *record);

static int read_records(const char *path, record_fn *fn, void *arg,
			struct sp_error *err)
{
	struct sp_reader *reader = malloc(sizeof(*reader));
	struct sp_decoded d;
	int r;

	if (!reader)
		return sp_error_memory(err, NULL);
	r = sp_reader_open(reader, path, err);
	while (r >= 0 && (r = sp_reader_next(reader, &d, err)) > 0) {
		r = fn(arg, &d);
		if (r < 0)
			sp_error_memory(err, NULL);
	}
	sp_reader_close(reader);
	free(reader);
	return r < 0 ? r : 0;
}

static int take_address(void *arg, const struct sp_decoded *d)
{
	struct sp_rss_object *o = d->type == SP_RECORD_SAMPLE
					  ? find_id(arg, d->u.sample.id)
					  : NULL;

	if (o)
		o->address = d->u.sample.address;
	return 0;
}

static void sort_list(void *list, size_t n, size_t size,
		      int (*compare)(const void *, const void *))
{
	if (n)
		qsort(list, n, size, compare);
}

int sp_rss_alive_find(const char *path, const struct sp_profile *profile,
		      struct sp_rss_alive *ret, struct sp_error *err)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	if (gather_objects(profile, ret) < 0)
		return sp_error_memory(err, NULL);
	sort_list(ret->list, ret->n, sizeof(*ret->list), compare_ids);
	r = read_records(path, take_address, ret, err);
	sort_list(ret->list, ret->n, sizeof(*ret->list), compare_addresses);
	while (ret->unknown < ret->n && !ret->list[ret->unknown].address)
		ret->unknown++;
	return r;
}

/* ---- what became of them, and what was there before ---- */

struct again {
	struct sp_rss_alive *alive;
	const struct sp_rss_places *places;
	const struct sp_profile *profile;
	struct sp_idmap stacks; /* to positions */
	size_t *by_id;          /* positions of alive->list */
	size_t freed_room;
};

/* The position of the first object at that address or behind it. */
static size_t first_at(const struct sp_rss_alive *a, uint64_t address)
{
	size_t i;

	SP_LOWER_BOUND(i, a->n, a->list[i].address < address);
	return i;
}

/* Freed since the profile was read: before, its birth and its end are there. */
static void take_end(struct again *w, uint64_t address, uint64_t time_ns)
{
	const struct sp_rss_alive *a = w->alive;

	for (size_t i = first_at(a, address);
	     i < a->n && a->list[i].address == address; i++)
		if (time_ns >= a->list[i].sample.born_ns)
			a->list[i].is_gone = true;
}

static void take_end_by_id(struct again *w, uint64_t id)
{
	const struct sp_rss_alive *a = w->alive;
	size_t at;

	SP_LOWER_BOUND(at, a->n, a->list[w->by_id[at]].sample.id < id);
	if (at < a->n && a->list[w->by_id[at]].sample.id == id)
		a->list[w->by_id[at]].is_gone = true;
}

static bool is_in_place(const struct sp_rss_places *p, uint64_t start,
			uint64_t end)
{
	size_t at;

	SP_LOWER_BOUND(at, p->n, p->list[at].end <= start);
	return at < p->n && p->list[at].start < end;
}

static int take_sample(struct again *w, const struct sp_record_sample *s)
{
	struct sp_rss_alive *a = w->alive;
	const struct sp_part *part = w->profile->parts;
	uint32_t stack = sp_idmap_find(&w->stacks, (uint32_t)s->stack);

	if (s->is_again || stack >= part->n_stacks ||
	    !is_in_place(w->places, s->address, s->address + s->size_bytes))
		return 0;
	if (a->n_freed == FREED_MAX) {
		a->is_cut = true;
		return 0;
	}
	if (sp_array_reserve((void **)&a->freed, &w->freed_room, a->n_freed,
			     sizeof(*a->freed)) < 0)
		return -ENOMEM;
	a->freed[a->n_freed++] = (struct sp_rss_freed){
		s->address, s->size_bytes, s->period_bytes, s->time_ns,
		part->stacks ? part->stacks[stack] : stack};
	return 0;
}

static int take_record(void *arg, const struct sp_decoded *d)
{
	struct again *w = arg;

	if (d->type == SP_RECORD_SAMPLE)
		return take_sample(w, &d->u.sample);
	if (d->type == SP_RECORD_FREE && !w->profile->has_addresses)
		take_end_by_id(w, d->u.free.id);
	if (d->type == SP_RECORD_FREE_ADDRESS)
		take_end(w, d->u.free_address.address,
			 d->u.free_address.time_ns);
	return 0;
}

SP_ORDER(compare_freed, struct sp_rss_freed, SP_UP(address) || SP_UP(born_ns));

/* Is there something now where it was, or it itself? */
static bool is_taken(const struct sp_rss_alive *a, const struct sp_rss_freed *f)
{
	size_t i = first_at(a, f->address);

	if (i < a->n && a->list[i].address < f->address + f->size_bytes)
		return true;
	return i && a->list[i - 1].address &&
	       a->list[i - 1].taken.end > f->address;
}

/* Of those that overlap, the one that was there last. */
static void keep_last(struct sp_rss_alive *a)
{
	size_t n = 0;

	sort_list(a->freed, a->n_freed, sizeof(*a->freed), compare_freed);
	for (size_t i = 0; i < a->n_freed; i++) {
		const struct sp_rss_freed f = a->freed[i];
		bool is_last = !is_taken(a, &f);

		while (is_last && n &&
		       a->freed[n - 1].address + a->freed[n - 1].size_bytes >
			       f.address) {
			if (a->freed[n - 1].born_ns > f.born_ns)
				is_last = false;
			else
				n--;
		}
		if (is_last)
			a->freed[n++] = f;
	}
	a->n_freed = n;
}

struct by_id {
	uint64_t id;
	size_t position;
};

SP_ORDER(compare_by_id, struct by_id, SP_UP(id));

static int list_by_id(struct again *w)
{
	const struct sp_rss_alive *a = w->alive;
	struct by_id *list = calloc(a->n + 1, sizeof(*list));

	w->by_id = calloc(a->n + 1, sizeof(*w->by_id));
	if (!list || !w->by_id) {
		free(list);
		return -ENOMEM;
	}
	for (size_t i = 0; i < a->n; i++)
		list[i] = (struct by_id){a->list[i].sample.id, i};
	sort_list(list, a->n, sizeof(*list), compare_by_id);
	for (size_t i = 0; i < a->n; i++)
		w->by_id[i] = list[i].position;
	free(list);
	return 0;
}

static int list_stacks(struct again *w)
{
	const struct sp_profile *p = w->profile;
	int r = 0;

	for (uint32_t i = 0; i < p->parts->n_stacks && r == 0; i++)
		r = sp_idmap_add(&w->stacks, p->stacks[i].id, i);
	return r;
}

int sp_rss_alive_look_again(const char *path, const struct sp_profile *profile,
			    const struct sp_rss_places *places,
			    struct sp_rss_alive *alive, struct sp_error *err)
{
	struct again w = {.alive = alive, .places = places, .profile = profile};
	int r = list_by_id(&w);

	if (r == 0)
		r = list_stacks(&w);
	r = r < 0 ? sp_error_memory(err, NULL)
		  : read_records(path, take_record, &w, err);
	sp_idmap_done(&w.stacks);
	free(w.by_id);
	keep_last(alive);
	return r;
}
