/* SPDX-License-Identifier: MIT */
#include "profile/totals.h"

#include <string.h>

/* Totals that only a forged file can have stop at the end. */
static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

/*
 * What a slot's owner may have allocated since it published: it does so after 4
 * KiB, then after as much as it has, at most check_in_bytes.
 */
static uint64_t unpublished(const struct sp_profile *p,
			    const struct sp_reader_slot *slot)
{
	uint64_t step = slot->owner_bytes < 4096 ? 4096 : slot->owner_bytes;

	if (!slot->thread)
		return 0;
	return step < p->check_in_bytes ? step : p->check_in_bytes;
}

void sp_totals_take_classes(struct sp_profile *p, const struct sp_reader *r)
{
	p->has_classes = r->has_classes;
	memcpy(p->classes, r->classes, sizeof(p->classes));
	/* By slot: the classes of one may be ahead of its totals. */
	for (unsigned int i = 0; i < SP_FORMAT_SLOTS; i++) {
		const uint64_t known = r->class_slot_bytes[i];

		if (r->slots[i].alloc_bytes > known)
			add(&p->class_slack_bytes,
			    r->slots[i].alloc_bytes - known);
		if (r->status.end_kind != SP_END_CLEAN)
			add(&p->class_slack_bytes,
			    unpublished(p, &r->slots[i]));
	}
}
