/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * Having the calls of a program come in that was not started under the library.
 * Two kinds of words are written, each in one store, and nothing else:
 *
 *   - pointers to a function of the allocator below that the loader has bound,
 *     in every object: the relocated words whose value is that function's
 *     address, and the loader's own four;
 *   - the function's address in the symbol table of the object that defines it,
 *     so that the loader binds whatever it binds later to ours.
 *
 * Objects that come later are thereby right before their first instruction, and
 * none is remembered: what was unloaded leaves nothing behind.
 *
 * Context: cold, and while the loader's lock is held: no object comes, goes or
 * is half relocated.
 */

/* The calls come in; said again, those too that were being bound meanwhile.  0
 * and the number of words that were changed; a negative errno, and the calls do
 * not come in. */
int sp_patch_write(size_t *ret_places);

/* They do not any more: every word that points to us gets its function back. */
int sp_patch_restore(size_t *ret_places);
