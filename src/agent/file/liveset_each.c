/* SPDX-License-Identifier: MIT */
#include "agent/file/liveset_each.h"

#include <stdatomic.h>

#include "agent/file/livetable.h"

#include "agent/sys/poison.h"

static void each_of_bucket(struct sp_livetable_bucket *b, sp_liveset_fn *fn,
			   void *arg)
{
	for (unsigned int i = 0; i < SP_LIVETABLE_SLOTS; i++) {
		const uint64_t w = atomic_load(&b->words[i]);
		const uint64_t address = w & SP_LIVEWORD_ADDRESS;

		if (sp_liveword_is_address(address) &&
		    (w & SP_LIVEWORD_STATES) != SP_LIVEWORD_COPY)
			fn(arg, address);
	}
}

/* From the smallest table on: what is moved is in a newer one before it has
 * left the other (liveset.c, I5 and I6).  Older ones are empty, and stay. */
void sp_liveset_each(sp_liveset_fn *fn, void *arg)
{
	for (unsigned int t = 0; t < SP_LIVETABLE_COUNT; t++) {
		struct sp_livetable_bucket *first = sp_livetable_first(t);

		for (size_t i = 0; first && i < sp_livetable_buckets(t); i++)
			each_of_bucket(first + i, fn, arg);
	}
}
