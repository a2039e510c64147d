/* SPDX-License-Identifier: MIT */
#include "symbols/rangemap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/order.h"

int sp_rangemap_add(struct sp_rangemap *map, struct sp_range range)
{
	struct sp_range *grown;
	size_t capacity;

	if (range.start >= range.end)
		return 0;
	if (map->count == map->capacity) {
		if (map->count >= SP_RANGEMAP_MAX)
			return -E2BIG;
		capacity = map->capacity ? 2 * map->capacity : 64;
		grown = realloc(map->ranges, capacity * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		map->ranges = grown;
		map->capacity = capacity;
	}
	map->ranges[map->count++] = range;
	return 0;
}

/* By start; at one start labels last, and among the others the best last. */
SP_ORDER(compare_ranges, struct sp_range,
	 SP_UP(start) || SP_UP(is_label) || SP_DOWN(end) || SP_UP(rank) ||
		 SP_DOWN(value));

static void cut_labels(struct sp_rangemap *map)
{
	uint64_t next = UINT64_MAX;
	size_t i;

	for (i = map->count; i-- > 0;) {
		struct sp_range *r = &map->ranges[i];

		if (i + 1 < map->count && r[1].start != r->start)
			next = r[1].start;
		if (r->is_label && r->end > next)
			r->end = next;
	}
}

/*
 * The sweep over the starts: `open` holds the ranges already started, the
 * preferred one on top, so ranges that have ended may lie buried below.
 * Everything before `at` is already in `pieces`.
 */
struct sweep {
	struct sp_range *pieces;
	size_t n_pieces;
	const struct sp_range **open;
	size_t n_open;
	uint64_t at;
};

static void drop_ended(struct sweep *sweep)
{
	while (sweep->n_open &&
	       sweep->open[sweep->n_open - 1]->end <= sweep->at)
		sweep->n_open--;
}

static void advance_sweep(struct sweep *sweep, uint64_t until)
{
	for (drop_ended(sweep); sweep->n_open && sweep->at < until;
	     drop_ended(sweep)) {
		struct sp_range piece = *sweep->open[sweep->n_open - 1];

		piece.start = sweep->at;
		if (piece.end > until)
			piece.end = until;
		sweep->pieces[sweep->n_pieces++] = piece;
		sweep->at = piece.end;
	}
	sweep->at = until;
	drop_ended(sweep);
}

int sp_rangemap_seal(struct sp_rangemap *map)
{
	struct sweep sweep = {0};
	size_t i;

	if (!map->count)
		return 0;
	qsort(map->ranges, map->count, sizeof(*map->ranges), compare_ranges);
	cut_labels(map);

	/* Each piece ends at a start or at the end of its range. */
	sweep.pieces = calloc(2 * map->count, sizeof(*sweep.pieces));
	sweep.open = calloc(map->count, sizeof(*sweep.open));
	if (!sweep.pieces || !sweep.open) {
		free(sweep.pieces);
		free(sweep.open);
		sp_rangemap_clear(map);
		return -ENOMEM;
	}
	for (i = 0; i < map->count; i++) {
		const struct sp_range *r = &map->ranges[i];

		advance_sweep(&sweep, r->start);
		if (!r->is_label || !sweep.n_open ||
		    sweep.open[sweep.n_open - 1]->is_label)
			sweep.open[sweep.n_open++] = r;
	}
	advance_sweep(&sweep, UINT64_MAX);
	free(sweep.open);
	free(map->ranges);
	map->ranges = sweep.pieces;
	map->count = sweep.n_pieces;
	map->capacity = sweep.n_pieces;
	return 0;
}

bool sp_rangemap_find(const struct sp_rangemap *map, uint64_t address,
		      uint32_t *ret_value)
{
	size_t at;

	SP_LOWER_BOUND(at, map->count, map->ranges[at].end <= address);
	if (at == map->count || map->ranges[at].start > address)
		return false;
	*ret_value = map->ranges[at].value;
	return true;
}

void sp_rangemap_around(const struct sp_rangemap *map, uint64_t address,
			const struct sp_range **ret_before,
			const struct sp_range **ret_behind)
{
	size_t at;

	SP_LOWER_BOUND(at, map->count, map->ranges[at].end <= address);
	at += at < map->count && map->ranges[at].start <= address;
	*ret_before = at ? &map->ranges[at - 1] : NULL;
	*ret_behind = at < map->count ? &map->ranges[at] : NULL;
}

void sp_rangemap_clear(struct sp_rangemap *map)
{
	free(map->ranges);
	*map = (struct sp_rangemap){0};
}
