/* SPDX-License-Identifier: MIT */
#include "pack/open_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/index.h"

/* Bytes of a brief cell. */
#define BRIEF offsetof(struct sp_open_sample, born_ns)

_Static_assert(BRIEF == 16 && sizeof(struct sp_open_sample) == 32,
	       "the shifts of sp_open_samples_cell()");

void sp_open_samples_init(struct sp_open_samples *l)
{
	*l = (struct sp_open_samples){.key = sp_index_key(l)};
}

/* Neighbours in id, which live at the same time, are neighbours here. */
static size_t home_of(const struct sp_open_samples *l, uint64_t id)
{
	const uint64_t h = sp_hash_word(l->key, id >> 3) >> 16;

	return (h << 3 | (id & 7)) & (l->n_cells - 1);
}

/* What its owner never looks at is not there in a brief table. */
static void put_cell(const struct sp_open_samples *l, struct sp_open_sample *to,
		     const struct sp_open_sample *from)
{
	memcpy(to, from, BRIEF);
	if (!l->is_brief)
		memcpy((char *)to + BRIEF, (const char *)from + BRIEF,
		       sizeof(*to) - BRIEF);
}

/* The cell of an id, or the free one where it belongs. */
static struct sp_open_sample *find_cell(const struct sp_open_samples *l,
					uint64_t id)
{
	size_t i = home_of(l, id);

	while (sp_open_samples_cell(l, i)->group &&
	       sp_open_samples_cell(l, i)->id != id)
		i = (i + 1) & (l->n_cells - 1);
	return sp_open_samples_cell(l, i);
}

struct sp_open_sample *sp_open_samples_find(const struct sp_open_samples *l,
					    uint64_t id)
{
	struct sp_open_sample *cell = l->n ? find_cell(l, id) : NULL;

	return cell && cell->group ? cell : NULL;
}

void sp_open_samples_prefetch(const struct sp_open_samples *l, uint64_t id)
{
	if (l->n_cells)
		__builtin_prefetch(sp_open_samples_cell(l, home_of(l, id)), 1);
}

static int grow_cells(struct sp_open_samples *l)
{
	struct sp_open_samples bigger = {
		.key = l->key,
		.is_brief = l->is_brief,
		.n_cells = l->n_cells ? 2 * l->n_cells : 1024,
		.n = l->n,
	};

	bigger.cells =
		calloc(bigger.n_cells,
		       l->is_brief ? BRIEF : sizeof(struct sp_open_sample));
	if (!bigger.cells)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_cells; i++) {
		const struct sp_open_sample *cell = sp_open_samples_cell(l, i);

		if (cell->group)
			put_cell(l, find_cell(&bigger, cell->id), cell);
	}
	free(l->cells);
	*l = bigger;
	return 0;
}

int sp_open_samples_add(struct sp_open_samples *l,
			const struct sp_open_sample *sample)
{
	struct sp_open_sample *cell;

	if (2 * (l->n + 1) > l->n_cells && grow_cells(l) < 0)
		return -ENOMEM;
	cell = find_cell(l, sample->id);
	if (cell->group)
		return -EEXIST;
	put_cell(l, cell, sample);
	l->n++;
	return 0;
}

/* Those behind it move up, so that every one is still found from its home. */
void sp_open_samples_drop(struct sp_open_samples *l,
			  struct sp_open_sample *sample)
{
	const size_t mask = l->n_cells - 1;
	size_t hole =
		(size_t)((char *)sample - l->cells) >> (l->is_brief ? 4 : 5);

	for (size_t i = (hole + 1) & mask; sp_open_samples_cell(l, i)->group;
	     i = (i + 1) & mask) {
		const size_t home = home_of(l, sp_open_samples_cell(l, i)->id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		put_cell(l, sp_open_samples_cell(l, hole),
			 sp_open_samples_cell(l, i));
		hole = i;
	}
	sp_open_samples_cell(l, hole)->group = 0;
	l->n--;
}

void sp_open_samples_done(struct sp_open_samples *l)
{
	free(l->cells);
	*l = (struct sp_open_samples){0};
}
