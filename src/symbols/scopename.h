/* SPDX-License-Identifier: MIT */
#pragma once

#include <elfutils/libdw.h>

/*
 * The name of a C++ function that DWARF gives no linkage name, as the
 * demangler would write it: "main::{lambda(int)#2}::operator()(int) const".
 * Scopes and arguments are those of the DIEs; a lambda is counted among those
 * of its function that have the same arguments.  For the caller to free; NULL
 * if the unit is of another language, or memory is short.
 */
char *sp_scopename(Dwarf_Die *function);
