/* SPDX-License-Identifier: MIT */
#include "read/totals.h"

#include <string.h>

/* A young thread publishes its totals after that many bytes. */
#define FIRST_CHECK_IN_BYTES 4096u

/* Totals that only a forged file can have stop at the end. */
static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static void raise(uint64_t *most, uint64_t n)
{
	if (n > *most)
		*most = n;
}

static uint64_t rest(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

void sp_totals_take_sample(struct sp_profile *p, const struct sp_sample *sample)
{
	struct sp_class_total *sum;

	if (sample->thread == UINT32_MAX)
		return;
	sum = &p->thread_infos[sample->thread].sampled;
	add(&sum->bytes, sample->size_bytes);
	add(&sum->objects, 1);
}

/*
 * What a thread has allocated at most when it has published that much: it does
 * so after 4 KiB, then at the latest after as much as it has, at most
 * check_in_bytes.
 */
static uint64_t most_of(const struct sp_profile *p, uint64_t published)
{
	uint64_t step = published, most = published;

	if (step > p->check_in_bytes)
		step = p->check_in_bytes;
	if (step < FIRST_CHECK_IN_BYTES)
		step = FIRST_CHECK_IN_BYTES;
	add(&most, step);
	return most;
}

void sp_totals_take_slot(struct sp_profile *p, const struct sp_reader *r,
			 unsigned int i, struct sp_thread_info *owner)
{
	const struct sp_reader_slot *slot = &r->slots[i];
	const struct sp_class_total classes = r->class_slots[i];
	struct sp_class_total own = {slot->owner_bytes, slot->owner_objects};
	uint64_t bytes = slot->alloc_bytes, objects = slot->alloc_objects;

	raise(&bytes, classes.bytes);
	raise(&objects, classes.objects);
	if (owner) {
		add(&own.bytes, bytes - slot->alloc_bytes);
		add(&own.objects, objects - slot->alloc_objects);
		add(&bytes, rest(owner->sampled.bytes, own.bytes));
		add(&objects, rest(owner->sampled.objects, own.objects));
		raise(&own.bytes, owner->sampled.bytes);
		raise(&own.objects, owner->sampled.objects);
		if (r->status.end_kind != SP_END_CLEAN)
			add(&p->missing_bytes_max,
			    rest(most_of(p, slot->owner_bytes), own.bytes));
		owner->tid = slot->tid;
	}
	add(&p->exact_alloc_bytes, bytes);
	add(&p->exact_alloc_objects, objects);
	/* By slot: the classes of one may be ahead of its totals. */
	add(&p->class_slack_bytes, bytes - classes.bytes);
	if (!owner || owner->has_totals)
		return;
	owner->has_totals = true;
	owner->exact_alloc_bytes = own.bytes;
	owner->exact_alloc_objects = own.objects;
}

void sp_totals_finish(struct sp_profile *p, const struct sp_reader *r)
{
	uint64_t slotless;

	p->has_classes = r->has_classes;
	memcpy(p->classes, r->classes, sizeof(p->classes));
	if (r->status.end_kind == SP_END_CLEAN) {
		p->missing_bytes_max = r->status.losses[SP_LOSS_AFTER_EXIT];
	} else {
		if (__builtin_mul_overflow(r->status.losses[SP_LOSS_NO_SLOT],
					   p->check_in_bytes, &slotless))
			slotless = UINT64_MAX;
		add(&p->missing_bytes_max, slotless);
	}
	add(&p->class_slack_bytes, p->missing_bytes_max);
}
