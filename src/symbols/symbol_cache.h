/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/*
 * A cache of symbols for symbolizers that run one after the other with the same
 * options, so that a server opens each module once, not once a request.  A
 * module is identified by its build id and path; without a build id, also by
 * the state of the file at that path.  For one thread at a time.
 */
struct sp_symbol_cache;

/* It uses about max_bytes at most.  NULL without memory. */
struct sp_symbol_cache *sp_symbol_cache_new(size_t max_bytes);
void sp_symbol_cache_free(struct sp_symbol_cache *cache);

/*
 * Empty the cache if it is full, or older than max_age_ns, because debug files
 * may have been installed since.  `now_ns` is of any clock, the same in each
 * call.  No symbolizer may use the cache meanwhile, because symbols are
 * borrowed from it.
 */
void sp_symbol_cache_trim(struct sp_symbol_cache *cache, uint64_t now_ns,
			  uint64_t max_age_ns);

/* The number of a module, from 1; 0 if memory is short or it has no file. */
uint32_t sp_symbol_cache_module(struct sp_symbol_cache *cache,
				const struct sp_module *module);

/* An address of a module, in the module's own virtual addresses.  For a return
 * address, the code before it counts. */
struct sp_symbol_cache_key {
	uint32_t module;
	bool is_return_address;
	uint64_t address;
};

/* The symbols of an address, borrowed; false: not in the cache. */
bool sp_symbol_cache_find(const struct sp_symbol_cache *cache,
			  struct sp_symbol_cache_key key,
			  struct sp_symbols *ret);

/* Keep a copy, if there is room. */
void sp_symbol_cache_put(struct sp_symbol_cache *cache,
			 struct sp_symbol_cache_key key,
			 const struct sp_symbols *symbols);
