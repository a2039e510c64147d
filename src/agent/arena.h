/* SPDX-License-Identifier: MIT */
#ifndef SP_AGENT_ARENA_H
#define SP_AGENT_ARENA_H

#include <stddef.h>

/*
 * Memory of the agent: a lock-free bump allocator over anonymous mappings.
 * Nothing is ever given back; everything in it lives as long as the process.
 *
 * sp_arena_get: `bytes` zeroed bytes aligned to 16, or NULL if the kernel has
 * no memory or the arena has reached its limit (64 MiB).  Any size up to 128
 * KiB.  Context: sampled (at most one mmap).
 */
void *sp_arena_get(size_t bytes);

#endif
