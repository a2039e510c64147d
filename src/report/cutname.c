/* SPDX-License-Identifier: MIT */
#include "report/cutname.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "text/text.h"

static const char dots[] = "...";
#define N_DOTS (sizeof(dots) - 1)

static bool is_start(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t count_columns(const char *text, size_t n)
{
	size_t columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += is_start(text[i]);
	return columns;
}

static bool is_longer(const char *text, size_t columns)
{
	return count_columns(text, strlen(text)) > columns;
}

/* ---- brackets ---- */

/* 1 of each bracket that opens, -1 of each that closes, 0 of other bytes, of
 * "operator<" and of "->".  To be freed; NULL without memory, or if they do not
 * match. */
static signed char *find_brackets(const char *name)
{
	signed char *steps = calloc(strlen(name) + 1, sizeof(*steps));
	size_t depth = 0;

	for (size_t i = 0; steps && name[i]; i++) {
		const size_t n = sp_demangle_operator(name + i);

		if (n || strncmp(name + i, "->", 2) == 0) {
			i += n ? n - 1 : 1;
			continue;
		}
		steps[i] = (signed char)((strchr("<([{", name[i]) != NULL) -
					 (strchr(">)]}", name[i]) != NULL));
		if (steps[i] < 0 && !depth--) {
			free(steps);
			return NULL;
		}
		depth += steps[i] > 0;
	}
	if (!depth)
		return steps;
	free(steps);
	return NULL;
}

static size_t deepest(const char *name, const signed char *steps)
{
	size_t depth = 0, most = 0;

	for (size_t i = 0; name[i]; i++) {
		depth += (size_t)steps[i];
		most = depth > most ? depth : most;
	}
	return most;
}

/* Dots for what brackets of that depth hold, in both texts. */
static void empty_brackets(char *name, signed char *steps, size_t level)
{
	size_t depth = 0, n = 0, open = 0;

	for (size_t i = 0; name[i]; i++) {
		const signed char step = steps[i];
		const char c = name[i];

		if (step < 0 && depth-- == level && n - open > N_DOTS) {
			memcpy(name + open, dots, N_DOTS);
			memset(steps + open, 0, N_DOTS);
			n = open + N_DOTS;
		}
		name[n] = c;
		steps[n++] = step;
		if (step > 0 && ++depth == level)
			open = n;
	}
	name[n] = '\0';
}

/* ---- scopes and characters ---- */

/* "a::b::c::d" to "a::...::d", or "...::d" if that is still too long. */
static void cut_scopes(char *name, const signed char *steps, size_t columns)
{
	size_t first = 0, last = 0, depth = 0;

	for (size_t i = 0; name[i]; i++) {
		depth += (size_t)steps[i];
		if (depth || strncmp(name + i, "::", 2) != 0)
			continue;
		first = first ? first : i + 2;
		last = i;
	}
	if (last < first + N_DOTS)
		return;
	if (count_columns(name, first) + N_DOTS +
		    count_columns(name + last, strlen(name + last)) >
	    columns)
		first = 0;
	memcpy(name + first, dots, N_DOTS);
	memmove(name + first + N_DOTS, name + last, strlen(name + last) + 1);
}

/* Two thirds of what is left are the end, where the function is; all of it if
 * the beginning has gone. */
static void cut_characters(char *name, size_t columns)
{
	const bool has_begin = strncmp(name, dots, N_DOTS) != 0;
	const size_t n_begin = has_begin ? (columns - N_DOTS) / 3 : 0;
	size_t left = count_columns(name, strlen(name)) - n_begin;
	size_t begin = 0, end, n = 0;

	while (n < n_begin || !is_start(name[begin]))
		n += is_start(name[begin++]);
	for (end = begin;
	     left > columns - N_DOTS - n_begin || !is_start(name[end]);)
		left -= is_start(name[end++]);
	memcpy(name + begin, dots, N_DOTS);
	memmove(name + begin + N_DOTS, name + end, strlen(name + end) + 1);
}

char *sp_cut_name(const char *name, size_t columns)
{
	const size_t most =
		columns < SP_CUT_NAME_MIN ? SP_CUT_NAME_MIN : columns;
	char *cut = strdup(name);
	signed char *steps = cut && columns ? find_brackets(cut) : NULL;

	if (!cut || !columns)
		return cut;
	if (steps) {
		for (size_t level = deepest(cut, steps);
		     level && is_longer(cut, most); level--)
			empty_brackets(cut, steps, level);
		if (is_longer(cut, most))
			cut_scopes(cut, steps, most);
	}
	if (is_longer(cut, most))
		cut_characters(cut, most);
	free(steps);
	return cut;
}

void sp_cut_name_print(FILE *out, const char *name, size_t columns)
{
	char *text = NULL, *cut = NULL;
	size_t size;
	FILE *whole = columns ? open_memstream(&text, &size) : NULL;

	if (whole) {
		sp_text_print(whole, name);
		if (fclose(whole) == 0)
			cut = sp_cut_name(text, columns);
	}
	/* all of it without memory */
	if (cut)
		fputs(cut, out);
	else
		sp_text_print(out, name);
	free(cut);
	free(text);
}
