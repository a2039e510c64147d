/* SPDX-License-Identifier: MIT */
/*
 * Buckets of a few entries.
 *
 * I1  The two words of an entry prove each other: `check` is the key exclusive-
 *     or the value.  A thread that reads them while another one writes them
 *     finds a key that nothing has.
 * I2  A key is 128 bits of hash, half of them the place.  So something else is
 *     taken for this once in 2^60 lookups that find nothing.
 * I3  An entry counts in the segment that it names and in no other.  What a
 *     bucket has of earlier ones is room; where all of it is of the present
 *     one, the next level begins, four times as large.  Those before it are
 *     still asked.
 */
#include "agent/file/idtable.h"

#include <stdbool.h>
#include <stddef.h>

#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

static size_t level_bytes(unsigned int level)
{
	return sizeof(struct sp_idtable_entry) << SP_IDTABLE_BITS(level);
}

static struct sp_idtable_entry *map_level(struct sp_idtable *table,
					  unsigned int level)
{
	struct sp_idtable_entry *none = NULL,
				*fresh = sp_sys_map(level_bytes(level));

	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(&table->levels[level], &none, fresh))
		return fresh;
	sp_sys_unmap(fresh, level_bytes(level));
	return none;
}

static void put_entry(struct sp_idtable_entry *e,
		      const struct sp_idtable_key *key, uint64_t value)
{
	atomic_store_explicit(&e->check, key->check ^ value,
			      memory_order_relaxed);
	atomic_store_explicit(&e->value, value, memory_order_relaxed);
}

/* False: all of the bucket is of the segment that the value is of. */
static bool put_in(struct sp_idtable *table, unsigned int level,
		   const struct sp_idtable_key *key, uint64_t value)
{
	struct sp_idtable_entry *e = sp_idtable_bucket(table, level, key);

	for (unsigned int i = 0; e && i < SP_IDTABLE_WAYS; i++, e++)
		if (sp_idtable_segment(sp_idtable_load(&e->value)) !=
		    sp_idtable_segment(value)) {
			put_entry(e, key, value);
			return true;
		}
	return false;
}

/* The next level, if there is memory for it. */
static bool grow_level(struct sp_idtable *table, unsigned int level)
{
	if (level + 1 == SP_IDTABLE_LEVELS || !map_level(table, level + 1))
		return false;
	atomic_compare_exchange_strong(&table->newest, &level, level + 1);
	return true;
}

void sp_idtable_put(struct sp_idtable *table, const struct sp_idtable_key *key,
		    uint32_t id, uint32_t segment)
{
	const uint64_t value = id | (uint64_t)segment << 32;
	const unsigned int level = atomic_load(&table->newest);
	struct sp_idtable_entry *bucket = sp_idtable_bucket(table, level, key);

	if (!bucket) {
		if (!map_level(table, level))
			return;
		bucket = sp_idtable_bucket(table, level, key);
	}
	if (put_in(table, level, key, value) ||
	    (grow_level(table, level) && put_in(table, level + 1, key, value)))
		return;
	/* The largest: one or the other is written to the file again. */
	put_entry(&bucket[key->check % SP_IDTABLE_WAYS], key, value);
}

/* A thread that was in the middle of this may still store what is its
 * parent's, under a key that nobody asks for. */
void sp_idtable_reset(struct sp_idtable *table)
{
	atomic_fetch_add_explicit(&table->generation, 1, memory_order_relaxed);
	for (unsigned int i = 0; i <= atomic_load(&table->newest); i++)
		if (atomic_load(&table->levels[i]))
			SP_SYS3(madvise, atomic_load(&table->levels[i]),
				level_bytes(i), MADV_DONTNEED);
	atomic_store(&table->newest, 0);
}
