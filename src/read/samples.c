/* SPDX-License-Identifier: MIT */
#include "read/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What only a forged file has: a time that means something else. */
static uint64_t as_time(uint64_t time_ns)
{
	return time_ns == SP_NEVER ? SP_NEVER - 1 : time_ns;
}

int sp_samples_add(struct sp_samples *s, const struct sp_sample *sample)
{
	struct sp_sample *to;

	if (sp_array_reserve((void **)&s->samples, &s->samples_room,
			     s->n_samples, sizeof(*s->samples)))
		return -ENOMEM;
	to = &s->samples[s->n_samples++];
	*to = *sample;
	to->born_ns = as_time(sample->born_ns);
	to->freed_ns = SP_NEVER;
	to->age_bytes = SP_UNKNOWN;
	to->freed_by = UINT32_MAX;
	to->free_missed = false;
	return 0;
}

int sp_samples_add_free(struct sp_samples *s,
			const struct sp_samples_free *event)
{
	if (sp_array_reserve((void **)&s->frees, &s->frees_room, s->n_frees,
			     sizeof(*s->frees)))
		return -ENOMEM;
	s->frees[s->n_frees] = *event;
	s->frees[s->n_frees++].time_ns = as_time(event->time_ns);
	return 0;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_samples(const void *a, const void *b)
{
	const struct sp_sample *x = a, *y = b;
	int order = compare_numbers(x->id, y->id);

	return order ? order : compare_numbers(x->born_ns, y->born_ns);
}

/* Chunks were filled side by side, so that ids come nearly in order. */
static void sort(struct sp_samples *s)
{
	size_t kept = 0;

	for (size_t i = 1; i < s->n_samples; i++) {
		if (s->samples[i - 1].id < s->samples[i].id)
			continue;
		qsort(s->samples, s->n_samples, sizeof(*s->samples),
		      compare_samples);
		break;
	}
	for (size_t i = 0; i < s->n_samples; i++)
		if (!kept || s->samples[kept - 1].id != s->samples[i].id)
			s->samples[kept++] = s->samples[i];
	s->n_samples = kept;
}

/*
 * The sample with that id, or NULL.  Ids are distinct and ascend, so it stands
 * at most id - first id from the beginning, and less by the holes at most.
 */
static struct sp_sample *find(const struct sp_samples *s, uint64_t id)
{
	const uint64_t n = s->n_samples;
	uint64_t first, low, high, holes;

	if (!n || id < s->samples[0].id || id > s->samples[n - 1].id)
		return NULL;
	first = s->samples[0].id;
	holes = s->samples[n - 1].id - first - (n - 1);
	high = id - first < n ? id - first : n - 1;
	low = id - first > holes ? id - first - holes : 0;
	while (low < high) {
		uint64_t middle = high - (high - low) / 2;

		if (s->samples[middle].id <= id)
			low = middle;
		else
			high = middle - 1;
	}
	return s->samples[low].id == id ? &s->samples[low] : NULL;
}

static void end_sample(struct sp_sample *sample,
		       const struct sp_samples_free *event)
{
	sample->freed_ns = event->time_ns < sample->born_ns ? sample->born_ns
							    : event->time_ns;
	sample->age_bytes = event->age_bytes;
	sample->freed_by = event->thread;
	sample->free_missed = event->missed;
}

void sp_samples_join(struct sp_samples *s, struct sp_sample **ret,
		     size_t *ret_n, uint64_t *ret_unmatched)
{
	*ret_unmatched = 0;
	sort(s);
	for (size_t i = 0; i < s->n_frees; i++) {
		const struct sp_samples_free *event = &s->frees[i];
		struct sp_sample *sample = find(s, event->id);

		if (!sample || sample->freed_ns != SP_NEVER)
			++*ret_unmatched;
		if (sample && event->time_ns < sample->freed_ns)
			end_sample(sample, event);
	}
	*ret = s->samples;
	*ret_n = s->n_samples;
	s->samples = NULL;
	s->n_samples = s->samples_room = 0;
}

void sp_samples_done(struct sp_samples *s)
{
	free(s->samples);
	free(s->frees);
	memset(s, 0, sizeof(*s));
}
