/* SPDX-License-Identifier: MIT */
#include "text/cutname.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/operator.h"

/* Either has as many bytes. */
static const char *const texts[] = {
	[SP_CUT_ASCII] = "...", [SP_CUT_UTF8] = "\u2026"};
#define N_DOTS 3u

/* Behind a module, for a function without a name. */
#define UNNAMED "![unknown]"

/* Where the home of a function begins (symbols/home.h). */
#define HOME " [in "

static size_t dots_columns(enum sp_cut_dots dots)
{
	return dots == SP_CUT_ASCII ? 3 : 1;
}

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

/* Bytes at `at` that are no bracket though they look so: of "operator<", of
 * "->", of " < " between the functions of a path; or whose content tells which
 * function it is: " [in a.c]". */
static size_t find_symbol(const char *name, size_t at)
{
	const bool is_word_start =
		!at || !(name[at - 1] == '_' ||
			 (name[at - 1] >= '0' && name[at - 1] <= '9') ||
			 (name[at - 1] >= 'A' && name[at - 1] <= 'Z') ||
			 (name[at - 1] >= 'a' && name[at - 1] <= 'z'));
	const size_t n = is_word_start ? sp_operator_bytes(name + at) : 0;

	if (n)
		return n;
	if (strncmp(name + at, "->", 2) == 0)
		return 2;
	if (strncmp(name + at, HOME, strlen(HOME)) == 0 &&
	    strchr(name + at, ']'))
		return strcspn(name + at, "]") + 1;
	return strncmp(name + at, " < ", 3) == 0 ? 3 : 0;
}

/* 1 of each bracket that opens, -1 of each that closes, 0 of other bytes, also
 * of brackets without the other one.  To be freed; NULL without memory. */
static signed char *find_brackets(const char *name)
{
	signed char *steps = calloc(strlen(name) + 1, sizeof(*steps));
	size_t depth = 0, n = 0, closing = 0;

	for (; steps && name[n]; n++) {
		const size_t skipped = find_symbol(name, n);

		if (skipped) {
			n += skipped - 1;
			continue;
		}
		if (strchr("<([{", name[n]))
			steps[n] = 1;
		else if (depth && strchr(">)]}", name[n]))
			steps[n] = -1;
		depth += (size_t)steps[n];
	}
	for (; steps && depth && n--;) {
		closing += steps[n] < 0;
		if (steps[n] <= 0)
			continue;
		if (closing) {
			closing--;
		} else {
			steps[n] = 0;
			depth--;
		}
	}
	return steps;
}

static size_t deepest_bracket(const char *name, const signed char *steps)
{
	size_t depth = 0, most = 0;

	for (size_t i = 0; name[i]; i++) {
		depth += (size_t)steps[i];
		most = depth > most ? depth : most;
	}
	return most;
}

/* Dots for what brackets of that depth hold, in both texts. */
static void empty_brackets(char *name, signed char *steps, size_t level,
			   const char *dots)
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

static void cut_brackets(char *name, size_t columns, enum sp_cut_dots dots)
{
	signed char *steps =
		is_longer(name, columns) ? find_brackets(name) : NULL;

	for (size_t level = steps ? deepest_bracket(name, steps) : 0;
	     level && is_longer(name, columns); level--)
		empty_brackets(name, steps, level, texts[dots]);
	free(steps);
}

/* ---- scopes and characters ---- */

/* Where the "::" of a scope is that can follow the dots so that no more than
 * `columns` are needed; the last one, if there is none.  0 if all come before
 * `from`. */
static size_t find_scope(const char *name, const signed char *steps,
			 size_t from, size_t columns)
{
	size_t depth = 0, found = 0;

	for (size_t i = 0; name[i]; i++) {
		depth += (size_t)steps[i];
		if (depth || i < from || strncmp(name + i, "::", 2) != 0)
			continue;
		found = i++;
		if (!is_longer(name + found, columns))
			break;
	}
	return found;
}

/* How much of the beginning has no more columns, and no bracket that closes
 * later. */
static size_t find_begin(const char *name, const signed char *steps,
			 size_t columns)
{
	size_t depth = 0, found = 0;

	for (size_t i = 0; name[i]; i++) {
		if (is_start(name[i]) && !depth)
			found = i;
		if (is_start(name[i]) && !columns--)
			break;
		depth += (size_t)steps[i];
	}
	return found;
}

/* "a::b::c::d" to "a::...::d"; to "a...::d" if that is still too long. */
static void cut_scopes(char *name, size_t columns, enum sp_cut_dots dots)
{
	const size_t room = columns - dots_columns(dots);
	signed char *steps = find_brackets(name);
	const size_t first = steps ? find_scope(name, steps, 0, SIZE_MAX) : 0;
	size_t begin = first + 2, end = 0, n = 0;

	if (first && count_columns(name, begin) < room)
		end = find_scope(name, steps, begin + N_DOTS,
				 room - count_columns(name, begin));
	if (end)
		n = count_columns(name, begin) +
		    count_columns(name + end, strlen(name + end));
	if (first && (!end || n > room)) {
		end = find_scope(name, steps, N_DOTS, room);
		n = count_columns(name + end, strlen(name + end));
		begin = n < room ? find_begin(name, steps, room - n) : 0;
	}
	free(steps);
	if (!end)
		return;
	memmove(name + begin + N_DOTS, name + end, strlen(name + end) + 1);
	memcpy(name + begin, texts[dots], N_DOTS);
}

/* Let the part from *begin to *end grow until its brackets match: those that it
 * cuts go as a whole.  They hold no more than dots. */
static void widen_to_brackets(const char *name, size_t *begin, size_t *end)
{
	signed char *steps = find_brackets(name);
	size_t depth = 0, least = SIZE_MAX, at_begin = 0;

	if (!steps)
		return;
	for (size_t i = 0; i <= *end; depth += (size_t)steps[i++]) {
		if (i == *begin)
			at_begin = depth;
		if (i >= *begin && depth < least)
			least = depth;
	}
	depth -= (size_t)steps[*end];
	while (at_begin > least)
		at_begin -= (size_t)steps[--*begin];
	while (depth > least)
		depth += (size_t)steps[(*end)++];
	free(steps);
}

/* Two thirds of what is left are the end, where the function is; all of it if
 * the beginning has gone. */
static void cut_characters(char *name, size_t columns, enum sp_cut_dots dots)
{
	const size_t room = columns - dots_columns(dots);
	const bool has_begin = strncmp(name, texts[dots], N_DOTS) != 0;
	const size_t n_begin = has_begin ? room / 3 : 0;
	size_t left = count_columns(name, strlen(name)) - n_begin;
	size_t begin = 0, end, n = 0;

	while (n < n_begin || !is_start(name[begin]))
		n += is_start(name[begin++]);
	for (end = begin; left > room - n_begin || !is_start(name[end]);)
		left -= is_start(name[end++]);
	widen_to_brackets(name, &begin, &end);
	memmove(name + begin + N_DOTS, name + end, strlen(name + end) + 1);
	memcpy(name + begin, texts[dots], N_DOTS);
}

static void cut_name(char *name, size_t columns, enum sp_cut_dots dots)
{
	cut_brackets(name, columns, dots);
	if (is_longer(name, columns))
		cut_scopes(name, columns, dots);
	if (is_longer(name, columns))
		cut_characters(name, columns, dots);
}

/* Take the outermost callers from a path that is longer, so that dots fit
 * behind it, too, if it can be: true. */
static bool cut_callers(char *name, size_t columns, size_t n_dots)
{
	size_t end = 0;

	for (size_t i = 0; is_longer(name, columns) && name[i]; i++) {
		const size_t n = find_symbol(name, i);

		if (n == 3 && name[i] == ' ' &&
		    (!end || count_columns(name, i) + n_dots <= columns))
			end = i;
		i += n ? n - 1 : 0;
	}
	if (end)
		name[end] = '\0';
	return end != 0;
}

/* Lightly: what tells which function it is stays, however long. */
static void cut_path(char *name, size_t columns, enum sp_cut_dots dots,
		     bool is_light)
{
	const size_t n_dots = 3 + dots_columns(dots);

	if (columns < n_dots + SP_CUT_NAME_MIN ||
	    !cut_callers(name, columns, n_dots))
		return;
	if (!is_light)
		cut_name(name, columns - n_dots, dots);
	if (is_longer(name, columns - n_dots))
		return;
	strcat(name, " < ");
	strcat(name, texts[dots]);
}

/* How much of the name is the module before "![unknown]", which stays: with
 * dots for what these brackets hold nothing would be told.  0: none, or no room
 * for both. */
static size_t find_unnamed(const char *name, size_t columns)
{
	const size_t n = strlen(name), n_end = strlen(UNNAMED);

	return n > n_end && columns >= n_end + SP_CUT_NAME_MIN &&
			       strcmp(name + n - n_end, UNNAMED) == 0
		       ? n - n_end
		       : 0;
}

char *sp_cut_name(const char *name, size_t columns, enum sp_cut_dots dots)
{
	const size_t most =
		columns < SP_CUT_NAME_MIN ? SP_CUT_NAME_MIN : columns;
	const size_t n_module = find_unnamed(name, most);
	char *cut = malloc(strlen(name) + N_DOTS + 1);

	if (!cut)
		return NULL;
	strcpy(cut, name);
	if (!n_module || !is_longer(name, most)) {
		cut_brackets(cut, most, dots);
		cut_path(cut, most, dots, false);
		cut_name(cut, most, dots);
		return cut;
	}
	cut[n_module] = '\0';
	cut_name(cut, most - strlen(UNNAMED), dots);
	strcat(cut, UNNAMED);
	return cut;
}

char *sp_cut_lightly(const char *name, size_t columns, enum sp_cut_dots dots)
{
	char *cut = malloc(strlen(name) + N_DOTS + 1);

	if (!cut)
		return NULL;
	strcpy(cut, name);
	if (find_unnamed(name, SIZE_MAX))
		return cut;
	cut_brackets(cut, columns, dots);
	cut_path(cut, columns, dots, true);
	return cut;
}

/* ---- names that stand on one page ---- */

/* How far a word around what differs may reach to either side. */
#define WORD_MAX 12

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z') || strchr("_#$", c) || !is_start(c) ||
	       ((unsigned char)c & 0x80);
}

/* The word around the bytes from `*begin` to `*end`, of which there is one
 * unless the name ends there. */
static void widen_to_word(const char *name, size_t *begin, size_t *end)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < WORD_MAX && *begin; i++, --*begin)
		if (!is_word(name[*begin - 1]))
			break;
	for (size_t i = 0; i < WORD_MAX && *end < n; i++, ++*end)
		if (!is_word(name[*end]))
			break;
	while (*begin && !is_start(name[*begin]))
		--*begin;
	while (*end < n && !is_start(name[*end]))
		++*end;
}

/* A part of a name, or its end, in that many columns.  To be freed; NULL
 * without memory. */
static char *cut_part(const char *name, size_t n, size_t columns,
		      enum sp_cut_dots dots)
{
	char *part = malloc(n + N_DOTS + 1);

	if (!part)
		return NULL;
	memcpy(part, name, n);
	part[n] = '\0';
	if (columns >= SP_CUT_NAME_MIN) {
		cut_brackets(part, columns, dots);
		if (!name[n])
			cut_path(part, columns, dots, false);
		cut_name(part, columns, dots);
	}
	if (is_longer(part, columns))
		strcpy(part, texts[dots]);
	return part;
}

/* The name with what stands from `begin` to `end`, where others of the same cut
 * differ.  NULL without memory, or without room for that. */
static char *cut_around(const char *name, size_t columns, size_t begin,
			size_t end, enum sp_cut_dots dots)
{
	const size_t n_dots = dots_columns(dots);
	const size_t n_before = count_columns(name, begin);
	const size_t n_word = count_columns(name + begin, end - begin);
	const size_t room = n_word < columns ? columns - n_word : 0;
	/* two thirds are the end, as always */
	const size_t third = room / 3 < n_dots ? n_dots : room / 3;
	char *before, *behind, *cut = NULL;

	if (room < 2 * n_dots)
		return NULL;
	behind = cut_part(name + end, strlen(name + end),
			  room - (n_before < third ? n_before : third), dots);
	before = behind ? cut_part(name, begin,
				   room - count_columns(behind, strlen(behind)),
				   dots)
			: NULL;
	if (before && asprintf(&cut, "%s%.*s%s", before, (int)(end - begin),
			       name + begin, behind) < 0)
		cut = NULL;
	free(before);
	free(behind);
	return cut;
}

/* The name as it is cut alone, with a number.  NULL without memory or room. */
static char *cut_numbered(const char *name, size_t columns, size_t number,
			  enum sp_cut_dots dots)
{
	char end[32], *alone, *cut = NULL;
	const int n = snprintf(end, sizeof(end), " [%zu]", number);

	if (columns < SP_CUT_NAME_MIN + (size_t)n)
		return NULL;
	alone = sp_cut_name(name, columns - (size_t)n, dots);
	if (alone && asprintf(&cut, "%s%s", alone, end) < 0)
		cut = NULL;
	free(alone);
	return cut;
}

/* What is shown of it. */
static const char *text_of(const struct sp_cut *cut)
{
	return cut->text ? cut->text : cut->name;
}

static int compare_cuts(const void *a, const void *b)
{
	const struct sp_cut *x = *(struct sp_cut *const *)a;
	const struct sp_cut *y = *(struct sp_cut *const *)b;
	const int r = strcmp(text_of(x), text_of(y));

	return r ? r : strcmp(x->name, y->name);
}

static size_t same_bytes(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* What is kept of names that were cut to one text. */
enum keeps {
	AS_ALONE,         /* by sp_cut_name(), after sp_cut_lightly() */
	LAST_DIFFERENCE,  /* from the name that it is like longest */
	EVERY_DIFFERENCE, /* and from all others */
	ONCE_MORE,        /* what was cut then may be the same again */
	NUMBERED,         /* there is no room for where they differ */
	ALL,
	N_KEEPS
};

/* Of names of one text, sorted: those that are `n` times the first. */
static size_t count_same(struct sp_cut *const *cuts, size_t n)
{
	size_t same = 1;

	while (same < n && strcmp(cuts[same]->name, cuts[0]->name) == 0)
		same++;
	return same;
}

static void cut_group(struct sp_cut *const *cuts, size_t n, enum keeps keeps,
		      enum sp_cut_dots dots, size_t *number)
{
	const size_t first = same_bytes(cuts[0]->name, cuts[n - 1]->name);
	size_t before = 0, behind, same;

	for (; n; ++*number, cuts += same, n -= same, before = behind) {
		const char *name = cuts[0]->name;
		size_t begin, end;

		same = count_same(cuts, n);
		behind = same < n ? same_bytes(name, cuts[same]->name) : 0;
		end = before > behind ? before : behind;
		begin = keeps == LAST_DIFFERENCE ? end : first;
		end += name[end] != '\0';
		widen_to_word(name, &begin, &end);
		for (size_t i = 0; i < same; i++) {
			struct sp_cut *cut = cuts[i];
			char *text = NULL;

			if (cut->end && cut->begin < begin)
				begin = cut->begin;
			if (cut->end > end)
				end = cut->end;
			if (keeps == AS_ALONE)
				text = sp_cut_name(name, cut->columns, dots);
			else if (keeps == NUMBERED)
				text = cut_numbered(name, cut->columns, *number,
						    dots);
			else if (keeps != ALL)
				text = cut_around(name, cut->columns, begin,
						  end, dots);
			if (keeps != AS_ALONE) {
				cut->begin = begin;
				cut->end = end;
			}
			if (!text && keeps != ALL)
				continue;
			free(cut->text);
			cut->text = text;
		}
	}
}

void sp_cut_apart(struct sp_cut *cuts, size_t n, enum sp_cut_dots dots)
{
	struct sp_cut **sorted = calloc(n + 1, sizeof(struct sp_cut *));
	size_t first, same, number = 1;

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = &cuts[i];
	for (int keeps = 0; sorted && keeps < N_KEEPS; keeps++) {
		number = 1;
		qsort(sorted, n, sizeof(struct sp_cut *), compare_cuts);
		for (first = 0; first < n; first += same) {
			const char *text = text_of(sorted[first]);

			for (same = 1; first + same < n; same++)
				if (strcmp(text, text_of(sorted[first + same])))
					break;
			if (count_same(sorted + first, same) < same)
				cut_group(sorted + first, same,
					  (enum keeps)keeps, dots, &number);
		}
	}
	free(sorted);
}
