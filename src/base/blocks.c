/* SPDX-License-Identifier: MIT */
#include "base/blocks.h"

#include <stdlib.h>
#include <string.h>

struct sp_block {
	struct sp_block *next;
	max_align_t data[];
};

void *sp_blocks_get(struct sp_blocks *blocks, size_t bytes)
{
	struct sp_block *b = malloc(sizeof(*b) + bytes);

	if (!b)
		return NULL;
	b->next = blocks->first;
	blocks->first = b;
	return b->data;
}

void *sp_blocks_copy(struct sp_blocks *blocks, const void *data, size_t n)
{
	void *copy = sp_blocks_get(blocks, n);

	if (copy && n)
		memcpy(copy, data, n);
	return copy;
}

char *sp_blocks_text(struct sp_blocks *blocks, const char *text, size_t n)
{
	char *copy = sp_blocks_get(blocks, n + 1);

	if (!copy)
		return NULL;
	if (n)
		memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

void sp_blocks_free(struct sp_blocks *blocks)
{
	while (blocks->first) {
		struct sp_block *next = blocks->first->next;

		free(blocks->first);
		blocks->first = next;
	}
}
