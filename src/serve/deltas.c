/* SPDX-License-Identifier: MIT */
#include "serve/deltas.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"

struct amount {
	uint64_t bytes;
	uint64_t objects;
};

/* A stack, of which two that hash alike are one. */
struct cell {
	uint64_t key;
	struct amount sent;
	struct amount taken; /* not committed yet */
};

struct sp_deltas {
	uint64_t hash_key;
	struct sp_index index; /* of cells */
	struct cell *cells;
	size_t n_cells, cells_room;
	struct amount sent, taken; /* sums of the cells */
};

struct sp_deltas *sp_deltas_new(void)
{
	struct sp_deltas *d = calloc(1, sizeof(*d));

	if (d)
		d->hash_key = sp_index_key(d);
	return d;
}

void sp_deltas_free(struct sp_deltas *d)
{
	if (!d)
		return;
	sp_index_done(&d->index);
	free(d->cells);
	free(d);
}

/* Modules have the same numbers whenever a file is read, stacks have not. */
static uint64_t key_of(const struct sp_deltas *d, const struct sp_stack *stack)
{
	uint64_t key = sp_hash_word(d->hash_key, stack->n_frames);

	for (size_t i = 0; i < stack->n_frames; i++)
		key = sp_hash_word(sp_hash_word(key, stack->frames[i].module),
				   stack->frames[i].offset);
	return key;
}

/* Its position; SIZE_MAX without memory. */
static size_t find_cell(struct sp_deltas *d, uint64_t key)
{
	struct sp_index_probe probe = sp_index_begin(key);

	if (sp_index_reserve(&d->index) < 0 ||
	    sp_array_reserve((void **)&d->cells, &d->cells_room, d->n_cells,
			     sizeof(*d->cells)))
		return SIZE_MAX;
	while (sp_index_next(&d->index, &probe))
		if (d->cells[probe.position].key == key)
			return probe.position;
	sp_index_put(&d->index, &probe, d->n_cells);
	d->cells[d->n_cells] = (struct cell){.key = key};
	return d->n_cells++;
}

/* What each estimate has more than was sent of it; if none has more, what each
 * has. */
static void find_wants(const struct sp_deltas *d, const struct sp_row *rows,
		       size_t n, const size_t *cells, bool of_objects,
		       double *want)
{
	bool is_any = false;

	for (int round = 0; round < 2 && !is_any; round++)
		for (size_t i = 0; i < n; i++) {
			const struct amount *sent = &d->cells[cells[i]].sent;
			const double before =
				(double)(of_objects ? sent->objects
						    : sent->bytes);

			want[i] = of_objects ? rows[i].alloc.est_count
					     : rows[i].alloc.est_bytes;
			if (!round)
				want[i] = fmax(want[i] - before, 0);
			is_any |= want[i] > 0;
		}
}

/* The part of `total` up to `sum` of `all`: what lies between two of these is
 * whole, and adds up to the total. */
static uint64_t part_of(uint64_t total, double sum, double all)
{
	const double part = (double)total * (sum / all);

	return sum >= all || part >= (double)total ? total : (uint64_t)part;
}

/* What one of the two amounts grows by: rows[i] has `want` more. */
static uint64_t spread_growth(struct sp_deltas *d, const size_t *cells,
			      const double *want, size_t n, uint64_t total,
			      bool of_objects)
{
	uint64_t before = 0;
	double all = 0, sum = 0;

	for (size_t i = 0; i < n; i++)
		all += want[i];
	for (size_t i = 0; i < n && all > 0; i++) {
		struct amount *taken = &d->cells[cells[i]].taken;
		uint64_t until;

		sum += want[i];
		until = part_of(total, sum, all);
		*(of_objects ? &taken->objects : &taken->bytes) +=
			until - before;
		before = until;
	}
	return before;
}

static uint64_t grown_by(uint64_t now, uint64_t sent)
{
	return now > sent ? now - sent : 0;
}

static void take_amounts(struct sp_deltas *d, const struct sp_profile *p,
			 const struct sp_row *rows, size_t n,
			 const size_t *cells, double *want)
{
	find_wants(d, rows, n, cells, false, want);
	d->taken.bytes = spread_growth(
		d, cells, want, n,
		grown_by(p->exact_alloc_bytes, d->sent.bytes), false);
	find_wants(d, rows, n, cells, true, want);
	d->taken.objects = spread_growth(
		d, cells, want, n,
		grown_by(p->exact_alloc_objects, d->sent.objects), true);
}

/* Two rows of one cell: the first has all of it. */
static size_t set_rows(struct sp_deltas *d, struct sp_row *rows, size_t n,
		       const size_t *cells, bool *is_used)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct cell *cell = &d->cells[cells[i]];
		const bool is_first = !is_used[cells[i]];
		struct sp_row row = rows[i];

		is_used[cells[i]] = true;
		row.size_bytes = 0;
		row.alloc.est_bytes = is_first ? (double)cell->taken.bytes : 0;
		row.alloc.est_count =
			is_first ? (double)cell->taken.objects : 0;
		if (row.alloc.est_bytes > 0 || row.alloc.est_count > 0 ||
		    row.inuse.est_bytes > 0)
			rows[left++] = row;
	}
	return left;
}

size_t sp_deltas_take(struct sp_deltas *d, const struct sp_profile *profile,
		      struct sp_row *rows, size_t n)
{
	size_t *cells = calloc(n + 1, sizeof(*cells));
	double *want = calloc(n + 1, sizeof(*want));
	bool *is_used = NULL, failed = !cells || !want;

	for (size_t i = 0; i < d->n_cells; i++)
		d->cells[i].taken = (struct amount){0};
	for (size_t i = 0; i < n && !failed; i++) {
		cells[i] = find_cell(
			d, key_of(d, &profile->stacks[rows[i].stack]));
		failed = cells[i] == SIZE_MAX;
	}
	if (!failed)
		is_used = calloc(d->n_cells + 1, sizeof(*is_used));
	if (is_used) {
		take_amounts(d, profile, rows, n, cells, want);
		n = set_rows(d, rows, n, cells, is_used);
	} else {
		n = SIZE_MAX;
	}
	free(is_used);
	free(cells);
	free(want);
	return n;
}

void sp_deltas_commit(struct sp_deltas *d)
{
	for (size_t i = 0; i < d->n_cells; i++) {
		struct cell *cell = &d->cells[i];

		cell->sent.bytes += cell->taken.bytes;
		cell->sent.objects += cell->taken.objects;
		cell->taken = (struct amount){0};
	}
	d->sent.bytes += d->taken.bytes;
	d->sent.objects += d->taken.objects;
	d->taken = (struct amount){0};
}

uint64_t sp_deltas_bytes(const struct sp_deltas *d)
{
	return d->taken.bytes;
}

uint64_t sp_deltas_missing(const struct sp_deltas *d,
			   const struct sp_profile *profile)
{
	return grown_by(profile->exact_alloc_bytes, d->sent.bytes);
}
