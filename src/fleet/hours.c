/* SPDX-License-Identifier: MIT */
#include "fleet/hours.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/saturate.h"

static bool is_same(const struct sp_fleet_hour_key *a,
		    const struct sp_fleet_hour_key *b)
{
	return a->stack == b->stack && a->size_bytes == b->size_bytes &&
	       a->hour == b->hour && a->period_bytes == b->period_bytes &&
	       a->is_alive == b->is_alive;
}

static uint64_t hash_of(const struct sp_fleet_hours *hours,
			const struct sp_fleet_hour_key *key)
{
	uint64_t h = sp_hash_word(hours->key, key->stack);

	h = sp_hash_word(h, key->size_bytes);
	h = sp_hash_word(h, key->period_bytes);
	return sp_hash_word(h, key->hour * 2 + key->is_alive);
}

/* The row of a key, a new one if there is none; NULL: no memory. */
static struct sp_fleet_hour *find_row(struct sp_fleet_hours *hours,
				      const struct sp_fleet_hour_key *key)
{
	struct sp_index_probe probe;

	if (!hours->key)
		hours->key = sp_index_key(hours);
	if (sp_index_reserve(&hours->index) ||
	    sp_array_reserve((void **)&hours->rows, &hours->room, hours->n,
			     sizeof(*hours->rows)))
		return NULL;
	probe = sp_index_begin(hash_of(hours, key));
	while (sp_index_next(&hours->index, &probe))
		if (is_same(&hours->rows[probe.position].key, key))
			return &hours->rows[probe.position];
	hours->rows[hours->n] = (struct sp_fleet_hour){.key = *key};
	sp_index_put(&hours->index, &probe, hours->n);
	return &hours->rows[hours->n++];
}

int sp_fleet_hours_add(struct sp_fleet_hours *hours,
		       const struct sp_profile *profile,
		       const struct sp_sample *sample, uint64_t stack,
		       struct sp_error *err)
{
	struct sp_fleet_hour_key key = {
		.hour = profile->start_unix_ns,
		.stack = stack,
		.size_bytes = sample->size_bytes,
		.period_bytes = sample->period_bytes,
		.is_alive = sample->freed_ns == SP_NEVER,
	};
	struct sp_fleet_hour *row;
	int r = 0;

	sp_sat_add(&key.hour, sample->born_ns);
	key.hour /= SP_FLEET_HOUR_NS;
	row = find_row(hours, &key);
	if (!row)
		return sp_error_memory(err, hours->db->path);
	row->samples++;
	sp_sat_add(&row->tail_bytes, sample->size_bytes - sample->offset_bytes);
	if (hours->n == SP_FLEET_HOURS_MAX)
		r = sp_fleet_hours_write(hours, err);
	return r;
}

int sp_fleet_hours_write(struct sp_fleet_hours *hours, struct sp_error *err)
{
	int r = 0;

	for (size_t i = 0; i < hours->n && r >= 0; i++) {
		const struct sp_fleet_hour *h = &hours->rows[i];
		const struct sp_fleet_value row[] = {
			sp_fleet_number(hours->process),
			sp_fleet_number(++hours->written),
			sp_fleet_number(h->key.hour),
			sp_fleet_number(h->key.stack),
			sp_fleet_number(h->key.size_bytes),
			sp_fleet_number(h->key.period_bytes),
			sp_fleet_number(h->key.is_alive),
			sp_fleet_number(h->samples),
			sp_fleet_number(h->tail_bytes),
		};

		r = sp_fleet_put(hours->db, SP_FLEET_HOURS, row, err);
	}
	hours->n = 0;
	sp_index_done(&hours->index);
	hours->index = (struct sp_index){.n = 0};
	return r;
}

void sp_fleet_hours_done(struct sp_fleet_hours *hours)
{
	sp_index_done(&hours->index);
	free(hours->rows);
}
