/* SPDX-License-Identifier: MIT */
#include "rss/places.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

void sp_rss_places_free(struct sp_rss_places *places)
{
	free(places->list);
}

int sp_rss_places_add(struct sp_rss_places *p, const struct sp_rss_place *place)
{
	if (sp_array_reserve((void **)&p->list, &p->room, p->n,
			     sizeof(*p->list)) < 0)
		return -ENOMEM;
	p->list[p->n++] = *place;
	return 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

bool sp_rss_places_slab(const struct sp_rss_taken *taken, uint64_t page_bytes,
			uint64_t *ret_start, uint64_t *ret_end)
{
	const uint64_t bytes = taken->end - taken->start;
	uint64_t n;

	if (taken->end <= taken->start)
		return false;
	n = page_bytes / common_divisor(bytes, page_bytes);
	for (uint64_t k = 0; k < n && k * bytes <= taken->start; k++) {
		const uint64_t start = taken->start - k * bytes;

		if (start % page_bytes)
			continue;
		*ret_start = start;
		*ret_end = start + n * bytes;
		return true;
	}
	return false;
}
