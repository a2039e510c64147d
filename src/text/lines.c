/* SPDX-License-Identifier: MIT */
#include "text/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Where a line that begins at the margin goes on: below the limit. */
#define INSIDE 14

size_t sp_lines_bytes(const char *text, size_t columns)
{
	size_t i = 0;

	while (text[i] && (columns || (text[i] & 0xc0) == 0x80))
		columns -= (text[i++] & 0xc0) != 0x80;
	return i;
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
		    (line[i + 1] == '(' || line[i - 1] == ','))
			return i;
	while (end > begin && line[end] != ' ')
		end--;
	if (end > begin)
		return end;
	end = fits + strcspn(line + fits, " ");
	return line[end] ? end : 0;
}

static void print_line(FILE *out, const char *line)
{
	const bool is_note = strncmp(line, "note: ", 6) == 0;
	const size_t inside = *line == ' ' ? strspn(line, " ") + 2
			      : is_note    ? 6
					   : INSIDE;
	size_t before = 0;

	for (;;) {
		size_t fits = sp_lines_bytes(line, SP_LINES_WIDTH - before);
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

int sp_lines_close(FILE *out, FILE *text, char **lines)
{
	char *rest, *line;

	if (fclose(text) != 0) {
		free(*lines);
		return -ENOMEM;
	}
	rest = *lines;
	while ((line = strsep(&rest, "\n")))
		if (rest)
			print_line(out, line);
	free(*lines);
	return 0;
}
