/* SPDX-License-Identifier: MIT */
#include "agent/arena.h"

#include <stdatomic.h>
#include <stdint.h>

#include "agent/sys.h"

#include "agent/poison.h"

#define BLOCK_BYTES  (256u * 1024)
#define OBJECT_MAX   (128u * 1024)
#define BLOCKS_LIMIT 256u

struct block {
	_Atomic size_t used; /* may run past BLOCK_BYTES: then it is full */
	char pad[64 - sizeof(_Atomic size_t)];
};

/* Published with release after `used` is set; pairs with sp_arena_get. */
static _Atomic(struct block *) current;
static _Atomic unsigned int blocks;

/* Replace `full` by a fresh block, unless somebody else just did. */
static struct block *next_block(struct block *full)
{
	struct block *fresh;

	if (atomic_load_explicit(&blocks, memory_order_relaxed) >= BLOCKS_LIMIT)
		return NULL;
	fresh = sp_sys_map(BLOCK_BYTES);
	if (!fresh)
		return NULL;
	atomic_store_explicit(&fresh->used, sizeof(*fresh),
			      memory_order_relaxed);
	if (!atomic_compare_exchange_strong_explicit(&current, &full, fresh,
						     memory_order_acq_rel,
						     memory_order_acquire)) {
		SP_SYS2(munmap, fresh, BLOCK_BYTES);
		return full;
	}
	atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
	return fresh;
}

void *sp_arena_get(size_t bytes)
{
	struct block *block =
		atomic_load_explicit(&current, memory_order_acquire);
	size_t at;

	if (bytes > OBJECT_MAX)
		return NULL;
	bytes = (bytes + 15) & ~(size_t)15;
	for (;;) {
		if (block) {
			at = atomic_fetch_add_explicit(&block->used, bytes,
						       memory_order_relaxed);
			if (at + bytes <= BLOCK_BYTES)
				return (char *)block + at;
		}
		block = next_block(block);
		if (!block)
			return NULL;
	}
}
