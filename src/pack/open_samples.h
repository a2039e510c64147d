/* SPDX-License-Identifier: MIT */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"

/* Samples that are alive, by ids, which are untrusted.  All but the id is the
 * owner's. */
struct sp_open_sample {
	uint64_t id;
	uint32_t group; /* 1 + what the owner knows it by; 0: none is here */
	uint32_t object;
	/* A table that is brief has cells without these. */
	union {
		struct { /* stream.c */
			uint64_t born_ns;
			uint64_t offset_bytes;
		};
		struct { /* unpack.c, pack.c */
			/* Its id; in pack.c the position of its thread. */
			uint64_t sample;
			uint64_t allocated_bytes; /* by its thread, then */
		};
	};
};

/* Bytes of a brief cell. */
#define SP_OPEN_SAMPLE_BRIEF offsetof(struct sp_open_sample, born_ns)

/* Open addressing of its own: samples in the cells take fewer instructions than
 * positions (base/index.h), since each one is put in and taken out. */
struct sp_open_samples {
	uint64_t key;
	bool is_brief; /* set it before the first is added */
	char *cells;
	size_t n_cells; /* a power of two, at most half full */
	size_t n;
};

/* Cell i < n_cells; with group 0 it is free. */
static inline struct sp_open_sample *sp_open_samples_cell(
	const struct sp_open_samples *l, size_t i)
{
	return (void *)(l->cells + (i << (l->is_brief ? 4 : 5)));
}

/* Empty, with a random key: no file can choose ids that collide. */
void sp_open_samples_init(struct sp_open_samples *open);

int sp_open_samples_grow(struct sp_open_samples *open);

/* Neighbours in id, which live at the same time, are neighbours here. */
static inline size_t sp_open_samples_home(const struct sp_open_samples *l,
					  uint64_t id)
{
	const uint64_t h = sp_hash_word(l->key, id >> 3) >> 16;

	return (h << 3 | (id & 7)) & (l->n_cells - 1);
}

/* The cell of an id, or the free one where it belongs. */
static inline struct sp_open_sample *sp_open_samples_place(
	const struct sp_open_samples *l, uint64_t id)
{
	size_t i = sp_open_samples_home(l, id);
	struct sp_open_sample *cell = sp_open_samples_cell(l, i);

	while (cell->group && cell->id != id) {
		i = (i + 1) & (l->n_cells - 1);
		cell = sp_open_samples_cell(l, i);
	}
	return cell;
}

/* What its owner never looks at is not there in a brief table. */
static inline void sp_open_samples_copy(const struct sp_open_samples *l,
					struct sp_open_sample *to,
					const struct sp_open_sample *from)
{
	if (l->is_brief)
		memcpy(to, from, SP_OPEN_SAMPLE_BRIEF);
	else
		*to = *from;
}

/* NULL if there is none of that id. */
static inline struct sp_open_sample *sp_open_samples_find(
	const struct sp_open_samples *l, uint64_t id)
{
	struct sp_open_sample *cell =
		l->n ? sp_open_samples_place(l, id) : NULL;

	return cell && cell->group ? cell : NULL;
}

/* It will be asked for soon: its cell is far away. */
static inline void sp_open_samples_prefetch(const struct sp_open_samples *l,
					    uint64_t id)
{
	if (l->n_cells)
		__builtin_prefetch(
			sp_open_samples_cell(l, sp_open_samples_home(l, id)),
			1);
}

/* Add one with group > 0.  0; -EEXIST if the id is there, or -ENOMEM. */
static inline int sp_open_samples_add(struct sp_open_samples *l,
				      const struct sp_open_sample *sample)
{
	struct sp_open_sample *cell;

	if (2 * (l->n + 1) > l->n_cells && sp_open_samples_grow(l) < 0)
		return -ENOMEM;
	cell = sp_open_samples_place(l, sample->id);
	if (cell->group)
		return -EEXIST;
	sp_open_samples_copy(l, cell, sample);
	l->n++;
	return 0;
}

/* Take out what sp_open_samples_find() gave. */
void sp_open_samples_drop(struct sp_open_samples *open,
			  struct sp_open_sample *sample);

void sp_open_samples_done(struct sp_open_samples *open);
