/* SPDX-License-Identifier: MIT */
/* Mappings as samples of a profile that is of these. */
#include <errno.h>
#include <string.h>

#include "base/saturate.h"
#include "read/loader.h"

/* As a sample that was drawn for certain. */
static int add_part(void *arg, const struct sp_span *part, uint64_t gone_ns)
{
	struct sp_loader *l = arg;
	const bool is_reserved = part->flags & SP_MAP_NO_ACCESS;
	const struct sp_sample sample = {
		.id = ++l->n_parts,
		.born_ns = part->time_ns,
		.freed_ns = SP_NEVER,
		.size_bytes = part->end - part->start,
		.period_bytes = 1,
		.age_bytes = SP_UNKNOWN,
		.stack = part->stack,
		.thread = part->thread,
		.freed_by = UINT32_MAX,
	};
	const struct sp_stream_free end = {.id = sample.id,
					   .time_ns = gone_ns,
					   .age_bytes = SP_UNKNOWN,
					   .thread = UINT32_MAX};
	int r;

	if (is_reserved != (l->p->samples_of == SP_SAMPLES_RESERVED))
		return 0;
	sp_sat_add(&l->part_bytes, sample.size_bytes);
	r = sp_stream_sample(l->stream, &sample, part->start);
	return r < 0 || gone_ns == SP_NEVER ? r
					    : sp_stream_free(l->stream, &end);
}

int sp_loader_end_records(struct sp_loader *l)
{
	const bool is_wanted = l->p->samples_of != SP_SAMPLES_ALLOCATED;

	if (!is_wanted && sp_loader_find_brought(l))
		return -ENOMEM;
	return sp_mappings_play(&l->mappings, is_wanted ? add_part : NULL, l,
				&l->p->mapped);
}

void sp_loader_set_mapped_totals(const struct sp_loader *l)
{
	struct sp_profile *p = l->p;

	p->exact_alloc_bytes = l->part_bytes;
	p->exact_alloc_objects = p->n_samples;
	p->missing_bytes_max = p->class_slack_bytes = 0;
	p->unsampled_bytes = p->unsampled_objects = 0;
	p->discarded_bytes = p->discarded_objects = 0;
	p->has_classes = false;
	memset(p->classes, 0, sizeof(p->classes));
	p->n_stretches = 0;
	p->period_bytes = 1;
	for (size_t i = 0; i < p->n_thread_infos; i++)
		p->thread_infos[i].has_totals = false;
}
