/* SPDX-License-Identifier: MIT */
#include "text/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text/cutname.h"
#include "text/style.h"
#include "text/text.h"

/* Where a line that begins at the margin goes on: below the limit. */
#define INSIDE 14

/* Around a name that may be cut.  No text has them: sp_text_print() writes
 * controls as \xNN. */
#define NAME_BEGIN '\1'
#define NAME_END   '\2'

/* Of a line that goes on below for less than that, all is shown. */
#define BRIEF_REST 12

/* What a line has room for at most, and what a cut leaves of a name at least.
 */
#define NAMES_MAX    4
#define NAME_COLUMNS SP_CUT_NAME_MIN

static unsigned int terminal_columns; /* 0: no terminal */
static unsigned int terminal_rows;
static bool marks_names;
static bool cuts_names; /* also where there is no terminal */
static bool is_brief;   /* lines end where they would go on below */

void sp_lines_set_terminal(unsigned int columns)
{
	terminal_columns = columns;
	cuts_names = columns != 0;
}

void sp_lines_set_rows(unsigned int rows)
{
	terminal_rows = rows;
}

void sp_lines_set_brief(bool is_wanted)
{
	is_brief = is_wanted;
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

/* Bytes of the command that fit, up to a blank between two words; all of them
 * if there is none. */
static size_t fitting_words(const char *text, size_t columns)
{
	size_t end = 0, i = 0;
	bool is_quoted = false;

	for (; text[i] && (i < columns || !end); i++) {
		is_quoted ^= text[i] == '\'' && !(i && text[i - 1] == '\\');
		if (text[i] == ' ' && !is_quoted)
			end = i;
	}
	return text[i] && end ? end : strlen(text);
}

void sp_lines_print_command(FILE *out, size_t before, const char *text,
			    const char *why)
{
	const size_t columns = sp_lines_columns();
	const int indent = (int)before + 2;
	size_t n;

	while (strlen(text) + before > columns &&
	       text[n = fitting_words(text, columns - before - 2)]) {
		sp_lines_print_whole(out, "");
		fprintf(out, "%.*s \\\n%*s", (int)n, text, indent, "");
		text += n + 1;
		before = (size_t)indent;
	}
	sp_lines_print_whole(out, text);
	if (*why &&
	    before + strlen(text) + strlen("  # ") + strlen(why) <= columns) {
		sp_style_begin(out, SP_STYLE_QUIET);
		fprintf(out, "  # %s", why);
		sp_style_begin(out, SP_STYLE_PLAIN);
	}
	putc('\n', out);
}

/* Columns of so many bytes: one for each character.  Neither the marks nor the
 * sequences that colour a terminal have any. */
static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text; text++) {
		if (*text == '\033' && !text[strcspn(text, "m")])
			break;
		if (*text == '\033')
			text += strcspn(text, "m");
		else if (*text != NAME_BEGIN && *text != NAME_END)
			columns += (*text & 0xc0) != 0x80;
	}
	return columns;
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

/* Dots instead of what does not fit, behind a word. */
static void print_beginning(FILE *out, const char *line, size_t width)
{
	const char *dots = sp_text_is_ascii() ? "..." : "\u2026";
	size_t end = sp_lines_bytes(line, width - strlen(" ..."));

	end = break_of(line, end, false);
	fprintf(out, "%.*s %s", (int)end, line, dots);
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc('\n', out);
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
		if (is_brief && !before &&
		    columns_of(line + end) > BRIEF_REST) {
			print_beginning(out, line, width);
			return;
		}
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

/* A line, and what is shown of its names, which are cut out of it. */
struct line {
	const char *part[NAMES_MAX + 1]; /* around the names */
	struct sp_cut *names;
	size_t n_names;
	bool is_whole; /* neither broken nor cut */
};

static void find_names(char *text, struct line *line, struct sp_cut *names)
{
	line->part[0] = text;
	line->names = names;
	for (; line->n_names < NAMES_MAX && (text = strchr(text, NAME_BEGIN));
	     line->n_names++) {
		struct sp_cut *name = &names[line->n_names];

		*text++ = '\0';
		name->name = text;
		text += strcspn(text, (const char[]){NAME_END, '\0'});
		*text++ = '\0';
		line->part[line->n_names + 1] = text;
		name->columns = columns_of(name->name);
	}
	line->is_whole = line->n_names && !names[0].columns;
}

/* The longest gives first. */
static void shorten_names(struct sp_cut *names, size_t n, size_t excess)
{
	for (; n && excess; excess--) {
		struct sp_cut *longest = names;

		for (size_t i = 1; i < n; i++)
			if (names[i].columns > longest->columns)
				longest = &names[i];
		if (longest->columns <= NAME_COLUMNS)
			break;
		longest->columns--;
	}
}

/* All of them without memory. */
static void cut_names(struct sp_cut *names, size_t n, enum sp_cut_dots dots)
{
	for (size_t i = 0; i < n; i++)
		if (names[i].columns < columns_of(names[i].name))
			names[i].text = (terminal_columns ? sp_cut_name
							  : sp_cut_lightly)(
				names[i].name, names[i].columns, dots);
}

static void lay_line_out(char *text, struct line *line, struct sp_cut *names,
			 enum sp_cut_dots dots)
{
	const size_t width = sp_lines_columns(), columns = columns_of(text);

	find_names(text, line, names);
	if (!cuts_names || line->is_whole || columns <= width)
		return;
	shorten_names(names, line->n_names, columns - width);
	cut_names(names, line->n_names, dots);
}

/* If short names do not help, it goes on below. */
static void print_page_line(FILE *out, const struct line *line)
{
	const bool is_broken =
		!line->n_names || (cuts_names && !line->is_whole);
	char *text = NULL;
	size_t size;
	FILE *to = is_broken ? open_memstream(&text, &size) : out;

	if (!to)
		return;
	for (size_t i = 0; i <= line->n_names; i++) {
		const struct sp_cut *cut = &line->names[i];

		fputs(line->part[i], to);
		if (i < line->n_names)
			fputs(cut->text ? cut->text : cut->name, to);
	}
	if (!is_broken)
		putc('\n', out);
	else if (fclose(to) == 0)
		print_line(out, text, sp_lines_columns());
	free(text);
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	while ((text = strchr(text, c))) {
		text++;
		n++;
	}
	return n;
}

/* It is changed by that. */
static int print_page(FILE *out, char *text)
{
	const enum sp_cut_dots dots = sp_text_is_ascii() || !terminal_columns
					      ? SP_CUT_ASCII
					      : SP_CUT_UTF8;
	const size_t n_lines = count(text, '\n');
	struct line *lines = calloc(n_lines + 1, sizeof(*lines));
	struct sp_cut *names =
		calloc(count(text, NAME_BEGIN) + 1, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; lines && names && i < n_lines; i++) {
		lay_line_out(strsep(&text, "\n"), &lines[i], &names[n], dots);
		n += lines[i].n_names;
	}
	if (lines && names) {
		sp_cut_apart(names, n, dots);
		for (size_t i = 0; i < n_lines; i++)
			print_page_line(out, &lines[i]);
	}
	for (size_t i = 0; i < n; i++)
		free(names[i].text);
	free(names);
	free(lines);
	return lines && names ? 0 : -ENOMEM;
}

static int close_lines(FILE *out, FILE *text, char **lines, bool is_page)
{
	char *rest, *line;
	int r = 0;

	if (fclose(text) != 0) {
		free(*lines);
		return -ENOMEM;
	}
	rest = *lines;
	if (is_page)
		r = print_page(out, rest);
	while (!is_page && (line = strsep(&rest, "\n")))
		if (rest)
			print_line(out, line, SP_LINES_WIDTH);
	free(*lines);
	return r;
}

size_t sp_lines_count(const char *text)
{
	char *copy = strdup(text), *shown = NULL;
	size_t size, n = 0;
	FILE *out = copy ? open_memstream(&shown, &size) : NULL;

	if (out)
		print_page(out, copy);
	if (out && fclose(out) == 0)
		n = count(shown, '\n');
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
	is_brief = false;
}

int sp_lines_close_page(FILE *out, FILE *text, char **lines)
{
	marks_names = false;
	return close_lines(out, text, lines, true);
}

int sp_lines_close_screen(FILE *out, FILE *text, char **lines)
{
	int r;

	cuts_names = true;
	r = sp_lines_close_page(out, text, lines);
	cuts_names = terminal_columns != 0;
	return r;
}
