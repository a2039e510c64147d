/* SPDX-License-Identifier: MIT */
#include "text/style.h"

#include "text/text.h"

static bool has_colours;

void sp_style_set_colours(bool wants_colours)
{
	has_colours = wants_colours;
}

void sp_style_begin(FILE *out, enum sp_style style)
{
	static const char *const codes[SP_STYLE_COUNT] = {
		[SP_STYLE_PLAIN] = "0",    [SP_STYLE_HEAD] = "1",
		[SP_STYLE_QUIET] = "2",    [SP_STYLE_WARNING] = "1;33",
		[SP_STYLE_LARGE] = "1;31", [SP_STYLE_SMALL] = "33",
	};

	if (has_colours)
		fprintf(out, "\033[%sm", codes[style]);
}

void sp_style_begin_note(FILE *out)
{
	sp_style_begin(out, SP_STYLE_WARNING);
	fputs("note:", out);
	sp_style_begin(out, SP_STYLE_PLAIN);
	putc(' ', out);
}

void sp_style_print_note(FILE *out, const char *text)
{
	sp_style_begin_note(out);
	fprintf(out, "%s\n", text);
}

void sp_style_begin_share(FILE *out, double share)
{
	sp_style_begin(out, share >= 0.1    ? SP_STYLE_LARGE
			    : share >= 0.01 ? SP_STYLE_SMALL
					    : SP_STYLE_PLAIN);
}

void sp_style_print_bar(FILE *out, double share)
{
	static const char *const eighths[] = {
		"",       "\u258f", "\u258e", "\u258d",
		"\u258c", "\u258b", "\u258a", "\u2589",
	};
	const bool is_ascii = sp_text_is_ascii();
	const unsigned int steps = is_ascii ? 1 : 8;
	const double full = SP_STYLE_BAR_COLUMNS * steps;
	unsigned int n = share > 0 ? (unsigned int)(share * full + 0.5) : 0;
	int blanks = SP_STYLE_BAR_COLUMNS;

	if (n > full)
		n = (unsigned int)full;
	if (n)
		sp_style_begin_share(out, share);
	for (; n >= steps; n -= steps, blanks--)
		fputs(is_ascii ? "#" : "\u2588", out);
	if (n) {
		fputs(eighths[n], out);
		blanks--;
	}
	if (blanks < SP_STYLE_BAR_COLUMNS)
		sp_style_begin(out, SP_STYLE_PLAIN);
	fprintf(out, "%*s", blanks, "");
}
