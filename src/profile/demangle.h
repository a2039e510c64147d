/* SPDX-License-Identifier: MIT */
#ifndef SP_PROFILE_DEMANGLE_H
#define SP_PROFILE_DEMANGLE_H

/*
 * The source form of a C++ or Rust linker name: scopes and template arguments
 * stay, parameter and return types are dropped ("ns::Box<int>::push", not
 * "void ns::Box<int>::push(int const&)"), and so are Rust's hashes and the
 * compiler's clone suffixes.  Overloads therefore share one name.  Only the
 * parameters of a function that encloses a lambda or local class stay.
 *
 * Returns a string that the caller frees; NULL if `name` is not mangled, is
 * longer than SP_MANGLED_MAX, nests too deeply, would become longer than
 * SP_DEMANGLED_MAX (a few hundred bytes can stand for gigabytes), or memory is
 * short.
 */
#define SP_MANGLED_MAX   4096
#define SP_DEMANGLED_MAX 16384

char *sp_demangle(const char *name);

#endif
