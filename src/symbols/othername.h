/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * The source form of linker names that are neither C++ nor Rust, to be freed;
 * NULL if it is no such name, or memory is short.  The name is untrusted.
 */

/* D ("_D4shop4Pool4grabMFmZPv": shop.Pool.grab with its parameters), modules of
 * Fortran, by gfortran ("__shop_MOD_sell": shop::sell) and by flang, and OCaml
 * ("camlShop__sell_83": Shop.sell). */
char *sp_othername(const char *name);

/* Ada: "shop__sell__inner.3" is shop.sell.inner.  C names may look like that,
 * too: only for modules in which the runtime of Ada is. */
char *sp_othername_ada(const char *name);

/* The length without what the compiler adds to the name of a part or a copy of
 * a function: ".part.0", ".isra.1.cold", ".llvm.123".  All of it if there is
 * nothing to take off. */
size_t sp_othername_without_clones(const char *name);

/* Characters that Rust's old scheme has as "$uf6$" or "$LT$", which libiberty
 * leaves where it does not know one: in place. */
void sp_othername_unescape_rust(char *name);
