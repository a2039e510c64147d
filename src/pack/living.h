/* SPDX-License-Identifier: MIT */
#ifndef SP_PACK_LIVING_H
#define SP_PACK_LIVING_H

#include <stddef.h>
#include <stdint.h>

/* Samples that are alive, by ids, which are untrusted.  All but the id is the
 * owner's. */
struct sp_living_sample {
	uint64_t id;
	union {
		struct { /* fold.c */
			uint64_t born_ns;
			uint64_t offset_bytes;
		};
		struct { /* unpack.c, pack.c */
			/* Its id; in pack.c the position of its thread. */
			uint64_t sample;
			uint64_t allocated_bytes; /* by its thread, then */
		};
	};
	uint32_t group; /* 1 + what the owner knows it by; 0: none is here */
	uint32_t object;
};

/* Open addressing of its own: samples in the cells take fewer instructions than
 * positions (base/index.h), since each one is put in and taken out. */
struct sp_living {
	uint64_t key;
	struct sp_living_sample *cells;
	size_t n_cells; /* a power of two, at most half full */
	size_t n;
};

/* Empty, with a random key: no file can choose ids that collide. */
void sp_living_init(struct sp_living *living);

/* NULL if there is none of that id. */
struct sp_living_sample *sp_living_find(const struct sp_living *living,
					uint64_t id);

/* Add one with group > 0.  0; -EEXIST if the id is there, or -ENOMEM. */
int sp_living_add(struct sp_living *living,
		  const struct sp_living_sample *sample);

/* Take out what sp_living_find() gave. */
void sp_living_drop(struct sp_living *living, struct sp_living_sample *sample);

void sp_living_done(struct sp_living *living);

#endif
