/* SPDX-License-Identifier: MIT */
#include "read/codemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/saturate.h"

void sp_codemap_init(struct sp_codemap *map, struct sp_profile *profile)
{
	*map = (struct sp_codemap){.profile = profile};
	/* Without random numbers the address will do. */
	if (getrandom(&map->key, sizeof(map->key), GRND_NONBLOCK) !=
	    sizeof(map->key))
		map->key = (uintptr_t)map;
}

void sp_codemap_done(struct sp_codemap *map)
{
	free(map->module_hashes);
	free(map->stack_hashes);
	free(map->modules.slots);
	free(map->stacks.slots);
}

static int index_reserve(struct sp_codemap_index *index, const uint64_t *hashes)
{
	size_t n_slots = index->n_slots ? 2 * index->n_slots : 256;
	uint32_t *slots;

	if (2 * (index->n_used + 1) <= index->n_slots)
		return 0;
	if (index->n_used >= UINT32_MAX / 2)
		return -ENOMEM;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->n_used; i++) {
		size_t at = hashes[i] & (n_slots - 1);

		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(index->slots);
	index->slots = slots;
	index->n_slots = n_slots;
	return 0;
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
	const uint64_t hash = hash_module(map->key, m);
	struct sp_module *to;
	size_t at;

	if (index_reserve(&map->modules, map->module_hashes) ||
	    sp_array_reserve((void **)&p->modules, &map->modules_room,
			     p->n_modules, sizeof(*p->modules)) ||
	    sp_array_reserve((void **)&map->module_hashes,
			     &map->module_hashes_room, p->n_modules,
			     sizeof(*map->module_hashes)))
		return -ENOMEM;
	for (at = hash & (map->modules.n_slots - 1); map->modules.slots[at];
	     at = (at + 1) & (map->modules.n_slots - 1)) {
		const uint32_t i = map->modules.slots[at] - 1;

		*ret_id = i + 1;
		if (map->module_hashes[i] != hash ||
		    !same_module(&p->modules[i], m))
			continue;
		p->modules[i].is_main |= m->is_main;
		return 0;
	}
	to = &p->modules[p->n_modules];
	*to = *m;
	to->id = *ret_id = (uint32_t)p->n_modules + 1;
	to->path = sp_blocks_text(&p->storage, m->path, strlen(m->path));
	if (!to->path)
		return -ENOMEM;
	map->module_hashes[p->n_modules++] = hash;
	map->modules.slots[at] = (uint32_t)++map->modules.n_used;
	return 0;
}

static bool same_frames(const struct sp_stack *a, const struct sp_stack *b)
{
	if (a->flags != b->flags || a->n_frames != b->n_frames)
		return false;
	for (uint32_t i = 0; i < a->n_frames; i++)
		if (a->frames[i].module != b->frames[i].module ||
		    a->frames[i].offset != b->frames[i].offset)
			return false;
	return true;
}

static uint64_t hash_stack(uint64_t key, const struct sp_stack *s)
{
	uint64_t h = sp_hash_word(key, s->flags);

	for (uint32_t i = 0; i < s->n_frames; i++) {
		h = sp_hash_word(h, s->frames[i].module);
		h = sp_hash_word(h, s->frames[i].offset);
	}
	return h;
}

int sp_codemap_add_stack(struct sp_codemap *map, const struct sp_stack *s,
			 uint32_t *ret_position)
{
	struct sp_profile *p = map->profile;
	const uint64_t hash = hash_stack(map->key, s);
	struct sp_stack *to;
	size_t at;

	if (index_reserve(&map->stacks, map->stack_hashes) ||
	    sp_array_reserve((void **)&p->stacks, &map->stacks_room,
			     p->n_stacks, sizeof(*p->stacks)) ||
	    sp_array_reserve((void **)&map->stack_hashes,
			     &map->stack_hashes_room, p->n_stacks,
			     sizeof(*map->stack_hashes)))
		return -ENOMEM;
	for (at = hash & (map->stacks.n_slots - 1); map->stacks.slots[at];
	     at = (at + 1) & (map->stacks.n_slots - 1)) {
		*ret_position = map->stacks.slots[at] - 1;
		if (map->stack_hashes[*ret_position] == hash &&
		    same_frames(&p->stacks[*ret_position], s))
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
	map->stack_hashes[p->n_stacks++] = hash;
	map->stacks.slots[at] = (uint32_t)++map->stacks.n_used;
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
