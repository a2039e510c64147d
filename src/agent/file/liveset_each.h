/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* The addresses in the live set: of those that are inserted or taken meanwhile
 * any, of the others each, once or twice.  Context: sampled. */
typedef void sp_liveset_fn(void *arg, uint64_t address);
void sp_liveset_each(sp_liveset_fn *fn, void *arg);
