/* SPDX-License-Identifier: MIT */
#include "read/pairing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

void sp_pairing_init(struct sp_pairing *p)
{
	*p = (struct sp_pairing){.allocated = NULL};
	sp_open_samples_init(&p->open);
}

/* The low bits of addresses are zero: they would be neighbours of none. */
static uint64_t key_of(uint64_t address)
{
	return address >> 4 | address << 60;
}

/* The sum of a thread; NULL without memory. */
static uint64_t *find_sum(struct sp_pairing *p, uint32_t thread)
{
	for (; p->n_threads <= thread; p->n_threads++) {
		if (sp_array_reserve((void **)&p->allocated, &p->threads_room,
				     p->n_threads, sizeof(*p->allocated)))
			return NULL;
		p->allocated[p->n_threads] = 0;
	}
	return &p->allocated[thread];
}

int sp_pairing_birth(struct sp_pairing *p, const struct sp_sample *s,
		     uint64_t address, struct sp_pairing_end *ret_missed)
{
	struct sp_open_sample born = {
		.id = key_of(address), .group = 1, .object = s->thread};
	struct sp_open_sample *old = sp_open_samples_find(&p->open, born.id);

	p->is_sampled |= s->period_bytes > 1;
	born.sample = s->id;
	if (s->thread != UINT32_MAX) {
		uint64_t *sum = find_sum(p, s->thread);

		if (!sum)
			return -ENOMEM;
		*sum += s->size_bytes;
		born.allocated_bytes = *sum;
	}
	if (!old)
		return sp_open_samples_add(&p->open, &born);
	*ret_missed = (struct sp_pairing_end){old->sample, SP_UNKNOWN};
	*old = born;
	return 1;
}

bool sp_pairing_free(struct sp_pairing *p, uint64_t address, uint32_t thread,
		     struct sp_pairing_end *ret)
{
	struct sp_open_sample *old =
		sp_open_samples_find(&p->open, key_of(address));

	if (!old)
		return false;
	*ret = (struct sp_pairing_end){old->sample, SP_UNKNOWN};
	if (thread == old->object && thread != UINT32_MAX && !p->is_sampled)
		ret->age_bytes = p->allocated[thread] - old->allocated_bytes;
	sp_open_samples_drop(&p->open, old);
	return true;
}

void sp_pairing_done(struct sp_pairing *p)
{
	free(p->allocated);
	sp_open_samples_done(&p->open);
	*p = (struct sp_pairing){.allocated = NULL};
}
