/* SPDX-License-Identifier: MIT */
#include "report/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

#define FIRST_SLOTS 1024u /* a power of two */

static int grow_slots(struct sp_intern *in)
{
	const size_t n_slots = in->n_slots ? 2 * in->n_slots : FIRST_SLOTS;
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_entries; i++) {
		size_t at = in->entries[i].hash & (n_slots - 1);

		while (slots[at])
			at = (at + 1) & (n_slots - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(in->slots);
	in->slots = slots;
	in->n_slots = n_slots;
	return 0;
}

static int reserve_bytes(struct sp_intern *in, size_t n)
{
	size_t room = in->bytes_room;
	char *bytes;

	if (room - in->n_bytes > n)
		return 0;
	while (room - in->n_bytes <= n)
		room = 2 * room + 4096;
	bytes = realloc(in->bytes, room);
	if (!bytes)
		return -ENOMEM;
	in->bytes = bytes;
	in->bytes_room = room;
	return 0;
}

static int reserve(struct sp_intern *in, size_t n)
{
	void *entries = in->entries;
	int r;

	if (in->n_entries >= UINT32_MAX - 1)
		return -ENOMEM;
	if (2 * (in->n_entries + 1) > in->n_slots && grow_slots(in) < 0)
		return -ENOMEM;
	r = sp_array_reserve(&entries, &in->entries_room, in->n_entries,
			     sizeof(*in->entries));
	in->entries = entries;
	return r < 0 ? r : reserve_bytes(in, n);
}

/* The slot of those bytes, or a free one; there is one. */
static size_t slot_of(const struct sp_intern *in, const void *bytes, size_t n,
		      uint64_t hash)
{
	size_t slot;

	for (slot = hash & (in->n_slots - 1); in->slots[slot];
	     slot = (slot + 1) & (in->n_slots - 1)) {
		const struct sp_intern_entry *e =
			&in->entries[in->slots[slot] - 1];

		if (e->hash == hash && e->length == n &&
		    !memcmp(in->bytes + e->at, bytes, n))
			break;
	}
	return slot;
}

uint32_t sp_intern_find(const struct sp_intern *intern, const void *bytes,
			size_t n)
{
	const uint64_t hash = sp_hash_bytes(n, bytes, n);

	/* 0, of a free slot, becomes UINT32_MAX */
	return intern->n_slots
		       ? intern->slots[slot_of(intern, bytes, n, hash)] - 1
		       : UINT32_MAX;
}

int sp_intern_add(struct sp_intern *intern, const void *bytes, size_t n,
		  uint32_t *ret_number)
{
	const uint64_t hash = sp_hash_bytes(n, bytes, n);
	size_t slot;
	int r = reserve(intern, n);

	if (r < 0)
		return r;
	slot = slot_of(intern, bytes, n, hash);
	if (intern->slots[slot]) {
		*ret_number = intern->slots[slot] - 1;
		return 0;
	}
	*ret_number = (uint32_t)intern->n_entries;
	intern->slots[slot] = *ret_number + 1;
	intern->entries[intern->n_entries++] =
		(struct sp_intern_entry){hash, intern->n_bytes, n};
	memcpy(intern->bytes + intern->n_bytes, bytes, n);
	intern->n_bytes += n;
	intern->bytes[intern->n_bytes++] = '\0';
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
	free(intern->slots);
	*intern = (struct sp_intern){0};
}
