/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>

/*
 * The name of a C++ function without a linkage name in DWARF, as the demangler
 * would write it: "main::{lambda(int)#2}::operator()(int) const".  Scopes and
 * arguments are those of the DIEs.  A lambda's number counts the lambdas of its
 * function with the same arguments.  The caller frees it (free()); NULL if the
 * unit is of another language, or memory is short.
 */
char *sp_scopename(Dwarf_Die *function);

/* The linkage name of a function in DWARF, which owns it; or NULL. */
const char *sp_scopename_linkage(Dwarf_Die *function);
