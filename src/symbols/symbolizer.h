/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"
#include "symbols/seethrough.h"
#include "symbols/symbol_cache.h"

/*
 * From (module, offset) to functions and source lines, with elfutils' libdw:
 * symbol tables, DWARF lines and inlines, separate debug files by build id and
 * debug link.  A module on disk whose build id differs from the recorded one
 * is not used.  What the profile brings along itself (read/embedded_symbols.h)
 * is preferred, but where it has no more than an address, or a name without a
 * line that is found here.  All text is untrusted: it comes from binaries and
 * files as it is.
 */
struct sp_images;

struct sp_symbolizer_options {
	const char *debug_path; /* colon-separated roots of separate debug
				 * files and of modules that are not where
				 * they were, or NULL for /usr/lib/debug */
	bool use_debuginfod;    /* may ask $DEBUGINFOD_URLS; off by default */
	bool full_names;        /* functions are called all that they are */
	struct sp_see_through_options see_through;
	/* What earlier symbolizers with these options found, borrowed; NULL:
	 * nothing is kept.  Modules whose addresses are all in it are not
	 * opened, and are no problem. */
	struct sp_symbol_cache *cache;
	/* What they opened, borrowed (symbols/images.h); NULL: a symbolizer
	 * opens and closes files itself.  Then a module that is of no use is a
	 * problem also if its addresses are in the cache. */
	struct sp_images *images;
};

struct sp_symbolizer;

/* 0, or negative errno and *err: -ENOMEM, or as sp_debuginfod_check() and
 * sp_see_through_new(). */
int sp_symbolizer_new(const struct sp_profile *profile,
		      const struct sp_symbolizer_options *options,
		      struct sp_symbolizer **ret_symbolizer,
		      struct sp_error *err);

/* Are functions called all that they are? */
bool sp_symbolizer_has_full_names(const struct sp_symbolizer *symbolizer);

/*
 * Symbols of a frame; the result is cached and owned by the symbolizer.  Never
 * fails: what is not known is module+offset.  `is_return_address` looks one
 * byte back, so that a call at the end of a function is not attributed to the
 * next one.
 */
struct sp_symbols sp_symbolizer_lookup(struct sp_symbolizer *symbolizer,
				       struct sp_frame frame,
				       bool is_return_address);

/* Modules that could not be used, with the reason, for the report's notes:
 * calls fn once a module. */
void sp_symbolizer_problems(const struct sp_symbolizer *symbolizer,
			    void (*fn)(void *arg, const struct sp_module *,
				       const char *reason),
			    void *arg);

/* Of the addresses that were looked up, how many have names; and how many of
 * these were embedded in the profile. */
void sp_symbolizer_count(const struct sp_symbolizer *symbolizer,
			 size_t *ret_named, size_t *ret_embedded);

void sp_symbolizer_free(struct sp_symbolizer *symbolizer);
