/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

/*
 * What the allocator below counts of itself, in bytes; the library's own memory
 * is zero.  False, and *ret untouched: it has no such counts.  *ret_glibc is
 * all zero unless it is glibc.  Takes its locks, all of them in turn, as the
 * program's own question would.  Context: sampled, in a thread that is in no
 * allocator.
 */
bool sp_allocator_ask(struct sp_control_memory *ret,
		      struct sp_control_glibc *ret_glibc);

/*
 * The sizes that the allocator below rounds to, ascending, up to
 * SP_ALLOCATOR_CLASSES_TOP or the room for them: ret[0] of them from ret[1] on.
 * None if it does not say: glibc has a rule instead.  Takes no lock.
 */
#define SP_ALLOCATOR_CLASSES     256u
#define SP_ALLOCATOR_CLASSES_TOP (512u << 10)
void sp_allocator_classes(uint32_t ret[SP_ALLOCATOR_CLASSES]);

/*
 * What jemalloc says of one of its objects: how much of the slab is free that
 * it is in.  Of 5.3 and later, and of no object that another library has made:
 * it follows pointers that only its own objects have.  One that was freed
 * meanwhile gives any answer.
 *
 * sp_allocator_slabs() says whether it can be asked, and fills the sums of
 * *ret; it takes jemalloc's locks as sp_allocator_ask() does, the other none.
 * Context: sampled, in a thread that is in no allocator.
 */
struct sp_allocator_slabs {
	int (*ask)(const size_t *, size_t, void *, size_t *, void *, size_t);
	size_t name[4];
	size_t parts;
};

bool sp_allocator_slabs(struct sp_allocator_slabs *slabs,
			struct sp_control_slabs *ret);
struct sp_control_object sp_allocator_slab_of(
	const struct sp_allocator_slabs *slabs, uint64_t address);

/* An object of another library than the one that has malloc is counted.
 * Context: any. */
void sp_allocator_note_other(void);

/* The same as sp_allocator_ask(), but glibc is not asked. */
bool sp_allocator_ask_other(struct sp_control_memory *ret);
