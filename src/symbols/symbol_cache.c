/* SPDX-License-Identifier: MIT */
#include "symbols/symbol_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/blocks.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/patience.h"

/* Bytes of an entry besides its texts: the index, and the allocator's overhead.
 */
#define ENTRY_BYTES 96u

struct known_module {
	const char *path;
	uint8_t build_id[SP_FORMAT_BUILD_ID_MAX];
	uint32_t build_id_len;
	bool is_main; /* decides which functions are looked through */
	/* Of the file, without a build id. */
	ino_t inode;
	off_t bytes;
	struct timespec mtime;
};

struct entry {
	struct sp_symbol_cache_key key;
	struct sp_symbols symbols;
};

struct sp_symbol_cache {
	size_t max_bytes, bytes;
	uint64_t since_ns; /* 0: nothing is in it */
	uint64_t hash_key;
	struct known_module *modules;
	size_t n_modules, modules_room;
	struct entry *entries;
	size_t n_entries, entries_room;
	struct sp_index index; /* of entries */
	struct sp_blocks storage;
};

struct sp_symbol_cache *sp_symbol_cache_new(size_t max_bytes)
{
	struct sp_symbol_cache *cache = calloc(1, sizeof(*cache));

	if (cache) {
		cache->max_bytes = max_bytes;
		cache->hash_key = sp_index_key(cache);
	}
	return cache;
}

static void forget_all(struct sp_symbol_cache *cache)
{
	free(cache->modules);
	free(cache->entries);
	sp_index_done(&cache->index);
	sp_blocks_free(&cache->storage);
	*cache = (struct sp_symbol_cache){.max_bytes = cache->max_bytes,
					  .hash_key = cache->hash_key};
}

void sp_symbol_cache_free(struct sp_symbol_cache *cache)
{
	if (cache)
		forget_all(cache);
	free(cache);
}

void sp_symbol_cache_trim(struct sp_symbol_cache *cache, uint64_t now_ns,
			  uint64_t max_age_ns)
{
	if (cache->bytes >= cache->max_bytes ||
	    (cache->since_ns && now_ns - cache->since_ns > max_age_ns))
		forget_all(cache);
	if (!cache->since_ns)
		cache->since_ns = now_ns;
}

static bool is_same(const struct known_module *a, const struct known_module *b)
{
	return a->is_main == b->is_main && a->build_id_len == b->build_id_len &&
	       memcmp(a->build_id, b->build_id, a->build_id_len) == 0 &&
	       a->inode == b->inode && a->bytes == b->bytes &&
	       a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec &&
	       strcmp(a->path, b->path) == 0;
}

static bool describe_module(struct known_module *ret,
			    const struct sp_module *module)
{
	struct stat st;

	*ret = (struct known_module){.path = module->path,
				     .build_id_len = module->build_id_len,
				     .is_main = module->is_main};
	memcpy(ret->build_id, module->build_id, module->build_id_len);
	if (ret->build_id_len)
		return true;
	if (sp_patience_stat(AT_FDCWD, module->path, &st) != 0)
		return false;
	ret->inode = st.st_ino;
	ret->bytes = st.st_size;
	ret->mtime = st.st_mtim;
	return true;
}

uint32_t sp_symbol_cache_module(struct sp_symbol_cache *cache,
				const struct sp_module *module)
{
	struct known_module wanted;

	if (!describe_module(&wanted, module))
		return 0;
	for (size_t i = 0; i < cache->n_modules; i++)
		if (is_same(&cache->modules[i], &wanted))
			return (uint32_t)i + 1;
	if (cache->bytes >= cache->max_bytes ||
	    sp_array_reserve((void **)&cache->modules, &cache->modules_room,
			     cache->n_modules, sizeof(*cache->modules)))
		return 0;
	wanted.path = sp_blocks_text(&cache->storage, module->path,
				     strlen(module->path));
	if (!wanted.path)
		return 0;
	cache->bytes += sizeof(wanted) + strlen(wanted.path) + ENTRY_BYTES;
	cache->modules[cache->n_modules++] = wanted;
	return (uint32_t)cache->n_modules;
}

static struct sp_index_probe begin_probe(const struct sp_symbol_cache *cache,
					 struct sp_symbol_cache_key key)
{
	return sp_index_begin(sp_hash_word(
		sp_hash_word(cache->hash_key, key.address),
		(uint64_t)key.module << 1 | key.is_return_address));
}

static const struct entry *find_entry(const struct sp_symbol_cache *cache,
				      struct sp_index_probe *probe,
				      struct sp_symbol_cache_key key)
{
	while (sp_index_next(&cache->index, probe)) {
		const struct entry *e = &cache->entries[probe->position];

		if (e->key.address == key.address &&
		    e->key.module == key.module &&
		    e->key.is_return_address == key.is_return_address)
			return e;
	}
	return NULL;
}

bool sp_symbol_cache_find(const struct sp_symbol_cache *cache,
			  struct sp_symbol_cache_key key,
			  struct sp_symbols *ret)
{
	struct sp_index_probe probe = begin_probe(cache, key);
	const struct entry *e = find_entry(cache, &probe, key);

	if (e)
		*ret = e->symbols;
	return e != NULL;
}

/* False: no memory. */
static bool copy_text(struct sp_symbol_cache *cache, const char **text)
{
	const size_t n = *text ? strlen(*text) : 0;

	if (!*text)
		return true;
	cache->bytes += n + ENTRY_BYTES;
	*text = sp_blocks_text(&cache->storage, *text, n);
	return *text != NULL;
}

void sp_symbol_cache_put(struct sp_symbol_cache *cache,
			 struct sp_symbol_cache_key key,
			 const struct sp_symbols *symbols)
{
	const size_t n = symbols->count * sizeof(*symbols->symbol);
	struct sp_index_probe probe = begin_probe(cache, key);
	struct sp_symbol *copy;

	if (cache->bytes >= cache->max_bytes ||
	    sp_index_reserve(&cache->index) < 0 ||
	    sp_array_reserve((void **)&cache->entries, &cache->entries_room,
			     cache->n_entries, sizeof(*cache->entries)) ||
	    find_entry(cache, &probe, key))
		return;
	copy = sp_blocks_copy(&cache->storage, symbols->symbol, n);
	cache->bytes += n + ENTRY_BYTES + sizeof(struct entry);
	for (size_t i = 0; i < symbols->count; i++)
		if (!copy || !copy_text(cache, &copy[i].function) ||
		    !copy_text(cache, &copy[i].identity) ||
		    !copy_text(cache, &copy[i].file))
			return;
	sp_index_put(&cache->index, &probe, cache->n_entries);
	cache->entries[cache->n_entries++] =
		(struct entry){key, {copy, symbols->count}};
}
