/* SPDX-License-Identifier: MIT */
/* The index is made when a sample asks: most frees without a sample come where
 * no sample follows. */
#include "read/early.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"

int sp_early_add(struct sp_early *e, const struct sp_event *event)
{
	if (sp_array_reserve((void **)&e->frees, &e->room, e->n,
			     sizeof(*e->frees)))
		return -ENOMEM;
	e->frees[e->n++] =
		(struct sp_early_free){.id = event->id,
				       .age_bytes = event->u.free.age_bytes,
				       .thread = event->u.free.thread,
				       .missed = event->u.free.missed};
	return 0;
}

/* Is one of that id in the index, at probe->position? */
static bool find_free(const struct sp_early *e, uint64_t id,
		      struct sp_index_probe *probe)
{
	*probe = sp_index_begin(sp_hash_word(e->key, id));
	while (sp_index_next(&e->index, probe))
		if (e->frees[probe->position].id == id)
			return true;
	return false;
}

/* Of several frees of an id the first is meant. */
static int add_to_index(struct sp_early *e)
{
	struct sp_index_probe probe;

	for (; e->n_indexed < e->n; e->n_indexed++) {
		if (sp_index_reserve(&e->index) < 0)
			return -ENOMEM;
		if (!find_free(e, e->frees[e->n_indexed].id, &probe))
			sp_index_put(&e->index, &probe, e->n_indexed);
	}
	return 0;
}

int sp_early_take(struct sp_early *e, const struct sp_event *birth,
		  struct sp_event *ret)
{
	struct sp_index_probe probe;
	struct sp_early_free *found;

	if (!sp_early_left(e))
		return 0;
	if (add_to_index(e) < 0)
		return -ENOMEM;
	if (!find_free(e, birth->id, &probe))
		return 0;
	found = &e->frees[probe.position];
	if (found->is_over)
		return 0;
	found->is_over = true;
	e->n_over++;
	*ret = (struct sp_event){.when = birth->when & ~1ull,
				 .id = birth->id,
				 .u.free = {.age_bytes = found->age_bytes,
					    .thread = found->thread,
					    .missed = found->missed}};
	return 1;
}

void sp_early_done(struct sp_early *e)
{
	free(e->frees);
	sp_index_done(&e->index);
	*e = (struct sp_early){.n = 0};
}
