/* SPDX-License-Identifier: MIT */
#include "export/format.h"

#include <stdlib.h>

#include "base/hash.h"

int64_t sp_export_round(double value, uint64_t hash, int64_t max)
{
	const double uniform = (double)(hash >> 11) * 0x1p-53; /* in [0, 1) */
	int64_t whole;

	if (!(value < (double)max))
		return max;
	whole = (int64_t)value;
	return whole + (uniform < value - (double)whole);
}

bool *sp_export_stacks_of(const struct sp_profile *p,
			  const struct sp_selection *selection)
{
	bool *has = calloc(p->n_stacks + 1, sizeof(*has));

	for (size_t i = 0; has && i < p->n_samples; i++)
		has[p->samples[i].stack] |=
			sp_selection_has(selection, p, &p->samples[i]);
	for (size_t i = 0; has && i < p->n_groups; i++)
		has[p->groups[i].one.stack] |=
			sp_selection_has(selection, p, &p->groups[i].one);
	return has;
}

uint64_t sp_export_seed(const struct sp_profile *profile)
{
	uint64_t h = sp_hash_word(profile->seed, profile->pid);

	return sp_hash_word(h, profile->start_unix_ns);
}
