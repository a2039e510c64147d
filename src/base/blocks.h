/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * Memory that is freed in one go.  Each piece is an allocation of its own, so
 * that tools which watch the heap see a write beyond its end.  Zero-initialise.
 */
struct sp_blocks {
	struct sp_block *first;
};

/* `bytes` bytes, aligned for anything; NULL if memory is short. */
void *sp_blocks_get(struct sp_blocks *blocks, size_t bytes);

/* A copy of n bytes at `data`, which may be NULL if n is 0; NULL if memory is
 * short. */
void *sp_blocks_copy(struct sp_blocks *blocks, const void *data, size_t n);

/* The same of a text, terminated. */
char *sp_blocks_text(struct sp_blocks *blocks, const char *text, size_t n);

/* All of it; `blocks` is empty then. */
void sp_blocks_free(struct sp_blocks *blocks);
