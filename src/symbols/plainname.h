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
 * "module!" may stand before it.  Text that is neither, or whose brackets do
 * not match, stays as it is.  Never longer than `name`.  To be freed by the
 * caller; NULL without memory.
 */
char *sp_plain_name(const char *name, bool keeps_traits);
