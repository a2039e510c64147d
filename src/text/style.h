/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* What helps the eye on a terminal: colours, and bars of eighths. */

enum sp_style {
	SP_STYLE_PLAIN,
	SP_STYLE_HEAD,    /* what a page or a table is about */
	SP_STYLE_QUIET,   /* what is there to be looked up */
	SP_STYLE_WARNING, /* the word before a note or an error */
	SP_STYLE_LARGE,   /* a tenth of the view and more */
	SP_STYLE_SMALL,   /* a hundredth and more */
	SP_STYLE_COUNT,
};

/* Are there colours from now on?  Not at first. */
void sp_style_set_colours(bool has_colours);

/* In that style until SP_STYLE_PLAIN; nothing without colours. */
void sp_style_begin(FILE *out, enum sp_style style);

/* "note: ", and a line of its own that begins with it. */
void sp_style_begin_note(FILE *out);
void sp_style_print_note(FILE *out, const char *text);

/* In that of a share in [0, 1]. */
void sp_style_begin_share(FILE *out, double share);

#define SP_STYLE_BAR_COLUMNS 6

/* A share in [0, 1] as a bar of that many columns, blanks included. */
void sp_style_print_bar(FILE *out, double share);
