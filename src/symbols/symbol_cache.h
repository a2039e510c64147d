/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/*
 * Symbols of addresses, for symbolizers that come one after the other and have
 * the same options: a server opens each module once, not once a request.  A
 * module is known by its build id and path, and without a build id also by the
 * state of the file of that path.  One thread at a time.
 */
struct sp_symbol_cache;

/* At most about so many bytes; NULL without memory. */
struct sp_symbol_cache *sp_symbol_cache_new(size_t max_bytes);
void sp_symbol_cache_free(struct sp_symbol_cache *cache);

/*
 * Forget everything if it is full, or older than max_age_ns at `now_ns` of any
 * clock that is the same each time: debug files may have come since.  No
 * symbolizer may be using it, since symbols are borrowed from it.
 */
void sp_symbol_cache_trim(struct sp_symbol_cache *cache, uint64_t now_ns,
			  uint64_t max_age_ns);

/* The number of a module, from 1; 0: it has none here, for want of memory or of
 * a file. */
uint32_t sp_symbol_cache_module(struct sp_symbol_cache *cache,
				const struct sp_module *module);

/* An address of it, in its own virtual addresses; whether the code before it
 * is meant. */
struct sp_symbol_cache_key {
	uint32_t module;
	bool is_return_address;
	uint64_t address;
};

/* What is known of it, borrowed; false: nothing. */
bool sp_symbol_cache_find(const struct sp_symbol_cache *cache,
			  struct sp_symbol_cache_key key,
			  struct sp_symbols *ret);

/* Keep a copy, if there is room. */
void sp_symbol_cache_put(struct sp_symbol_cache *cache,
			 struct sp_symbol_cache_key key,
			 const struct sp_symbols *symbols);
