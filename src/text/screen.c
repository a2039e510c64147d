/* SPDX-License-Identifier: MIT */
#include "text/screen.h"

#include <string.h>

/* Bytes of the first `columns` characters of a line of n bytes. */
static size_t cut_line(const char *line, size_t n, unsigned int columns)
{
	for (size_t i = 0; i < n; i++) {
		if (((unsigned char)line[i] & 0xc0) == 0x80)
			continue;
		if (!columns--)
			return i;
	}
	return n;
}

void sp_screen_draw(FILE *out, const char *text, unsigned int rows,
		    unsigned int columns)
{
	/* Drawn over the old text rather than cleared first: no flicker. */
	fputs("\033[H", out);
	for (unsigned int row = 0; row < rows && *text; row++) {
		size_t n = strcspn(text, "\n");

		/* No line end after the last row: it would scroll. */
		if (row)
			putc('\n', out);
		fwrite(text, 1, cut_line(text, n, columns), out);
		fputs("\033[K", out);
		text += n + (text[n] != '\0');
	}
	fputs("\033[J", out);
}
