/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * The source form of a C++ or Rust linker name, all that tells functions apart:
 * scopes, template arguments and parameters, but no return type, none of Rust's
 * hashes and of the compiler's clone suffixes: "ns::Box<int>::push(int
 * const&)".
 *
 * Returns a string that the caller frees; NULL if `name` is not mangled, is
 * longer than SP_MANGLED_MAX, nests too deeply, would become longer than
 * SP_DEMANGLED_MAX (a few hundred bytes can stand for gigabytes), or memory is
 * short.
 */
#define SP_MANGLED_MAX   4096
#define SP_DEMANGLED_MAX 16384

char *sp_demangle(const char *name);

/*
 * How much of such a name people read: it without its own parameters,
 * "ns::Box<int>::push".  Overloads share that; parameters of a function that
 * encloses a lambda or local class stay.  Of any other text all of it.
 */
size_t sp_demangle_short(const char *name);
