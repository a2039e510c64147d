/* SPDX-License-Identifier: MIT */
#pragma once

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbols/elffile.h"
#include "symbols/homes.h"
#include "symbols/rangemap.h"
#include "symbols/symbolizer.h"

/*
 * The symbols, lines and inlines of one ELF file, with those of its separate
 * debug file.  Addresses are the file's own virtual addresses.
 */
struct sp_debuginfo;

/* One of the functions at an address. */
struct sp_location {
	const char *function;  /* mangled, as in the file, or with its scopes as
				  if demangled; or NULL */
	const char *directory; /* to which a relative `file` refers, or NULL */
	const char *file;      /* source file or NULL */
	uint32_t line;         /* 0: unknown */
	bool is_inlined;       /* inlined into the next one */
	bool is_clone;         /* a copy or part by the compiler: f.part.0 */
	bool lacks_inlined;    /* others may be inlined into it:
				  sp_debuginfo_lack() */
	/* Where the function is defined (symbols/homes.h). */
	struct sp_home_found home;
};

/* If more calls are inlined into each other, the innermost are left out. */
#define SP_LOCATION_MAX 64

/*
 * Open the file at `path` if it has the build id `want` (any, if that has
 * length 0), else the file of that build from sp_elffile_find() or debuginfod.
 * `options`, whose debug_path is not NULL, and `path` are borrowed until
 * sp_debuginfo_close.  On failure a negative errno, with err->message fit to
 * follow the file's name.
 */
int sp_debuginfo_open(const char *path, const struct sp_build_id *want,
		      const struct sp_symbolizer_options *options,
		      struct sp_debuginfo **ret_info, struct sp_error *err);

/*
 * What is known about `address`, innermost first, in at most SP_LOCATION_MAX
 * locations; returns how many, at least 1.  All text lives as long as the
 * debuginfo.
 */
size_t sp_debuginfo_lookup(struct sp_debuginfo *info, uint64_t address,
			   struct sp_location locations[SP_LOCATION_MAX]);

/* For addresses without a name: where the function around `address` begins,
 * from unwind information.  False if unknown. */
bool sp_debuginfo_function_start(const struct sp_debuginfo *info,
				 uint64_t address, uint64_t *ret_start);

/* Where there are symbols of functions, and the i-th: its name or NULL, and its
 * address. */
const struct sp_rangemap *sp_debuginfo_symbols(const struct sp_debuginfo *info);
const char *sp_debuginfo_symbol(const struct sp_debuginfo *info, uint32_t i,
				GElf_Sym *ret, uint64_t *ret_value);

/* The module's own file, or NULL. */
Elf *sp_debuginfo_elf(const struct sp_debuginfo *info);

/*
 * Is an allocator's wrapper called in front of the return address `back` of
 * that module?  The code of the file says so, on x86-64 and aarch64: the
 * function whose frame is there may be another, to which the wrapper has
 * jumped.  False if it is not known.
 */
struct sp_see_through;
bool sp_callsite_is_wrapper(const struct sp_debuginfo *info,
			    const struct sp_see_through *rules,
			    const char *module, uint64_t back);

/* What it lacks, as far as it was looked up, and the remedy, fit to follow the
 * name of the file and a comma; "" if nothing. */
const char *sp_debuginfo_lack(const struct sp_debuginfo *info);

void sp_debuginfo_close(struct sp_debuginfo *info);
