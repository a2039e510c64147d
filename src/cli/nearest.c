/* SPDX-License-Identifier: MIT */
#include "cli/nearest.h"

#include <string.h>

/* No name of ours is longer. */
#define LENGTH_MAX   31
#define DISTANCE_MAX 2

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Damerau and Levenshtein's, in which no letter is moved twice; only for words
 * of at most LENGTH_MAX bytes. */
static size_t edit_distance(const char *a, const char *b)
{
	const size_t a_len = strlen(a), b_len = strlen(b);
	size_t d[LENGTH_MAX + 1][LENGTH_MAX + 1];

	for (size_t i = 0; i <= a_len; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= b_len; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		for (size_t j = 1; j <= b_len; j++) {
			size_t least = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			least = min_size(least, d[i - 1][j] + 1);
			least = min_size(least, d[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				least = min_size(least, d[i - 2][j - 2] + 1);
			d[i][j] = least;
		}
	}
	return d[a_len][b_len];
}

void sp_nearest_init(struct sp_nearest *nearest, const char *word)
{
	*nearest =
		(struct sp_nearest){.word = word, .distance = DISTANCE_MAX + 1};
}

void sp_nearest_try(struct sp_nearest *nearest, const char *name)
{
	const size_t len = strlen(nearest->word);
	size_t distance;

	if (len > LENGTH_MAX || strlen(name) > LENGTH_MAX)
		return;
	if (len && strncmp(name, nearest->word, len) == 0 &&
	    !nearest->n_longer++)
		nearest->longer = name;
	distance = edit_distance(nearest->word, name);
	/* Nothing is known of a word in which half of the letters are wrong,
	 * or the only one. */
	if (distance >= nearest->distance || distance >= len ||
	    (distance > 1 && 2 * distance >= len))
		return;
	nearest->distance = distance;
	nearest->name = name;
}

const char *sp_nearest_name(const struct sp_nearest *nearest)
{
	return nearest->n_longer == 1 ? nearest->longer : nearest->name;
}
