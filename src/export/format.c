/* SPDX-License-Identifier: MIT */
#include "export/format.h"

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

uint64_t sp_export_seed(const struct sp_profile *profile)
{
	uint64_t h = sp_hash_word(profile->seed, profile->pid);

	return sp_hash_word(h, profile->start_unix_ns);
}
