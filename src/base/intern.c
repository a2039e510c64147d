/* SPDX-License-Identifier: MIT */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

#define ALIGNMENT 8u /* of what is in them */

static int reserve_bytes(struct sp_intern *in, size_t n)
{
	size_t room = in->bytes_room;
	char *bytes;

	if (room - in->n_bytes > n + ALIGNMENT)
		return 0;
	while (room - in->n_bytes <= n + ALIGNMENT)
		room = 2 * room + 4096;
	bytes = realloc(in->bytes, room);
	if (!bytes)
		return -ENOMEM;
	in->bytes = bytes;
	in->bytes_room = room;
	return 0;
}

static int reserve_strings(struct sp_intern *in, size_t n)
{
	void *entries = in->entries;
	int r;

	if (sp_index_reserve(&in->index) < 0)
		return -ENOMEM;
	r = sp_array_reserve(&entries, &in->entries_room, in->n_entries,
			     sizeof(*in->entries));
	in->entries = entries;
	return r < 0 ? r : reserve_bytes(in, n);
}

/* The number of those bytes; or UINT32_MAX, and where to insert them. */
static uint32_t find_bytes(const struct sp_intern *in, const void *bytes,
			   size_t n, struct sp_index_probe *probe)
{
	while (sp_index_next(&in->index, probe)) {
		const struct sp_intern_entry *e = &in->entries[probe->position];

		if (e->length == n && !memcmp(in->bytes + e->at, bytes, n))
			return probe->position;
	}
	return UINT32_MAX;
}

uint32_t sp_intern_find(const struct sp_intern *intern, const void *bytes,
			size_t n)
{
	struct sp_index_probe probe =
		sp_index_begin(sp_hash_bytes(n, bytes, n));

	return find_bytes(intern, bytes, n, &probe);
}

int sp_intern_add(struct sp_intern *intern, const void *bytes, size_t n,
		  uint32_t *ret_number)
{
	const uint64_t hash = sp_hash_bytes(n, bytes, n);
	struct sp_index_probe probe = sp_index_begin(hash);
	int r = reserve_strings(intern, n);

	if (r < 0)
		return r;
	*ret_number = find_bytes(intern, bytes, n, &probe);
	if (*ret_number != UINT32_MAX)
		return 0;
	*ret_number = (uint32_t)intern->n_entries;
	sp_index_put(&intern->index, &probe, *ret_number);
	intern->entries[intern->n_entries++] =
		(struct sp_intern_entry){hash, intern->n_bytes, n};
	memcpy(intern->bytes + intern->n_bytes, bytes, n);
	intern->n_bytes += n;
	intern->bytes[intern->n_bytes] = '\0';
	intern->n_bytes += ALIGNMENT - intern->n_bytes % ALIGNMENT;
	return 0;
}

const char *sp_intern_bytes(const struct sp_intern *intern, uint32_t number)
{
	return intern->bytes + intern->entries[number].at;
}

void sp_intern_done(struct sp_intern *intern)
{
	free(intern->bytes);
	free(intern->entries);
	sp_index_done(&intern->index);
	*intern = (struct sp_intern){0};
}
