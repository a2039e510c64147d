/* SPDX-License-Identifier: MIT */
#include "agent/sys/arena.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

#define BLOCK_BYTES (256u * 1024)
#define OBJECT_MAX  (128u * 1024)

struct block {
	_Atomic size_t used; /* may run past BLOCK_BYTES: then it is full */
	char pad[64 - sizeof(_Atomic size_t)];
};

/* Published with release after `used` is set; pairs with sp_arena_get. */
static _Atomic(struct block *) current;

static const size_t budgets[SP_ARENA_USES] = {
	[SP_ARENA_MODULES] = 16u << 20,
	[SP_ARENA_WALKS] = SP_ARENA_WALKS_BYTES,
	[SP_ARENA_CLASSES] = SP_ARENA_CLASSES_BYTES,
	[SP_ARENA_LAWS] = 1u << 20,
	[SP_ARENA_SHARERS] = 32u << 20,
	[SP_ARENA_PYTHON] = 3u << 20,
};
static _Atomic size_t taken[SP_ARENA_USES]; /* never more than the budget */

/* Replace `full` by a fresh block, unless another thread just did. */
static struct block *next_block(struct block *full)
{
	struct block *fresh = sp_sys_map(BLOCK_BYTES);

	if (!fresh)
		return NULL;
	atomic_store_explicit(&fresh->used, sizeof(*fresh),
			      memory_order_relaxed);
	if (!atomic_compare_exchange_strong_explicit(&current, &full, fresh,
						     memory_order_acq_rel,
						     memory_order_acquire)) {
		sp_sys_unmap(fresh, BLOCK_BYTES);
		return full;
	}
	return fresh;
}

static void *get_pages(size_t bytes)
{
	struct block *block =
		atomic_load_explicit(&current, memory_order_acquire);
	size_t at;

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

static bool charge_use(enum sp_arena_use use, size_t bytes)
{
	size_t now = atomic_load_explicit(&taken[use], memory_order_relaxed);

	do
		if (bytes > budgets[use] - now)
			return false;
	while (!atomic_compare_exchange_weak(&taken[use], &now, now + bytes));
	return true;
}

void *sp_arena_get(enum sp_arena_use use, size_t bytes)
{
	void *p;

	if (bytes > OBJECT_MAX)
		return NULL;
	bytes = (bytes + 15) & ~(size_t)15;
	if (!charge_use(use, bytes))
		return NULL;
	p = get_pages(bytes);
	if (!p)
		atomic_fetch_sub(&taken[use], bytes);
	return p;
}
