/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/profile.h"
#include "symbols/seethrough.h"
#include "symbols/symbol_cache.h"

/*
 * From (module, offset) to functions and source lines, with elfutils' libdw:
 * symbol tables, DWARF lines and inlines, separate debug files by build id and
 * debug link.  A module on disk whose build id differs from the recorded one is
 * not used.  Symbols that are embedded in the profile (read/embedded_symbols.h)
 * are preferred, unless they have only an address, or no line while the files
 * have one.  All text is untrusted: it comes from binaries and files unchanged.
 */
struct sp_images;

/* A file to read in the place of the module that was at `path`. */
struct sp_moved_module {
	const char *path; /* without " (deleted)" */
	const char *file;
};

struct sp_symbolizer_options {
	const char *debug_path; /* colon-separated roots of separate debug files
				   and of modules that were moved; NULL:
				   /usr/lib/debug */
	/* Files for modules that are not where they were: of the same build
	 * id, or of that path if they have none.  Borrowed. */
	const struct sp_moved_module *moved;
	size_t n_moved;
	bool use_debuginfod; /* may ask $DEBUGINFOD_URLS; off by default */
	bool full_names;     /* names with parameters and template arguments */
	/* Lines of files with the recorded build id rather than those that are
	 * embedded: their names of source files are to be trusted. */
	bool prefers_files;
	struct sp_see_through_options see_through;
	/* The results of earlier symbolizers with these options, borrowed;
	 * NULL: no cache.  Modules whose addresses are all in it are not
	 * opened, and no problem is reported for them. */
	struct sp_symbol_cache *cache;
	/* The files that they opened, borrowed (symbols/images.h); NULL: the
	 * symbolizer opens and closes files itself.  With it, a module that
	 * cannot be used is reported even if its addresses are in the cache. */
	struct sp_images *images;
};

struct sp_symbolizer;

/* 0, or negative errno and *err: -ENOMEM, or as sp_debuginfod_check() and
 * sp_see_through_new(). */
int sp_symbolizer_new(const struct sp_profile *profile,
		      const struct sp_symbolizer_options *options,
		      struct sp_symbolizer **ret_symbolizer,
		      struct sp_error *err);

/* What it was made with, its images included. */
const struct sp_symbolizer_options *sp_symbolizer_options_of(
	const struct sp_symbolizer *symbolizer);

/*
 * Symbols of a frame; the result is cached and owned by the symbolizer.  Never
 * fails: an unknown function is module+offset.  `is_return_address` looks one
 * byte back, so that a call at the end of a function is not attributed to the
 * next one.
 */
struct sp_symbols sp_symbolizer_lookup(struct sp_symbolizer *symbolizer,
				       struct sp_frame frame,
				       bool is_return_address);

/*
 * Which functions with names are beside the one without that a frame is in:
 * "between f and g", "behind f", "before g".  In a stripped file these are what
 * it exports, often of the same source file.  To be freed; NULL: none is within
 * 4 KiB, the file is not there, or memory is short.
 */
char *sp_neighbours_of(const struct sp_symbolizer *symbolizer,
		       const struct sp_module *module, struct sp_frame frame);

/* What is to be said of a module. */
typedef void sp_symbolizer_module_fn(void *arg, const struct sp_module *module,
				     const char *text);

/* Modules that could not be used, with the reason, for the report's notes:
 * calls fn once a module. */
void sp_symbolizer_problems(const struct sp_symbolizer *symbolizer,
			    sp_symbolizer_module_fn *fn, void *arg);

/* The same for modules that were used, and lack something: "...build it with
 * -g", fit to follow the module's name and a comma. */
void sp_symbolizer_lacks(const struct sp_symbolizer *symbolizer,
			 sp_symbolizer_module_fn *fn, void *arg);

/* The number of addresses that were looked up and have names, and of those
 * whose names were embedded in the profile. */
void sp_symbolizer_count(const struct sp_symbolizer *symbolizer,
			 size_t *ret_named, size_t *ret_embedded);

void sp_symbolizer_free(struct sp_symbolizer *symbolizer);
