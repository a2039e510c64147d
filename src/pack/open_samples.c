/* SPDX-License-Identifier: MIT */
#include "pack/open_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/index.h"

_Static_assert(SP_OPEN_SAMPLE_BRIEF == 16 &&
		       sizeof(struct sp_open_sample) == 32,
	       "the shifts of sp_open_samples_cell()");

void sp_open_samples_init(struct sp_open_samples *l)
{
	*l = (struct sp_open_samples){.key = sp_index_key(l)};
}

int sp_open_samples_grow(struct sp_open_samples *l)
{
	struct sp_open_samples bigger = {
		.key = l->key,
		.is_brief = l->is_brief,
		.n_cells = l->n_cells ? 2 * l->n_cells : 1024,
		.n = l->n,
	};

	bigger.cells = calloc(bigger.n_cells,
			      l->is_brief ? SP_OPEN_SAMPLE_BRIEF
					  : sizeof(struct sp_open_sample));
	if (!bigger.cells)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_cells; i++) {
		const struct sp_open_sample *cell = sp_open_samples_cell(l, i);

		if (cell->group)
			sp_open_samples_copy(
				l, sp_open_samples_place(&bigger, cell->id),
				cell);
	}
	free(l->cells);
	*l = bigger;
	return 0;
}

/* Those behind it move up, so that every one is still found from its home. */
void sp_open_samples_drop(struct sp_open_samples *l,
			  struct sp_open_sample *sample)
{
	const size_t mask = l->n_cells - 1;
	size_t hole =
		(size_t)((char *)sample - l->cells) >> (l->is_brief ? 4 : 5);
	uint64_t eight = sample->id >> 3;
	size_t home_of_eight = sp_open_samples_home(l, eight << 3);

	for (size_t i = (hole + 1) & mask; sp_open_samples_cell(l, i)->group;
	     i = (i + 1) & mask) {
		const struct sp_open_sample *cell = sp_open_samples_cell(l, i);
		size_t home;

		/* One hash serves eight ids. */
		if (cell->id >> 3 != eight) {
			eight = cell->id >> 3;
			home_of_eight = sp_open_samples_home(l, eight << 3);
		}
		home = home_of_eight | (cell->id & 7);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		sp_open_samples_copy(l, sp_open_samples_cell(l, hole),
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
