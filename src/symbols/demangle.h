/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * The source form of a linker name of C++, Rust, D or Fortran, with everything
 * that distinguishes functions: scopes, template arguments and parameters.  It
 * has no return type, no hash of Rust, and no clone suffix of the compiler:
 * "ns::Box<int>::push(int const&)".  Of another name ("f.part.0") only such a
 * suffix is taken off.
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
 * Length of the readable part of such a name, without its own parameters:
 * "ns::Box<int>::push".  Overloads share it.  Parameters of a function that
 * encloses a lambda or local class stay.  For any other text, its whole length.
 * A home (symbols/home.h) is never part of it.
 */
size_t sp_demangle_short(const char *name);
