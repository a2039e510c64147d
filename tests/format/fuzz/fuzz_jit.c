/* SPDX-License-Identifier: MIT */
/* A perf map, or a jitdump where the first byte is even, compared with a search
 * from its last entry. */
#include <errno.h>

#include "format/fuzz/target.h"
#include "symbols/jitmap.h"

static const char *name_plainly(const struct sp_jitmap *map, uint64_t address)
{
	for (size_t i = map->n_entries; i; i--) {
		const struct sp_jit_entry *e = &map->entries[i - 1];

		if (e->start <= address && address < e->end)
			return e->name;
	}
	return NULL;
}

static void check_at(const struct sp_jitmap *map, uint64_t address)
{
	const char *name = name_plainly(map, address);
	struct sp_jit_symbol s;

	FUZZ_ASSERT(sp_jitmap_find(map, address, &s) == (name != NULL));
	FUZZ_ASSERT(!name || s.function == name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sp_jitmap map = {0};
	int r = 0;

	if (!size)
		return 0;
	if (data[0] % 2)
		r = sp_jitmap_add_map(&map, (const char *)data + 1, size - 1);
	else
		r = sp_jitmap_add_dump(&map, data + 1, size - 1);
	FUZZ_ASSERT(!r || (r == -EBADMSG && !map.n_entries));
	FUZZ_ASSERT(!sp_jitmap_seal(&map));
	for (size_t i = 0; i < map.n_entries && i < 100; i++) {
		const struct sp_jit_entry *e = &map.entries[i];

		FUZZ_ASSERT(e->start < e->end && *e->name);
		check_at(&map, e->start);
		check_at(&map, e->start - 1);
		check_at(&map, e->end);
		check_at(&map, e->start + (e->end - e->start) / 2);
	}
	sp_jitmap_done(&map);
	return 0;
}
