/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* NULL if there is none of that id. */
struct sp_open_sample *sp_open_samples_find(const struct sp_open_samples *open,
					    uint64_t id);

/* It will be asked for soon: its cell is far away. */
void sp_open_samples_prefetch(const struct sp_open_samples *open, uint64_t id);

/* Add one with group > 0.  0; -EEXIST if the id is there, or -ENOMEM. */
int sp_open_samples_add(struct sp_open_samples *open,
			const struct sp_open_sample *sample);

/* Take out what sp_open_samples_find() gave. */
void sp_open_samples_drop(struct sp_open_samples *open,
			  struct sp_open_sample *sample);

void sp_open_samples_done(struct sp_open_samples *open);
