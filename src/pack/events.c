/* SPDX-License-Identifier: MIT */
#include "pack/events.h"

#include <stdlib.h>

#include "base/array.h"

void sp_events_init(struct sp_events_state *s)
{
	*s = (struct sp_events_state){0};
	sp_open_samples_init(&s->open);
	s->position = UINT32_MAX;
}

void sp_events_done(struct sp_events_state *s)
{
	free(s->sites);
	free(s->allocated);
	sp_idmap_done(&s->threads);
	sp_open_samples_done(&s->open);
}

int sp_events_set_thread(struct sp_events_state *s, uint32_t index)
{
	uint32_t at = sp_idmap_find(&s->threads, index);
	int r;

	if (at == UINT32_MAX) {
		at = (uint32_t)s->n_threads;
		r = sp_array_reserve((void **)&s->allocated, &s->threads_room,
				     at, sizeof(*s->allocated));
		if (!r)
			r = sp_idmap_add(&s->threads, index, at);
		if (r)
			return r;
		s->allocated[s->n_threads++] = 0;
	}
	s->thread = index;
	s->position = at;
	return 0;
}

int sp_events_add_site(struct sp_events_state *s, uint32_t stack, uint8_t entry)
{
	int r = sp_array_reserve((void **)&s->sites, &s->sites_room, s->n_sites,
				 sizeof(*s->sites));

	if (!r)
		s->sites[s->n_sites++] =
			(struct sp_events_site){.stack = stack, .entry = entry};
	return r;
}
