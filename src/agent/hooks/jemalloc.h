/* SPDX-License-Identifier: MIT */
#pragma once

/* Ours for a function of jemalloc's own interface, whose name cannot be asked
 * for it: it is an indirect function.  NULL: there is none. */
const void *sp_jemalloc_hook(const char *symbol);
