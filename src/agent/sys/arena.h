/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * Memory of the agent: a lock-free bump allocator over anonymous mappings.
 * Nothing is ever given back; everything in it lives as long as the process.
 * Each use has a budget of its own, so that none can starve another.
 */
enum sp_arena_use {
	SP_ARENA_MODULES, /* 16 MiB: names and headers of objects */
	SP_ARENA_WALKS,   /* 24 MiB: last walks, two of each lane */
	SP_ARENA_CLASSES, /* 8 MiB: size counts, by slot */
	SP_ARENA_LAWS,    /* 1 MiB: periods that were ever in force */
	SP_ARENA_SHARERS, /* 32 MiB: threads without a slot */
	SP_ARENA_PYTHON,  /* 3 MiB: Python frames of last walks, by lane */
	SP_ARENA_USES
};

/* Enough for all lanes and all slots: their users hold that. */
#define SP_ARENA_WALKS_BYTES   (24u << 20)
#define SP_ARENA_CLASSES_BYTES (8u << 20)

/*
 * `bytes` zeroed bytes aligned to 16, or NULL if the kernel has no memory or
 * the use has reached its budget.  Any size up to 128 KiB.  Context: sampled
 * (at most one mmap).
 */
void *sp_arena_get(enum sp_arena_use use, size_t bytes);
