/* SPDX-License-Identifier: MIT */
#include "read/totals.h"

#include <string.h>

#include "base/saturate.h"
#include "model/whole.h"

/* A young thread publishes its totals after that many bytes. */
#define FIRST_CHECK_IN_BYTES 4096u

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
	sp_sat_add(&most, step);
	return most;
}

void sp_totals_take_slot(struct sp_profile *p, const struct sp_reader *r,
			 unsigned int i, struct sp_thread_info *owner)
{
	const struct sp_reader_slot *slot = &r->slots[i];
	const struct sp_class_total classes = r->class_slots[i];
	struct sp_class_total own = {slot->owner_bytes, slot->owner_objects};
	uint64_t bytes = slot->alloc_bytes, objects = slot->alloc_objects;

	sp_raise(&bytes, classes.bytes);
	sp_raise(&objects, classes.objects);
	if (owner) {
		sp_sat_add(&own.bytes, bytes - slot->alloc_bytes);
		sp_sat_add(&own.objects, objects - slot->alloc_objects);
		sp_sat_add(&bytes, sp_sat_sub(owner->sampled.bytes, own.bytes));
		sp_sat_add(&objects,
			   sp_sat_sub(owner->sampled.objects, own.objects));
		sp_raise(&own.bytes, owner->sampled.bytes);
		sp_raise(&own.objects, owner->sampled.objects);
		if (r->status.end_kind != SP_END_CLEAN)
			sp_sat_add(&p->missing_bytes_max,
				   sp_sat_sub(most_of(p, slot->owner_bytes),
					      own.bytes));
		owner->tid = slot->tid;
	}
	sp_sat_add(&p->exact_alloc_bytes, bytes);
	sp_sat_add(&p->exact_alloc_objects, objects);
	/* By slot: the classes of one may be ahead of its totals. */
	sp_sat_add(&p->class_slack_bytes, bytes - classes.bytes);
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
		sp_sat_add(&p->missing_bytes_max, slotless);
	}
	/* Slots of threads are behind the end, damaged, or had no room. */
	if (r->file_bytes < SP_FORMAT_CHUNK_BYTES || r->lacks_slots ||
	    r->status.losses[SP_LOSS_PAGE])
		p->missing_bytes_max = UINT64_MAX;
	sp_sat_add(&p->class_slack_bytes, p->missing_bytes_max);
}

/* Does each allocation of the totals have its sample, by what is known? */
static bool is_accounted(const struct sp_profile *p, uint64_t unrecorded)
{
	for (size_t i = 0; i < p->n_stretches; i++)
		if (!p->stretches[i].period_bytes)
			return false;
	return !unrecorded && !p->unsampled_bytes &&
	       !sp_profile_lost_samples(p) && !p->losses[SP_LOSS_NO_SLOT] &&
	       p->missing_bytes_max != UINT64_MAX;
}

/*
 * A process that did not end may have threads in the middle of an allocation
 * that has no record, with what a signal handler allocated meanwhile; and one
 * thread so young that nothing is known of it.  Nothing else is missing where
 * samples account for all before.
 */
static void set_missing(struct sp_profile *p, bool is_accounted)
{
	uint64_t most = FIRST_CHECK_IN_BYTES;

	if (sp_profile_has_ended(p->end))
		return;
	for (size_t i = 0; i < p->n_thread_infos; i++)
		if (!p->thread_infos[i].exited)
			most += FIRST_CHECK_IN_BYTES;
	if (!is_accounted && most < p->missing_bytes_max)
		most = p->missing_bytes_max;
	/* Classes may lack as much beside what samples have. */
	p->class_slack_bytes =
		sp_sat_sub(p->class_slack_bytes, p->missing_bytes_max);
	sp_sat_add(&p->class_slack_bytes, most);
	p->missing_bytes_max = most;
}

/* A loss that is a number of times may be of several allocations each. */
static uint64_t unrecorded_objects(const struct sp_profile *p)
{
	const uint64_t had = sp_profile_samples(p);
	struct sp_class_total sampled = {0, 0};
	uint64_t objects, bytes;

	if (p->is_cut || p->damaged_records || p->ignored_bytes ||
	    p->losses[SP_LOSS_FORK_RESET] || p->losses[SP_LOSS_NESTED] ||
	    p->losses[SP_LOSS_LEFT])
		return SP_UNKNOWN;
	for (size_t i = 0; i < p->n_thread_infos; i++) {
		sp_sat_add(&sampled.bytes, p->thread_infos[i].sampled.bytes);
		sp_sat_add(&sampled.objects,
			   p->thread_infos[i].sampled.objects);
	}
	objects = sp_sat_sub(p->exact_alloc_objects, p->unsampled_objects);
	bytes = sp_sat_sub(p->exact_alloc_bytes, p->unsampled_bytes);
	objects = sp_sat_sub(sp_sat_sub(objects, had),
			     sp_profile_lost_samples(p));
	if (!objects && sampled.objects == had && bytes > sampled.bytes &&
	    !sp_profile_lost_samples(p))
		objects = 1;
	return objects;
}

void sp_totals_find_unrecorded(struct sp_profile *p)
{
	uint64_t objects;

	if (p->period_bytes > 1 || p->samples_of != SP_SAMPLES_ALLOCATED)
		return;
	objects = unrecorded_objects(p);
	set_missing(p, is_accounted(p, objects));
	/* Of a process that goes on its records are behind its totals. */
	if (objects != SP_UNKNOWN && p->end != SP_PROFILE_END_RUNNING)
		sp_sat_add(&p->losses[SP_LOSS_UNRECORDED], objects);
}
