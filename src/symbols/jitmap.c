/* SPDX-License-Identifier: MIT */
/*
 * Entries overlap where code was replaced.  A sweep over their ends cuts them
 * into pieces; a heap has the entries that reach over the present address, the
 * last one on top, and some that no longer do.
 */
#include "symbols/jitmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"

#define NONE UINT32_MAX
/* Entries of the heap in which a piece looks for another name. */
#define LOOKED_AT 16u

struct sweep {
	const struct sp_jit_entry *entries;
	uint32_t *by_start, *heap;
	size_t n, next, n_heap;
};

static int compare_starts(const void *a, const void *b, void *arg)
{
	const struct sp_jit_entry *entries = arg;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const uint64_t at_i = entries[i].start, at_k = entries[k].start;

	return at_i == at_k ? (i > k) - (i < k) : at_i < at_k ? -1 : 1;
}

static void swap_slots(uint32_t *heap, size_t i, size_t k)
{
	const uint32_t kept = heap[i];

	heap[i] = heap[k];
	heap[k] = kept;
}

static void push_entry(struct sweep *s, uint32_t entry)
{
	size_t i = s->n_heap++;

	s->heap[i] = entry;
	for (; i && s->heap[(i - 1) / 2] < s->heap[i]; i = (i - 1) / 2)
		swap_slots(s->heap, i, (i - 1) / 2);
}

static void pop_entry(struct sweep *s)
{
	size_t i = 0, child;

	s->heap[0] = s->heap[--s->n_heap];
	while ((child = 2 * i + 1) < s->n_heap) {
		child += child + 1 < s->n_heap &&
			 s->heap[child + 1] > s->heap[child];
		if (s->heap[child] <= s->heap[i])
			return;
		swap_slots(s->heap, i, child);
		i = child;
	}
}

/* All that begin at or before `at` are in the heap, and its top reaches over
 * it. */
static void move_to(struct sweep *s, uint64_t at)
{
	while (s->next < s->n && s->entries[s->by_start[s->next]].start <= at)
		push_entry(s, s->by_start[s->next++]);
	while (s->n_heap && s->entries[s->heap[0]].end <= at)
		pop_entry(s);
}

static struct sp_jit_piece piece_at(const struct sweep *s, uint64_t at)
{
	struct sp_jit_piece piece = {at, s->n_heap ? s->heap[0] : NONE, false};

	for (size_t i = 1; i < s->n_heap && i < LOOKED_AT; i++) {
		const struct sp_jit_entry *e = &s->entries[s->heap[i]];

		if (e->end > at &&
		    strcmp(e->name, s->entries[piece.entry].name) != 0)
			piece.is_reused = true;
	}
	return piece;
}

int sp_jitmap_seal(struct sp_jitmap *map)
{
	const size_t n = map->n_entries;
	struct sweep s = {.entries = map->entries,
			  .by_start = calloc(n + 1, sizeof(*s.by_start)),
			  .heap = calloc(n + 1, sizeof(*s.heap)),
			  .n = n};
	uint64_t *at = calloc(2 * n + 1, sizeof(*at));
	int r = 0;

	free(map->pieces);
	map->n_pieces = 0;
	map->pieces = calloc(2 * n + 1, sizeof(*map->pieces));
	if (!s.by_start || !s.heap || !at || !map->pieces)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < n; i++) {
		s.by_start[i] = (uint32_t)i;
		at[2 * i] = map->entries[i].start;
		at[2 * i + 1] = map->entries[i].end;
	}
	if (!r && n) {
		qsort_r(s.by_start, n, sizeof(*s.by_start), compare_starts,
			map->entries);
		qsort(at, 2 * n, sizeof(*at), sp_array_compare_u64);
	}
	for (size_t i = 0; !r && i < 2 * n; i++) {
		if (i && at[i] == at[i - 1])
			continue;
		move_to(&s, at[i]);
		map->pieces[map->n_pieces++] = piece_at(&s, at[i]);
	}
	free(s.by_start);
	free(s.heap);
	free(at);
	return r;
}

bool sp_jitmap_find(const struct sp_jitmap *map, uint64_t address,
		    struct sp_jit_symbol *ret)
{
	size_t at;
	const struct sp_jit_piece *piece;
	const struct sp_jit_entry *e;

	SP_LOWER_BOUND(at, map->n_pieces, map->pieces[at].start <= address);
	if (!at || map->pieces[at - 1].entry == NONE)
		return false;
	piece = &map->pieces[at - 1];
	e = &map->entries[piece->entry];
	*ret = (struct sp_jit_symbol){e->name, e->file, e->line,
				      piece->is_reused};
	return true;
}

void sp_jitmap_done(struct sp_jitmap *map)
{
	free(map->entries);
	free(map->pieces);
	sp_blocks_free(&map->texts);
	*map = (struct sp_jitmap){0};
}
