/* SPDX-License-Identifier: MIT */
#include "report/stats.h"

#include <errno.h>
#include <stdlib.h>

static int compare_rows(const void *a, const void *b, void *arg)
{
	const unsigned int x = *(const unsigned int *)a;
	const unsigned int y = *(const unsigned int *)b;
	const struct sp_class_sums *entries = arg;
	const uint64_t nx = entries[x].all.samples, ny = entries[y].all.samples;

	if (nx != ny)
		return nx < ny ? 1 : -1;
	return (x > y) - (x < y);
}

static unsigned int entry_of(const struct sp_sample *s)
{
	return s->entry < SP_ENTRY_COUNT ? s->entry : SP_ENTRY_COUNT;
}

static int add_to_entry(struct sp_stats *stats, const struct sp_analysis *a,
			const struct sp_alike *samples)
{
	const struct sp_acc terms =
		sp_selection_terms(&a->selection, a->profile, samples);

	return sp_class_sums_add_acc(&stats->entries[entry_of(samples->one)],
				     samples->one->size_bytes, &terms);
}

static int add_all(struct sp_stats *stats, const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;

	for (size_t i = 0; i < sp_alike_n(p); i++) {
		const struct sp_alike s = sp_alike_at(p, i);

		if (sp_selection_has(&a->selection, p, s.one) &&
		    add_to_entry(stats, a, &s) < 0)
			return -ENOMEM;
	}
	for (unsigned int i = 0; i < SP_STATS_ENTRIES; i++)
		sp_selection_judge(&a->selection, p, &stats->entries[i]);
	return 0;
}

int sp_stats_init(struct sp_stats *stats, const struct sp_analysis *a,
		  struct sp_error *err)
{
	*stats = (struct sp_stats){.n_entries = 0};
	for (unsigned int i = 0; i < SP_STATS_ENTRIES; i++)
		sp_class_sums_init(&stats->entries[i],
				   a->profile->period_bytes);
	if (add_all(stats, a) < 0) {
		sp_stats_done(stats);
		return sp_error_memory(err, a->profile->path);
	}
	for (unsigned int i = 0; i < SP_STATS_ENTRIES; i++)
		if (stats->entries[i].all.samples)
			stats->order[stats->n_entries++] = i;
	qsort_r(stats->order, stats->n_entries, sizeof(*stats->order),
		compare_rows, stats->entries);
	return 0;
}

void sp_stats_done(struct sp_stats *stats)
{
	for (unsigned int i = 0; i < SP_STATS_ENTRIES; i++)
		sp_class_sums_free(&stats->entries[i]);
}
