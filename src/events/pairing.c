/* SPDX-License-Identifier: MIT */
#include "events/pairing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"

#define OBJECTS_MAX (1u << 30)
/* So many pages that are neighbours in memory are neighbours in the table, as
 * a power of two: more would make long rows of cells that are taken. */
#define NEAR_BITS 2u

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
	const uint64_t h = sp_hash_word(p->key, number >> NEAR_BITS) >> 16;

	return (size_t)(h << NEAR_BITS | (number & ((1u << NEAR_BITS) - 1))) &
	       (p->pages_room - 1);
}

/* The page of that number, or the free one where it belongs. */
static struct sp_pairing_page *find_page(const struct sp_pairing *p,
					 uint64_t number)
{
	size_t i = home_of(p, number);

	while (p->pages[i].n && p->pages[i].number != number)
		i = (i + 1) & (p->pages_room - 1);
	return &p->pages[i];
}

static int grow_pages(struct sp_pairing *p)
{
	struct sp_pairing_page *old = p->pages;
	const size_t room = p->pages_room;
	const size_t bigger = room ? 2 * room : 256;

	p->pages = calloc(bigger, sizeof(*p->pages));
	if (!p->pages) {
		p->pages = old;
		return -ENOMEM;
	}
	p->pages_room = bigger;
	for (size_t i = 0; i < room; i++)
		if (old[i].n)
			*find_page(p, old[i].number) = old[i];
	free(old);
	return 0;
}

/* Those behind it move up, so that every one is still found from its home. */
static void drop_page(struct sp_pairing *p, struct sp_pairing_page *page)
{
	const size_t mask = p->pages_room - 1;
	size_t hole = (size_t)(page - p->pages);

	p->blocks[page->block].at[0] = p->free_block;
	p->free_block = page->block + 1;
	for (size_t i = (hole + 1) & mask; p->pages[i].n; i = (i + 1) & mask) {
		const size_t home = home_of(p, p->pages[i].number);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		p->pages[hole] = p->pages[i];
		hole = i;
	}
	p->pages[hole].n = 0;
	p->n_pages--;
}

/* The free page `page` gets that number and a block without objects, of which
 * the caller adds the first.  0 or -ENOMEM. */
static int open_page(struct sp_pairing *p, struct sp_pairing_page *page,
		     uint64_t number)
{
	const uint32_t recycled = p->free_block;
	struct sp_pairing_block *block;

	if (!recycled && sp_array_reserve((void **)&p->blocks, &p->blocks_room,
					  p->n_blocks, sizeof(*p->blocks)))
		return -ENOMEM;
	page->number = number;
	page->block = recycled ? recycled - 1 : (uint32_t)p->n_blocks++;
	block = &p->blocks[page->block];
	if (recycled)
		p->free_block = block->at[0];
	else
		memset(block, 0, sizeof(*block));
	block->at[0] = 0;
	p->n_pages++;
	return 0;
}

/* 1 + the place for another object; 0 without memory. */
static uint32_t take_place(struct sp_pairing *p)
{
	const uint32_t at = p->free_at;

	if (at) {
		p->free_at = p->objects[at - 1].thread;
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

int sp_pairing_birth(struct sp_pairing *p, uint64_t address,
		     const struct sp_open_object *born, uint64_t size_bytes,
		     uint64_t period_bytes, struct sp_pairing_end *ret_missed)
{
	const uint64_t unit = unit_of(address);
	const uint64_t number = unit / SP_PAIRING_UNITS;
	struct sp_pairing_page *page;
	struct sp_open_object *object;
	uint64_t none = 0, *sum = &none;
	uint32_t *at;
	int was_open;

	p->is_sampled |= period_bytes > 1;
	if (born->thread != UINT32_MAX)
		sum = find_sum(p, born->thread);
	if (!sum || (2 * (p->n_pages + 1) > p->pages_room && grow_pages(p) < 0))
		return -ENOMEM;
	page = find_page(p, number);
	if (!page->n && open_page(p, page, number) < 0)
		return -ENOMEM;
	at = &p->blocks[page->block].at[unit % SP_PAIRING_UNITS];
	was_open = *at != 0;
	if (!was_open) {
		*at = take_place(p);
		if (!*at)
			return -ENOMEM;
		page->n++;
		p->n++;
	}
	object = &p->objects[*at - 1];
	if (was_open)
		*ret_missed =
			(struct sp_pairing_end){object->sample, SP_UNKNOWN};
	*sum += size_bytes;
	*object = *born;
	object->allocated_bytes = *sum;
	return was_open;
}

bool sp_pairing_free(struct sp_pairing *p, uint64_t address, uint32_t thread,
		     struct sp_pairing_end *ret)
{
	const uint64_t unit = unit_of(address);
	struct sp_pairing_page *page;
	struct sp_open_object *object;
	uint32_t *at;

	if (!p->n)
		return false;
	page = find_page(p, unit / SP_PAIRING_UNITS);
	if (!page->n)
		return false;
	at = &p->blocks[page->block].at[unit % SP_PAIRING_UNITS];
	if (!*at)
		return false;
	object = &p->objects[*at - 1];
	*ret = (struct sp_pairing_end){object->sample, SP_UNKNOWN};
	if (thread == object->thread && thread != UINT32_MAX && !p->is_sampled)
		ret->age_bytes = p->allocated[thread] - object->allocated_bytes;
	object->sample.group = 0;
	object->thread = p->free_at;
	p->free_at = *at;
	p->n--;
	*at = 0;
	if (!--page->n)
		drop_page(p, page);
	return true;
}

void sp_pairing_done(struct sp_pairing *p)
{
	free(p->objects);
	free(p->pages);
	free(p->blocks);
	free(p->allocated);
	*p = (struct sp_pairing){.allocated = NULL};
}

/* ---- what is open ---- */

const struct sp_open_sample *sp_pairing_next_open(
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

const struct sp_open_sample **sp_pairing_list_open(
	const struct sp_open_samples *open, const struct sp_pairing *paired,
	size_t *ret_n)
{
	const size_t room = (paired ? paired->n : open->n) + 1;
	const struct sp_open_sample *l, **list = malloc(room * sizeof(*list));

	*ret_n = 0;
	for (size_t i = 0;
	     list && (l = sp_pairing_next_open(open, paired, &i));)
		list[(*ret_n)++] = l;
	if (list)
		qsort(list, *ret_n, sizeof(*list), compare_births);
	return list;
}
