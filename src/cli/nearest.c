/* SPDX-License-Identifier: MIT */
#include "cli/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* No name of ours is longer. */
#define LENGTH_MAX   31
#define DISTANCE_MAX 2

static const struct {
	const char *of, *word, *here;
} elsewhere[] = {
	{"command", "record", "run"},
	{"command", "trace", "run"},
	{"command", "stop", "detach"},
	{"command", "show", "report"},
	{"command", "view", "report"},
	{"command", "summary", "report"},
	{"command", "analyze", "report"},
	{"command", "script", "traces"},
	{"command", "annotate", "list"},
	{"command", "compare", "diff"},
	{"command", "html", "export html"},
	{"command", "web", "export html"},
	{"command", "flamegraph", "export html"},
	{"format", "svg", "html"},
	{"format", "flamegraph", "html"},
	{"format", "folded", "collapsed"},
	{"format", "heap", "heap_v2"},
	{"format", "jeprof", "heap_v2"},
	{"format", "proto", "pprof"},
	{"format", "ndjson", "jsonl"},
	{"format", "text", "csv"},
	{"run", "o", "--out"},
	{"run", "output", "--out"},
	{"run", "p", "sampleprof attach PID"},
	{"run", "pid", "sampleprof attach PID"},
	{"attach", "o", "--out"},
	{"attach", "output", "--out"},
	{"attach", "pid", "sampleprof attach PID"},
	{"report", "p", "sampleprof attach PID"},
	{"report", "pid", "sampleprof attach PID"},
	{"report", "n", "--top"},
	{"report", "limit", "--top"},
	{"report", "format", "--json or --csv"},
	{"check", "threshold", "--limit"},
	{"export", "format", "sampleprof export html FILE"},
	{"serve", "port", "--listen 127.0.0.1:PORT"},
};

const char *sp_nearest_elsewhere(const char *of, const char *word)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (strcasecmp(elsewhere[i].word, word) == 0 &&
		    strcmp(elsewhere[i].of, of) == 0)
			return elsewhere[i].here;
	return NULL;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool are_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
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
			size_t least =
				d[i - 1][j - 1] + !are_same(a[i - 1], b[j - 1]);

			least = min_size(least, d[i - 1][j] + 1);
			least = min_size(least, d[i][j - 1] + 1);
			if (i > 1 && j > 1 && are_same(a[i - 1], b[j - 2]) &&
			    are_same(a[i - 2], b[j - 1]))
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
	if (len && strncasecmp(name, nearest->word, len) == 0 &&
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
