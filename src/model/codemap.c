/* SPDX-License-Identifier: MIT */
#include "model/codemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/saturate.h"

void sp_codemap_init(struct sp_codemap *map, struct sp_profile *profile)
{
	*map = (struct sp_codemap){
		.profile = profile,
		.key = sp_index_key(map),
	};
}

void sp_codemap_done(struct sp_codemap *map)
{
	sp_index_done(&map->modules);
	sp_index_done(&map->stacks);
}

static bool same_module(const struct sp_module *a, const struct sp_module *b)
{
	return a->end_pc - a->start_pc == b->end_pc - b->start_pc &&
	       a->start_pc - a->bias == b->start_pc - b->bias &&
	       a->build_id_len == b->build_id_len &&
	       memcmp(a->build_id, b->build_id, a->build_id_len) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

static uint64_t hash_module(uint64_t key, const struct sp_module *m)
{
	uint64_t h = sp_hash_word(key, m->end_pc - m->start_pc);

	h = sp_hash_word(h, m->start_pc - m->bias);
	h = sp_hash_bytes(h, m->build_id, m->build_id_len);
	return sp_hash_bytes(h, m->path, strlen(m->path));
}

int sp_codemap_add_module(struct sp_codemap *map, const struct sp_module *m,
			  uint32_t *ret_id)
{
	struct sp_profile *p = map->profile;
	struct sp_index_probe probe = sp_index_begin(hash_module(map->key, m));
	struct sp_module *to;

	if (sp_index_reserve(&map->modules) ||
	    sp_array_reserve((void **)&p->modules, &map->modules_room,
			     p->n_modules, sizeof(*p->modules)))
		return -ENOMEM;
	while (sp_index_next(&map->modules, &probe)) {
		struct sp_module *there = &p->modules[probe.position];

		if (!same_module(there, m))
			continue;
		there->is_main |= m->is_main;
		*ret_id = there->id;
		return 0;
	}
	to = &p->modules[p->n_modules];
	*to = *m;
	to->id = *ret_id = (uint32_t)p->n_modules + 1;
	to->path = sp_blocks_text(&p->storage, m->path, strlen(m->path));
	if (!to->path)
		return -ENOMEM;
	sp_index_put(&map->modules, &probe, p->n_modules++);
	return 0;
}

int sp_codemap_add_stack(struct sp_codemap *map, const struct sp_stack *s,
			 uint32_t *ret_position)
{
	struct sp_profile *p = map->profile;
	struct sp_index_probe probe =
		sp_index_begin(sp_stack_hash(map->key, s));
	struct sp_stack *to;

	if (sp_index_reserve(&map->stacks) ||
	    sp_array_reserve((void **)&p->stacks, &map->stacks_room,
			     p->n_stacks, sizeof(*p->stacks)))
		return -ENOMEM;
	while (sp_index_next(&map->stacks, &probe)) {
		*ret_position = probe.position;
		if (sp_stack_is_same(&p->stacks[probe.position], s))
			return 0;
	}
	*ret_position = (uint32_t)p->n_stacks;
	to = &p->stacks[p->n_stacks];
	*to = *s;
	to->id = *ret_position;
	to->frames = sp_blocks_copy(&p->storage, s->frames,
				    s->n_frames * sizeof(*s->frames));
	if (!to->frames)
		return -ENOMEM;
	sp_index_put(&map->stacks, &probe, p->n_stacks++);
	return 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct sp_module *x = *(const struct sp_module *const *)a;
	const struct sp_module *y = *(const struct sp_module *const *)b;

	if (x->start_pc != y->start_pc)
		return x->start_pc < y->start_pc ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int sp_codemap_spread(const struct sp_codemap *map)
{
	struct sp_profile *p = map->profile;
	struct sp_module **order = malloc((p->n_modules + 1) * sizeof(*order));
	uint64_t end = 0, free_pc = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_modules; i++) {
		order[i] = &p->modules[i];
		sp_raise(&free_pc, p->modules[i].end_pc);
	}
	qsort(order, p->n_modules, sizeof(struct sp_module *), compare_starts);
	for (size_t i = 0; i < p->n_modules; i++) {
		struct sp_module *m = order[i];
		const uint64_t by = (free_pc | 0xfff) + 1 - m->start_pc +
				    (m->start_pc & 0xfff);
		uint64_t new_end;

		if (m->start_pc >= end) {
			end = m->end_pc;
			continue;
		}
		if (free_pc > UINT64_MAX - 0x2000 ||
		    __builtin_add_overflow(m->end_pc, by, &new_end))
			continue;
		m->start_pc += by;
		m->end_pc = free_pc = new_end;
		m->bias += by;
	}
	free(order);
	return 0;
}
