/* SPDX-License-Identifier: MIT */
#include "read/still_open.h"

#include <stdlib.h>

const struct sp_open_sample *sp_still_open_next(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *i)
{
	const size_t n = paired ? paired->n_objects : open->n_cells;

	while (*i < n) {
		const struct sp_open_sample *l =
			paired ? &paired->objects[*i].sample
			       : sp_open_samples_cell(open, *i);

		++*i;
		if (l->group)
			return l;
	}
	return NULL;
}

static int compare_births(const void *a, const void *b)
{
	const struct sp_open_sample *x = *(struct sp_open_sample *const *)a;
	const struct sp_open_sample *y = *(struct sp_open_sample *const *)b;

	if (x->born_ns != y->born_ns)
		return x->born_ns < y->born_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

const struct sp_open_sample **sp_still_open_list(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *ret_n)
{
	const size_t room = (paired ? paired->n : open->n) + 1;
	const struct sp_open_sample *l, **list = malloc(room * sizeof(*list));

	*ret_n = 0;
	for (size_t i = 0; list && (l = sp_still_open_next(open, paired, &i));)
		list[(*ret_n)++] = l;
	if (list)
		qsort(list, *ret_n, sizeof(*list), compare_births);
	return list;
}
