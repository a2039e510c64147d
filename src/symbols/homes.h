/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"

/*
 * Where the functions of one ELF file are defined (symbols/home.h): what the
 * debug information says of static functions, and what the symbol table says
 * of local symbols.  Both tables are made when they are first needed.
 * Zero-initialise.  Texts are owned.
 */
struct sp_homes {
	struct sp_home_unit *units; /* source files, by their last part */
	size_t n_units, units_room;
	struct sp_home_file *files; /* STT_FILE symbols, by index */
	size_t n_files, files_room;
	struct sp_home_local *locals; /* local functions, by name and file */
	size_t n_locals, locals_room;
	uint64_t *globals; /* hashes of the names of other functions */
	size_t n_globals, globals_room;
	int has_units, has_locals; /* 1: made; -ENOMEM: could not be */
	struct sp_blocks texts;
};

/* A home, without its address if that is 0. */
struct sp_home_found {
	const char *file; /* NULL: not known */
	uint64_t address;
};

/*
 * The home of a function with debug information: as much of the path of the
 * file that defines it as is not the end of the path of another of the
 * `dwarf`'s units.  None if the function is known outside of its file.
 */
struct sp_home_found sp_homes_of_die(struct sp_homes *homes, Dwarf *dwarf,
				     Dwarf_Die *function);

/* The home of the function of symbol i of the module.  None if the symbol is
 * not local, or a part or a copy of a function that is not, or no other has its
 * name and its file is not known. */
struct sp_home_found sp_homes_of_symbol(struct sp_homes *homes,
					Dwfl_Module *module, int i);

void sp_homes_done(struct sp_homes *homes);
