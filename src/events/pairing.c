/* SPDX-License-Identifier: MIT */
#include "events/pairing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"

#define OBJECTS_MAX (1u << 30)
/* Of addresses in units of 16 bytes: this many, 1 KiB, have neighbouring cells;
 * a malloc has at most half as many objects there. */
#define NEAR_BITS 6u

void sp_pairing_init(struct sp_pairing *p)
{
	*p = (struct sp_pairing){.key = sp_index_key(p)};
}

/* The low bits of addresses are zero.  Neighbours in memory, which are often
 * freed together, are neighbours here. */
static uint32_t hash_of(const struct sp_pairing *p, uint64_t address)
{
	const uint64_t unit = address >> 4 | address << 60;
	const uint64_t h = sp_hash_word(p->key, unit >> NEAR_BITS) >> 16;

	return (uint32_t)(h << NEAR_BITS | (unit & ((1u << NEAR_BITS) - 1)));
}

/* The cell of an address, or the free one where it belongs. */
static struct sp_pairing_cell *find_cell(const struct sp_pairing *p,
					 uint64_t address, uint32_t hash)
{
	const size_t mask = p->n_cells - 1;
	size_t i = hash & mask;

	for (; p->cells[i].at; i = (i + 1) & mask)
		if (p->cells[i].hash == hash &&
		    p->objects[p->cells[i].at - 1].address == address)
			break;
	return &p->cells[i];
}

static int grow_cells(struct sp_pairing *p)
{
	const size_t n_cells = p->n_cells ? 2 * p->n_cells : 1024;
	struct sp_pairing_cell *cells = calloc(n_cells, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_cells; i++) {
		size_t to = p->cells[i].hash & (n_cells - 1);

		if (!p->cells[i].at)
			continue;
		while (cells[to].at)
			to = (to + 1) & (n_cells - 1);
		cells[to] = p->cells[i];
	}
	free(p->cells);
	p->cells = cells;
	p->n_cells = n_cells;
	return 0;
}

/* Those behind it move up, so that every one is still found from its home. */
static void drop_cell(struct sp_pairing *p, struct sp_pairing_cell *cell)
{
	const size_t mask = p->n_cells - 1;
	size_t hole = (size_t)(cell - p->cells);

	for (size_t i = (hole + 1) & mask; p->cells[i].at; i = (i + 1) & mask) {
		if (((i - p->cells[i].hash) & mask) < ((i - hole) & mask))
			continue;
		p->cells[hole] = p->cells[i];
		hole = i;
	}
	p->cells[hole].at = 0;
	p->n--;
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

int sp_pairing_birth(struct sp_pairing *p, const struct sp_open_object *born,
		     uint64_t size_bytes, uint64_t period_bytes,
		     struct sp_pairing_end *ret_missed)
{
	const uint32_t hash = hash_of(p, born->address);
	struct sp_pairing_cell *cell;
	struct sp_open_object *object;
	uint64_t none = 0, *sum = &none;
	int was_open;

	p->is_sampled |= period_bytes > 1;
	if (born->thread != UINT32_MAX)
		sum = find_sum(p, born->thread);
	if (!sum || (2 * (p->n + 1) > p->n_cells && grow_cells(p) < 0))
		return -ENOMEM;
	cell = find_cell(p, born->address, hash);
	was_open = cell->at != 0;
	if (!was_open) {
		const uint32_t at = take_place(p);

		if (!at)
			return -ENOMEM;
		*cell = (struct sp_pairing_cell){hash, at};
		p->n++;
	}
	object = &p->objects[cell->at - 1];
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
	struct sp_pairing_cell *cell;
	struct sp_open_object *object;

	if (!p->n)
		return false;
	cell = find_cell(p, address, hash_of(p, address));
	if (!cell->at)
		return false;
	object = &p->objects[cell->at - 1];
	*ret = (struct sp_pairing_end){object->sample, SP_UNKNOWN};
	if (thread == object->thread && thread != UINT32_MAX && !p->is_sampled)
		ret->age_bytes = p->allocated[thread] - object->allocated_bytes;
	object->sample.group = 0;
	object->thread = p->free_at;
	p->free_at = cell->at;
	drop_cell(p, cell);
	return true;
}

void sp_pairing_prefetch_cell(const struct sp_pairing *p, uint64_t address)
{
	if (p->n_cells)
		__builtin_prefetch(
			&p->cells[hash_of(p, address) & (p->n_cells - 1)]);
}

void sp_pairing_prefetch_object(const struct sp_pairing *p, uint64_t address)
{
	const struct sp_pairing_cell *cell;

	if (!p->n_cells)
		return;
	cell = &p->cells[hash_of(p, address) & (p->n_cells - 1)];
	if (cell->at)
		__builtin_prefetch(&p->objects[cell->at - 1], 1);
}

void sp_pairing_done(struct sp_pairing *p)
{
	free(p->objects);
	free(p->cells);
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
