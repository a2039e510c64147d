/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "format/attach.h"

/*
 * Redirects the allocator calls of a program that was started without the
 * library.  Two kinds of words are written, each by one store:
 *
 *   - pointers to a function of the allocator that the loader has bound, in
 *     every object: relocated words (such as GOT slots) whose value is that
 *     function's address, and the loader's own four;
 *   - the function's address in the symbol table of the object that defines it,
 *     so that the loader binds later calls to the library.
 *
 * So the calls of an object that is loaded later are redirected before its
 * first instruction.  No object is remembered, so dlclose leaves nothing
 * behind.
 *
 * Context: cold, with the loader's lock held, so that no object is loaded,
 * unloaded or half relocated.
 */

/* `left` gets the words in memory that may be executed, which are counted and
 * not changed: memory with both rights may be forbidden.  What it has no room
 * for is changed all the same; NULL: all of them are. */

/* Redirects the calls.  A second call also redirects those that a thread was
 * binding lazily during the first.  Returns 0, with the number of changed words
 * in *ret_places; or a negative errno, and no call is redirected. */
int sp_patch_write(size_t *ret_places, struct sp_attach_words *left);

/* Undoes sp_patch_write(): every word that points into the library gets the
 * allocator's function again.  Returns likewise. */
int sp_patch_restore(size_t *ret_places, struct sp_attach_words *left);
