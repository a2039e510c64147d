/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Which name a mistyped word was meant to be: the one with the smallest edit
 * distance (insertions, deletions, substitutions, swapped neighbours), at most
 * 2; or the only one that begins with the word. */
struct sp_nearest {
	const char *word;
	const char *name; /* the nearest so far */
	size_t distance;
	const char *longer; /* the first that begins with the word */
	size_t n_longer;
};

/* `word` and all names are borrowed. */
void sp_nearest_init(struct sp_nearest *nearest, const char *word);

/* Capital letters are as good as others. */
void sp_nearest_try(struct sp_nearest *nearest, const char *name);

/* After all were tried; NULL: none is near. */
const char *sp_nearest_name(const struct sp_nearest *nearest);

/* What another tool's word is called here, or NULL.  `of` is what the word is
 * to be: "command", "format", or, of its options, a command. */
const char *sp_nearest_elsewhere(const char *of, const char *word);
