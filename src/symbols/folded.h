/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"

/*
 * Functions that the linker found to be the same, and of which it kept one
 * (--icf of lld, gold and mold): which of them was called is not known.  Only
 * names that an alias of one function would not have count: of C++ and Rust,
 * or local to a file.  Zero-initialise.
 */
struct sp_folded {
	bool is_possible; /* such a linker made the file */
	struct sp_folded_symbol *symbols;
	size_t n, room;
	struct sp_blocks texts;
};

/* Take note of who linked the file; then of its functions, in any order, and
 * of the end of that.  Without memory less is known. */
void sp_folded_open(struct sp_folded *f, Elf *elf);
void sp_folded_add(struct sp_folded *f, uint64_t start, uint64_t end, int i);
void sp_folded_seal(struct sp_folded *f);

/* Their names without parameters, with " or " between them; NULL: it is one
 * function.  Owned. */
const char *sp_folded_find(struct sp_folded *f, Dwfl_Module *module,
			   uint64_t address);

void sp_folded_done(struct sp_folded *f);
