/* SPDX-License-Identifier: MIT */
#include "fleet/known.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"

/* 32 MiB at most. */
#define KNOWN_MAX (1u << 20)

static bool find_number(const struct sp_fleet_known *known, uint64_t number,
			struct sp_index_probe *probe)
{
	*probe = sp_index_begin(sp_hash_word(0, number));
	while (sp_index_next(&known->index, probe))
		if (known->numbers[probe->position] == number)
			return true;
	return false;
}

bool sp_fleet_knows(const struct sp_fleet_known *known, uint64_t number)
{
	struct sp_index_probe probe;

	return find_number(known, number, &probe);
}

void sp_fleet_learn(struct sp_fleet_known *known, uint64_t number)
{
	struct sp_index_probe probe;

	if (known->n == KNOWN_MAX)
		sp_fleet_forget(known);
	if (sp_index_reserve(&known->index) ||
	    sp_array_reserve((void **)&known->numbers, &known->room, known->n,
			     sizeof(*known->numbers)) ||
	    find_number(known, number, &probe))
		return;
	sp_index_put(&known->index, &probe, known->n);
	known->numbers[known->n++] = number;
}

void sp_fleet_forget(struct sp_fleet_known *known)
{
	free(known->numbers);
	sp_index_done(&known->index);
	*known = (struct sp_fleet_known){.n = 0};
}
