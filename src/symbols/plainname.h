/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * The name of a function (symbols/demangle.h) as its source spells it:
 *
 *   C++   "std::__cxx11::basic_string<char, std::char_traits<char>,
 *         std::allocator<char> >::reserve(unsigned long)"
 *      -> "std::string::reserve(unsigned long)": without inline namespaces,
 *         ABI tags and template arguments that are the default
 *   Rust  "<alloc::vec::Vec<T,A> as core::clone::Clone>::clone"
 *      -> "Vec<T>::clone": types of the standard library without their
 *         modules, default arguments and hash; with keeps_traits
 *         "<Vec<T> as Clone>::clone"
 *
 * "module!" may precede it, and its home (symbols/home.h) is left out.  Other
 * text, and text whose brackets do not match, stays unchanged.  The result is
 * never longer than `name`.  The caller frees it (free()); NULL without memory.
 */
char *sp_plain_name(const char *name, bool keeps_traits);
