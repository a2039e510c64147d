/* SPDX-License-Identifier: MIT */
#include "text/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text/cutname.h"
#include "text/text.h"

/* Where a line that begins at the margin goes on: below the limit. */
#define INSIDE 14

/* Around a name that may be cut.  No text has them: sp_text_print() writes
 * controls as \xNN. */
#define NAME_BEGIN '\1'
#define NAME_END   '\2'

/* What a line has room for at most, and what a cut leaves of a name at least.
 */
#define NAMES_MAX    4
#define NAME_COLUMNS SP_CUT_NAME_MIN

static unsigned int terminal_columns; /* 0: no terminal */
static unsigned int terminal_rows;
static bool marks_names;

void sp_lines_set_terminal(unsigned int columns)
{
	terminal_columns = columns;
}

void sp_lines_set_rows(unsigned int rows)
{
	terminal_rows = rows;
}

unsigned int sp_lines_rows(void)
{
	return terminal_rows;
}

unsigned int sp_lines_columns(void)
{
	return terminal_columns ? terminal_columns : SP_LINES_WIDTH;
}

bool sp_lines_is_terminal(void)
{
	return terminal_columns != 0;
}

void sp_lines_print_name(FILE *out, const char *name)
{
	if (marks_names)
		putc(NAME_BEGIN, out);
	sp_text_print(out, name);
	if (marks_names)
		putc(NAME_END, out);
}

void sp_lines_unmark(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != NAME_BEGIN && *text != NAME_END)
			*to++ = *text;
	*to = '\0';
}

size_t sp_lines_bytes(const char *text, size_t columns)
{
	size_t i = 0;

	while (text[i]) {
		const bool is_colour = text[i] == '\033';

		if (!is_colour && !columns && (text[i] & 0xc0) != 0x80)
			break;
		if (is_colour)
			i += strcspn(text + i, "m");
		else
			columns -= (text[i] & 0xc0) != 0x80;
		i += text[i] != '\0';
	}
	return i;
}

void sp_lines_print_whole(FILE *out, const char *text)
{
	/* A name that has nothing to cut. */
	sp_lines_print_name(out, "");
	fputs(text, out);
}

/* Is it between the limits of an interval?  A sequence for the terminal has a
 * bracket, too. */
static bool is_in_brackets(const char *line, size_t at)
{
	while (at && line[at] != '[' && line[at] != ']')
		at--;
	return line[at] == '[' && !(at && line[at - 1] == '\033');
}

/* Where to break a line of which that many bytes fit: at its last blank, or, if
 * it is of figures, one in the second half that a number does not go on behind;
 * 0: nowhere. */
static size_t break_of(const char *line, size_t fits, bool is_of_figures)
{
	const size_t begin = strspn(line, " ");
	size_t end = fits;

	for (size_t i = fits; is_of_figures && i > begin && i > fits / 2; i--)
		if (line[i] == ' ' &&
		    (line[i + 1] == '(' || line[i - 1] == ',') &&
		    !is_in_brackets(line, i))
			return i;
	while (end > begin && (line[end] != ' ' || is_in_brackets(line, end)))
		end--;
	if (end > begin)
		return end;
	end = fits + strcspn(line + fits, " ");
	return line[end] ? end : 0;
}

/* With the sequence that colours its first word, or without. */
static bool starts_note(const char *line)
{
	if (*line == '\033')
		line += strcspn(line, "m") + 1;
	return strncmp(line, "note:", 5) == 0 || strncmp(line, "  - ", 4) == 0;
}

static void print_line(FILE *out, const char *line, size_t width)
{
	const bool is_note = starts_note(line);
	size_t inside = *line == ' ' ? strspn(line, " ") + 2
			: is_note    ? 6
				     : INSIDE;
	size_t before = 0;

	if (inside > width / 2)
		inside = width / 2;
	for (;;) {
		size_t fits = sp_lines_bytes(line, width - before);
		const size_t end =
			line[fits] ? break_of(line, fits, !is_note) : 0;

		if (!end)
			break;
		fits = end;
		while (fits && line[fits - 1] == ' ')
			fits--;
		fprintf(out, "%*s%.*s\n", (int)before, "", (int)fits, line);
		line += end + strspn(line + end, " ");
		before = inside;
	}
	fprintf(out, "%*s%s\n", (int)before, "", line);
}

/* ---- pages: lines with names ---- */

struct name {
	const char *text; /* in the line */
	size_t bytes;
	size_t columns;
	size_t shown; /* columns that are left */
};

/* Columns of so many bytes: one for each character.  Neither the marks nor the
 * sequences that colour a terminal have any. */
static size_t columns_of(const char *text, size_t n)
{
	size_t columns = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\033')
			i += strcspn(text + i, "m");
		else if (text[i] != NAME_BEGIN && text[i] != NAME_END)
			columns += (text[i] & 0xc0) != 0x80;
	}
	return columns;
}

static size_t find_names(const char *line, struct name *names)
{
	size_t n = 0;

	for (const char *p = line; n < NAMES_MAX && (p = strchr(p, NAME_BEGIN));
	     n++) {
		struct name *name = &names[n];

		name->text = ++p;
		name->bytes = strcspn(p, (const char[]){NAME_END, '\0'});
		name->columns = columns_of(p, name->bytes);
		name->shown = name->columns;
	}
	return n;
}

/* The longest gives first.  What is still too much. */
static size_t shorten_names(struct name *names, size_t n, size_t excess)
{
	for (; n && excess; excess--) {
		struct name *longest = names;

		for (size_t i = 1; i < n; i++)
			if (names[i].shown > longest->shown)
				longest = &names[i];
		if (longest->shown <= NAME_COLUMNS)
			break;
		longest->shown--;
	}
	return excess;
}

static void print_short_name(FILE *out, const struct name *name)
{
	char *text = name->shown < name->columns
			     ? strndup(name->text, name->bytes)
			     : NULL;
	char *cut = text ? sp_cut_name(text, name->shown,
				       sp_text_is_ascii() ? SP_CUT_ASCII
							  : SP_CUT_UTF8)
			 : NULL;

	/* all of it without memory */
	if (cut)
		fputs(cut, out);
	else
		fwrite(name->text, 1, name->bytes, out);
	free(cut);
	free(text);
}

static void print_names(FILE *out, const char *line, const struct name *names,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fwrite(line, 1, (size_t)(names[i].text - 1 - line), out);
		print_short_name(out, &names[i]);
		line = names[i].text + names[i].bytes + 1;
	}
	fputs(line, out);
}

/* Short names do not help: it goes on below. */
static void break_names(FILE *out, const char *line, const struct name *names,
			size_t n)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return;
	print_names(stream, line, names, n);
	if (fclose(stream) == 0)
		print_line(out, text, sp_lines_columns());
	free(text);
}

static void print_page_line(FILE *out, const char *line)
{
	const size_t width = sp_lines_columns();
	const size_t columns = columns_of(line, strlen(line));
	const size_t excess = columns > width ? columns - width : 0;
	struct name names[NAMES_MAX];
	const size_t n = find_names(line, names);
	const bool is_whole = n && !names[0].columns;

	if (!n && excess) {
		print_line(out, line, width);
	} else if (terminal_columns && !is_whole &&
		   shorten_names(names, n, excess)) {
		break_names(out, line, names, n);
	} else {
		print_names(out, line, names, n);
		putc('\n', out);
	}
}

static int close_lines(FILE *out, FILE *text, char **lines, bool is_page)
{
	char *rest, *line;

	if (fclose(text) != 0) {
		free(*lines);
		return -ENOMEM;
	}
	rest = *lines;
	while ((line = strsep(&rest, "\n"))) {
		if (rest && is_page)
			print_page_line(out, line);
		else if (rest)
			print_line(out, line, SP_LINES_WIDTH);
	}
	free(*lines);
	return 0;
}

size_t sp_lines_count(const char *text)
{
	char *copy = strdup(text), *rest = copy, *shown = NULL, *line;
	size_t size, n = 0;
	FILE *out = copy ? open_memstream(&shown, &size) : NULL;

	while (out && (line = strsep(&rest, "\n")))
		if (rest)
			print_page_line(out, line);
	if (out && fclose(out) == 0)
		for (const char *at = shown; (at = strchr(at, '\n')); at++)
			n++;
	free(shown);
	free(copy);
	return n;
}

int sp_lines_close(FILE *out, FILE *text, char **lines)
{
	return close_lines(out, text, lines, false);
}

void sp_lines_begin_page(void)
{
	marks_names = true;
}

int sp_lines_close_page(FILE *out, FILE *text, char **lines)
{
	marks_names = false;
	return close_lines(out, text, lines, true);
}
