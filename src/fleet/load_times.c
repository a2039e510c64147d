/* SPDX-License-Identifier: MIT */
/* Rows with a time, other than samples: resident memory, phases, snapshots. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fleet/loader.h"
#include "fleet/sql.h"
#include "read/join.h"

/* Rows as they come, those of a process together: to be put in the order of the
 * parts. */
struct items {
	void *at;
	uint16_t *parts; /* of each */
	size_t *counts;  /* of each part */
	size_t n, room, parts_room;
	size_t bytes; /* of one */
};

/* Room for a row of the process in the first column; negative errno and *err.
 */
static int new_item(struct loader *l, struct sp_fleet_rows *s, void **ret)
{
	struct items *items = l->items;
	size_t part = 0;
	int r = sp_fleet_load_find_part(l, s, &part);

	if (r < 0)
		return r;
	if (sp_array_reserve(&items->at, &items->room, items->n,
			     items->bytes) ||
	    sp_array_reserve((void **)&items->parts, &items->parts_room,
			     items->n, sizeof(*items->parts)))
		return sp_fleet_load_fail_memory(l);
	items->parts[items->n] = (uint16_t)part;
	items->counts[part]++;
	*ret = (char *)items->at + items->n++ * items->bytes;
	return 0;
}

/* By parts, those of a part as they came. */
static int sort_items(struct loader *l, struct items *items)
{
	const size_t n_parts = l->p->n_parts;
	size_t *next = calloc(n_parts + 1, sizeof(*next));
	char *sorted = calloc(items->n + 1, items->bytes);

	if (!next || !sorted) {
		free(next);
		free(sorted);
		return sp_fleet_load_fail_memory(l);
	}
	for (size_t i = 0; i < n_parts; i++)
		next[i + 1] = next[i] + items->counts[i];
	for (size_t i = 0; i < items->n; i++)
		memcpy(sorted + next[items->parts[i]]++ * items->bytes,
		       (char *)items->at + i * items->bytes, items->bytes);
	free(next);
	free(items->at);
	items->at = sorted;
	return 0;
}

static int init_items(struct loader *l, struct items *items, size_t bytes)
{
	*items = (struct items){.bytes = bytes};
	l->items = items;
	items->counts = calloc(l->p->n_parts + 1, sizeof(*items->counts));
	return items->counts ? 0 : sp_fleet_load_fail_memory(l);
}

static void free_items(struct items *items)
{
	free(items->at);
	free(items->parts);
	free(items->counts);
}

/* Keeps sorted arrays of the loader's profile sorted. */
typedef int keep_items_fn(struct loader *l, struct items *items);

/* The i-th loader that rows go to. */
static struct loader *loader_at(struct loader *l, size_t i)
{
	return l->n_each ? &l->each[i] : l;
}

/* `bytes` is the size of one. */
static int load_items(struct loader *l, const char *sql, size_t bytes,
		      sp_fleet_take_fn *take, keep_items_fn *keep)
{
	const size_t n = l->n_each ? l->n_each : 1;
	struct items *items = calloc(n, sizeof(*items));
	int r = items ? 0 : sp_fleet_load_fail_memory(l);

	for (size_t i = 0; i < n && r >= 0; i++)
		r = init_items(loader_at(l, i), &items[i], bytes);
	if (r >= 0)
		r = sp_fleet_load_table(l, sql, take);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = sort_items(loader_at(l, i), &items[i]);
		if (r >= 0)
			r = keep(loader_at(l, i), &items[i]);
	}
	for (size_t i = 0; i < n && items; i++)
		free_items(&items[i]);
	free(items);
	return r;
}

/* ---- resident memory ---- */

static int take_rss(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_rss *to;
	void *at = NULL;
	int r = new_item(l, s, &at);

	if (r < 0)
		return r;
	to = at;
	*to = (struct sp_rss){sp_fleet_get(s, 2), sp_fleet_get(s, 3)};
	return 0;
}

/* Of all together, if all recorded it. */
static bool has_rss(const struct loader *l)
{
	for (size_t i = 0; i < l->p->n_parts; i++)
		if (!l->places[i].may_have_rss)
			return false;
	return true;
}

static int keep_rss(struct loader *l, struct items *items)
{
	struct sp_profile *p = l->p;

	if (!has_rss(l))
		return 0;
	p->rss = items->at;
	p->n_rss = items->n;
	items->at = NULL;
	return sp_join_add_up_rss(p, items->counts) < 0
		       ? sp_fleet_load_fail_memory(l)
		       : 0;
}

static int load_rss(struct loader *l)
{
	bool is_asked = false;

	for (size_t i = 0; i < (l->n_each ? l->n_each : 1); i++)
		is_asked |= has_rss(loader_at(l, i));
	return is_asked ? load_items(l, sp_fleet_get_rss, sizeof(struct sp_rss),
				     take_rss, keep_rss)
			: 0;
}

/* ---- phases ---- */

static int take_stretch(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_stretch *to;
	void *at = NULL;
	int r = new_item(l, s, &at);
	uint64_t start_ns;

	if (r < 0)
		return r;
	to = at;
	*to = (struct sp_stretch){
		.from_ns = sp_fleet_get(s, 2),
		.asked_ns = sp_fleet_get(s, 3),
		.to_ns = sp_fleet_get_or(s, 4, SP_NEVER),
		.phase = sp_fleet_load_text(l, s, 5),
		.period_bytes = sp_fleet_get(s, 6),
		.alloc_bytes = sp_fleet_get(s, 7),
		.alloc_objects = sp_fleet_get(s, 8),
		.unsampled_bytes = sp_fleet_get(s, 9),
		.unsampled_objects = sp_fleet_get(s, 10),
		.discarded_bytes = sp_fleet_get(s, 11),
		.slack_bytes = sp_fleet_get(s, 12),
		.part = l->items->parts[l->items->n - 1],
	};
	if (!to->phase)
		return sp_fleet_load_fail_memory(l);
	if (to->from_ns > to->to_ns || to->asked_ns > to->from_ns ||
	    to->period_bytes > SP_FORMAT_PERIOD_MAX)
		return sp_fleet_damaged(l->db, "a stretch", l->err);
	start_ns = l->p->parts[to->part].start_ns;
	to->from_ns = sp_join_time(to->from_ns, start_ns);
	to->asked_ns = sp_join_time(to->asked_ns, start_ns);
	if (to->to_ns != SP_NEVER)
		to->to_ns = sp_join_time(to->to_ns, start_ns);
	return 0;
}

static struct sp_stretch whole_of(const struct sp_profile *p, size_t i)
{
	const struct sp_part *part = &p->parts[i];

	return (struct sp_stretch){
		.from_ns = part->start_ns,
		.asked_ns = part->start_ns,
		.to_ns = SP_NEVER,
		.phase = "",
		.period_bytes = part->period_bytes,
		.alloc_bytes = part->exact_alloc_bytes,
		.alloc_objects = part->exact_alloc_objects,
		.part = (uint16_t)i,
	};
}

/* A process without changes is one stretch, if others have several. */
static int keep_stretches(struct loader *l, struct items *items)
{
	const struct sp_stretch *from = items->at;
	struct sp_profile *p = l->p;

	if (!items->n)
		return 0;
	p->stretches = calloc(items->n + p->n_parts + 1, sizeof(*p->stretches));
	if (!p->stretches)
		return sp_fleet_load_fail_memory(l);
	for (size_t i = 0; i < p->n_parts; i++) {
		if (!items->counts[i])
			p->stretches[p->n_stretches++] = whole_of(p, i);
		for (size_t k = 0; k < items->counts[i]; k++, from++) {
			if (k && from->from_ns < from[-1].from_ns)
				return sp_fleet_damaged(l->db, "a stretch",
							l->err);
			p->stretches[p->n_stretches++] = *from;
		}
	}
	return 0;
}

static int take_snapshot(struct loader *l, struct sp_fleet_rows *s)
{
	struct sp_snapshot *to;
	void *at = NULL;
	int r = new_item(l, s, &at);
	uint64_t start_ns;

	if (r < 0)
		return r;
	to = at;
	*to = (struct sp_snapshot){
		.name = sp_fleet_load_text(l, s, 2),
		.time_ns = sp_fleet_get(s, 3),
		.asked_ns = sp_fleet_get(s, 4),
		.alloc_bytes = sp_fleet_get(s, 5),
		.alloc_objects = sp_fleet_get(s, 6),
		.part = l->items->parts[l->items->n - 1],
	};
	if (!to->name)
		return sp_fleet_load_fail_memory(l);
	if (to->asked_ns > to->time_ns)
		return sp_fleet_damaged(l->db, "a snapshot", l->err);
	start_ns = l->p->parts[to->part].start_ns;
	to->time_ns = sp_join_time(to->time_ns, start_ns);
	to->asked_ns = sp_join_time(to->asked_ns, start_ns);
	return 0;
}

static int keep_snapshots(struct loader *l, struct items *items)
{
	l->p->snapshots = items->at;
	l->p->n_snapshots = items->n;
	items->at = NULL;
	return 0;
}

int sp_fleet_load_times(struct loader *l)
{
	int r = load_rss(l);

	if (r >= 0)
		r = load_items(l, sp_fleet_get_stretches,
			       sizeof(struct sp_stretch), take_stretch,
			       keep_stretches);
	return r < 0 ? r
		     : load_items(l, sp_fleet_get_snapshots,
				  sizeof(struct sp_snapshot), take_snapshot,
				  keep_snapshots);
}
