/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * May libiberty be given this name of Rust's v0 scheme ("_R...")?  It reads the
 * parts of a name that it does not print without looking at the time: one that
 * claims 2^64 bound lifetimes there (two dozen bytes can) keeps it busy for
 * centuries, and nothing is printed by which it could be stopped.
 *
 * True if the name follows the grammar up to its end, nests at most some
 * hundred levels, binds at most a hundred lifetimes at a time, and refers back
 * only to where something begins, so that no part is read in two ways.  The
 * time is linear in the length of the name, which is at most SP_MANGLED_MAX.
 * Grammar: RFC 2603, "symbol-mangling v0".
 */
bool sp_rustname_is_tame(const char *name);
