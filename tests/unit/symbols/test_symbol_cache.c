/* SPDX-License-Identifier: MIT */
/* The symbols that requests share: by build id, path and state of the file,
 * within a limit, until they are old. */
#include "support/memfile.h"
#include "symbols/symbol_cache.h"
#include "support/test.h"

#define HOUR 3600000000000ull

static const struct sp_symbol symbol = {.function = "f",
					.identity = "f(int)",
					.file = "f.c",
					.line = 7,
					.is_inlined = true};
static const struct sp_symbols one = {&symbol, 1};

static struct sp_module module(const char *path, uint8_t build_id)
{
	return (struct sp_module){.path = path,
				  .build_id = {build_id},
				  .build_id_len = build_id ? 1 : 0};
}

static bool has(struct sp_symbol_cache *cache, struct sp_symbol_cache_key key)
{
	struct sp_symbols found;

	return sp_symbol_cache_find(cache, key, &found);
}

TEST(a_copy_of_what_was_put)
{
	struct sp_symbol_cache *cache = sp_symbol_cache_new(1u << 20);
	char name[] = "g";
	struct sp_symbol more[2] = {symbol, {.function = name}};
	const struct sp_symbols two = {more, 2};
	struct sp_module m = module("/a", 1);
	struct sp_symbol_cache_key key = {sp_symbol_cache_module(cache, &m),
					  false, 4096};
	struct sp_symbols found;

	assert_int_equal(key.module, 1);
	assert_false(has(cache, key));
	sp_symbol_cache_put(cache, key, &two);
	sp_symbol_cache_put(cache, key, &one);
	name[0] = 'x';
	assert_true(sp_symbol_cache_find(cache, key, &found));
	assert_int_equal(found.count, 2);
	assert_string_equal(found.symbol[0].function, "f");
	assert_string_equal(found.symbol[0].identity, "f(int)");
	assert_string_equal(found.symbol[0].file, "f.c");
	assert_int_equal(found.symbol[0].line, 7);
	assert_true(found.symbol[0].is_inlined);
	assert_string_equal(found.symbol[1].function, "g");
	assert_null(found.symbol[1].identity);
	assert_null(found.symbol[1].file);
	key.is_return_address = true;
	assert_false(has(cache, key));
	key.is_return_address = false;
	key.address++;
	assert_false(has(cache, key));
	sp_symbol_cache_free(cache);
}

TEST(modules)
{
	struct sp_symbol_cache *cache = sp_symbol_cache_new(1u << 20);
	struct sp_module a = module("/a", 1), b = module("/a", 2),
			 c = module("/c", 1), d = module("/a", 1);
	uint32_t first = sp_symbol_cache_module(cache, &a);

	d.is_main = true;
	assert_int_equal(sp_symbol_cache_module(cache, &a), first);
	assert_int_not_equal(sp_symbol_cache_module(cache, &b), first);
	assert_int_not_equal(sp_symbol_cache_module(cache, &c), first);
	assert_int_not_equal(sp_symbol_cache_module(cache, &d), first);
	sp_symbol_cache_free(cache);
}

/* Without a build id another file of the same name is another module. */
TEST(no_build_id)
{
	struct sp_symbol_cache *cache = sp_symbol_cache_new(1u << 20);
	struct sp_module m, gone = module("/nowhere/at/all", 0);
	FREED_BY(memfile_close) struct memfile file;
	uint32_t first;

	memfile_open(&file);
	m = module(file.path, 0);
	first = sp_symbol_cache_module(cache, &m);
	assert_int_not_equal(first, 0);
	assert_int_equal(sp_symbol_cache_module(cache, &m), first);
	memfile_write(&file, 0, "more", 4);
	assert_int_not_equal(sp_symbol_cache_module(cache, &m), first);
	assert_int_equal(sp_symbol_cache_module(cache, &gone), 0);
	sp_symbol_cache_free(cache);
}

TEST(limit_and_age)
{
	struct sp_symbol_cache *cache = sp_symbol_cache_new(100000);
	struct sp_module m = module("/a", 1);
	struct sp_symbol_cache_key key = {.module = 1};
	size_t n = 0;

	sp_symbol_cache_trim(cache, 5 * HOUR, HOUR);
	assert_int_equal(sp_symbol_cache_module(cache, &m), 1);
	for (key.address = 0; key.address < 10000; key.address++) {
		sp_symbol_cache_put(cache, key, &one);
		n += has(cache, key);
	}
	assert_in_range(n, 100, 1000);
	/* It is full: nothing is old enough, and all goes. */
	sp_symbol_cache_trim(cache, 5 * HOUR, HOUR);
	key.address = 0;
	assert_false(has(cache, key));
	sp_symbol_cache_put(cache, key, &one);
	sp_symbol_cache_trim(cache, 6 * HOUR, HOUR);
	assert_true(has(cache, key));
	sp_symbol_cache_trim(cache, 6 * HOUR + 1, HOUR);
	assert_false(has(cache, key));
	sp_symbol_cache_free(cache);
}

TEST_MAIN(NULL, NULL)
