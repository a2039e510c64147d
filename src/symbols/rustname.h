/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * Is it safe to give libiberty this name of Rust's v0 scheme ("_R...")?
 * libiberty has no limit of time in the parts of a name that it does not print.
 * A name of two dozen bytes can claim 2^64 bound lifetimes there and keep it
 * busy for centuries, without output that could stop it.
 *
 * True if the whole name follows the grammar, nests at most some hundred
 * levels, binds at most a hundred lifetimes at a time, and has back references
 * only to beginnings of parts, so that no part is read in two ways.  The time
 * is linear in the length of the name, which is at most SP_MANGLED_MAX.
 * Grammar: RFC 2603, "symbol-mangling v0".
 */
bool sp_rustname_is_tame(const char *name);
