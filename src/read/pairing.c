/* SPDX-License-Identifier: MIT */
#include "read/pairing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/order.h"

#define OBJECTS_MAX (1u << 30)
#define AREA_UNITS  (SP_PAIRING_PAGES * SP_PAIRING_UNITS)
void sp_pairing_init(struct sp_pairing *p)
{
	*p = (struct sp_pairing){.key = sp_index_key(p)};
}

/* Addresses in units of 16 bytes; the few that lie between are far away. */
static uint64_t unit_of(uint64_t address)
{
	return address >> 4 | address << 60;
}

static size_t home_of(const struct sp_pairing *p, uint64_t number)
{
	return (size_t)(sp_hash_word(p->key, number) >> 16) &
	       (p->areas_room - 1);
}

/* The area of that number, or the free one where it belongs. */
static inline struct sp_pairing_area *find_area(const struct sp_pairing *p,
						uint64_t number)
{
	size_t i = home_of(p, number);

	while (p->areas[i].n && p->areas[i].number != number)
		i = (i + 1) & (p->areas_room - 1);
	return &p->areas[i];
}

static int grow_areas(struct sp_pairing *p)
{
	struct sp_pairing_area *old = p->areas;
	const size_t room = p->areas_room;
	const size_t bigger = room ? 2 * room : 64;

	p->areas = calloc(bigger, sizeof(*p->areas));
	if (!p->areas) {
		p->areas = old;
		return -ENOMEM;
	}
	p->areas_room = bigger;
	for (size_t i = 0; i < room; i++)
		if (old[i].n)
			*find_area(p, old[i].number) = old[i];
	free(old);
	return 0;
}

/* Those behind it move up, so that every one is still found from its home. */
static void drop_area(struct sp_pairing *p, struct sp_pairing_area *area)
{
	const size_t mask = p->areas_room - 1;
	size_t hole = (size_t)(area - p->areas);

	for (size_t i = (hole + 1) & mask; p->areas[i].n; i = (i + 1) & mask) {
		const size_t home = home_of(p, p->areas[i].number);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		p->areas[hole] = p->areas[i];
		hole = i;
	}
	p->areas[hole] = (struct sp_pairing_area){.n = 0};
	p->n_areas--;
}

/* 1 + a block without objects; 0 without memory. */
static uint32_t take_block(struct sp_pairing *p)
{
	const uint32_t recycled = p->free_block;

	if (recycled) {
		p->free_block = p->blocks[recycled - 1].at[0];
		p->blocks[recycled - 1].at[0] = 0;
		return recycled;
	}
	if (sp_array_reserve((void **)&p->blocks, &p->blocks_room, p->n_blocks,
			     sizeof(*p->blocks)))
		return 0;
	memset(&p->blocks[p->n_blocks], 0, sizeof(*p->blocks));
	return (uint32_t)++p->n_blocks;
}

static void give_block(struct sp_pairing *p, uint32_t block)
{
	p->blocks[block - 1].at[0] = p->free_block;
	p->free_block = block;
}

/* 1 + the place for another object; 0 without memory. */
static uint32_t take_place(struct sp_pairing *p)
{
	const uint32_t at = p->free_at;

	if (at) {
		p->free_at = p->objects[at - 1].next;
		return at;
	}
	if (p->n_objects == OBJECTS_MAX ||
	    sp_array_reserve((void **)&p->objects, &p->objects_room,
			     p->n_objects, sizeof(*p->objects)))
		return 0;
	return (uint32_t)++p->n_objects;
}

/* The sum of a thread; NULL without memory. */
static uint64_t *find_sum(struct sp_pairing *p, uint32_t thread)
{
	for (; p->n_threads <= thread; p->n_threads++) {
		if (sp_array_reserve((void **)&p->allocated, &p->threads_room,
				     p->n_threads, sizeof(*p->allocated)))
			return NULL;
		p->allocated[p->n_threads] = 0;
	}
	return &p->allocated[thread];
}

/* The first object of a page, or of an area.  0 or -ENOMEM. */
static int open_page(struct sp_pairing *p, struct sp_pairing_area *area,
		     uint64_t number, unsigned int page)
{
	const uint32_t block = take_block(p);

	if (!block)
		return -ENOMEM;
	if (!area->n) {
		area->number = number;
		p->n_areas++;
	}
	area->block[page] = block;
	return 0;
}

int sp_pairing_birth(struct sp_pairing *p, uint64_t address, uint32_t thread,
		     uint64_t size_bytes, uint64_t period_bytes,
		     struct sp_open_object **ret,
		     struct sp_open_object *ret_missed)
{
	const uint64_t unit = unit_of(address);
	const uint64_t number = unit / AREA_UNITS;
	const unsigned int page = unit / SP_PAIRING_UNITS % SP_PAIRING_PAGES;
	struct sp_pairing_area *area;
	uint64_t none = 0, *sum = &none;
	uint32_t *at;
	int was_open;

	p->is_sampled |= period_bytes > 1;
	if (thread != UINT32_MAX)
		sum = find_sum(p, thread);
	if (!sum || (2 * (p->n_areas + 1) > p->areas_room && grow_areas(p) < 0))
		return -ENOMEM;
	area = find_area(p, number);
	if (!area->block[page] && open_page(p, area, number, page) < 0)
		return -ENOMEM;
	at = &p->blocks[area->block[page] - 1].at[unit % SP_PAIRING_UNITS];
	was_open = *at != 0;
	if (was_open) {
		*ret_missed = p->objects[*at - 1];
	} else {
		*at = take_place(p);
		if (!*at)
			return -ENOMEM;
		area->objects[page]++;
		area->n++;
		p->n++;
	}
	*sum += size_bytes;
	*ret = &p->objects[*at - 1];
	(*ret)->allocated_bytes = *sum;
	return was_open;
}

struct sp_pairing_place sp_pairing_find(const struct sp_pairing *p,
					uint64_t address)
{
	const uint64_t unit = unit_of(address);
	struct sp_pairing_place place = {.page = unit / SP_PAIRING_UNITS %
						 SP_PAIRING_PAGES};
	uint32_t block;

	if (!p->n)
		return place;
	place.area = find_area(p, unit / AREA_UNITS);
	block = place.area->block[place.page];
	if (!block)
		return place;
	place.at = &p->blocks[block - 1].at[unit % SP_PAIRING_UNITS];
	if (*place.at)
		place.object = &p->objects[*place.at - 1];
	return place;
}

void sp_pairing_drop(struct sp_pairing *p, const struct sp_pairing_place *place)
{
	struct sp_pairing_area *area = place->area;

	place->object->group = 0;
	place->object->next = p->free_at;
	p->free_at = *place->at;
	p->n--;
	*place->at = 0;
	area->n--;
	if (--area->objects[place->page])
		return;
	give_block(p, area->block[place->page]);
	area->block[place->page] = 0;
	if (!area->n)
		drop_area(p, area);
}

void sp_pairing_done(struct sp_pairing *p)
{
	free(p->objects);
	free(p->areas);
	free(p->blocks);
	free(p->allocated);
	*p = (struct sp_pairing){.allocated = NULL};
}

/* ---- what is open ---- */

static struct sp_open_sample sample_of(const struct sp_open_object *object)
{
	return (struct sp_open_sample){.id = object->id,
				       .group = object->group,
				       .born_ns = object->born_ns,
				       .offset_bytes = object->offset_bytes};
}

bool sp_pairing_next_open(const struct sp_open_samples *open,
			  const struct sp_pairing *paired, size_t *i,
			  struct sp_open_sample *ret)
{
	const size_t n = paired ? paired->n_objects : open->n_cells;

	while (*i < n) {
		const size_t at = (*i)++;

		if (paired)
			*ret = sample_of(&paired->objects[at]);
		else
			sp_open_samples_copy(open, ret,
					     sp_open_samples_cell(open, at));
		if (ret->group)
			return true;
	}
	return false;
}

SP_ORDER(compare_births, struct sp_open_sample, SP_UP(born_ns) || SP_UP(id));

struct sp_open_sample *sp_pairing_list_open(const struct sp_open_samples *open,
					    const struct sp_pairing *paired,
					    size_t *ret_n)
{
	const size_t room = (paired ? paired->n : open->n) + 1;
	struct sp_open_sample *list = malloc(room * sizeof(*list));
	struct sp_open_sample one;

	*ret_n = 0;
	for (size_t i = 0;
	     list && sp_pairing_next_open(open, paired, &i, &one);)
		list[(*ret_n)++] = one;
	if (list)
		qsort(list, *ret_n, sizeof(*list), compare_births);
	return list;
}
