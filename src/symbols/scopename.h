/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>

#include "base/blocks.h"

/*
 * The name of a function in DWARF, whose symbol is that, or NULL where it is
 * inlined: its linkage name, else the plain one, of C++ as the demangler would
 * write it: "main::{lambda(int)#2}::operator()(int) const".  Scopes and
 * arguments are those of the DIEs.  A lambda's number counts the lambdas of its
 * function with the same arguments.  It lives as long as the DWARF, the symbol
 * and `names`; NULL: it has none.
 */
const char *sp_scopename_function(Dwarf_Die *function, const char *symbol,
				  struct sp_blocks *names);
