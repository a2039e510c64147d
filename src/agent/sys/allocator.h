/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "format/layout.h"

/*
 * What the allocator below counts of itself, in bytes; the library's own memory
 * is zero.  False, and *ret untouched: it has no such counts.  Takes its locks,
 * all of them in turn, as the program's own question would.  Context: sampled,
 * in a thread that is in no allocator.
 */
bool sp_allocator_ask(struct sp_control_memory *ret);

/* The same, but glibc is not asked. */
bool sp_allocator_ask_other(struct sp_control_memory *ret);
