/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Lines that fit on a screen whose width is not known. */
#define SP_LINES_WIDTH 80

/* Bytes of the text up to that many columns, up to its end if it has fewer.
 * Colours have none. */
size_t sp_lines_bytes(const char *text, size_t columns);

/*
 * From now on pages are for a terminal with that many columns: no line is
 * wider, names lose their middle for it.  0, as at first: for no terminal,
 * where lines have SP_LINES_WIDTH and names stay whole.
 */
void sp_lines_set_terminal(unsigned int columns);

/* The lines of the terminal; 0: no terminal, or it does not say. */
void sp_lines_set_rows(unsigned int rows);
unsigned int sp_lines_rows(void);

/* In this page a line that is too long is not broken: it ends in dots, unless
 * only a word or two would go on below. */
void sp_lines_set_brief(bool is_wanted);

/* Columns to lay a page out for. */
unsigned int sp_lines_columns(void);
bool sp_lines_is_terminal(void);

/*
 * Write an untrusted name, as sp_text_print(), that may be cut to fit the line.
 * Only into the text of sp_lines_close_page() on the way, after
 * sp_lines_begin_page(); without that it is written as it is.
 */
void sp_lines_print_name(FILE *out, const char *name);

/* Text that is safe, on a line that is neither broken nor cut. */
void sp_lines_print_whole(FILE *out, const char *text);

/*
 * A command, of which `before` columns of the line are taken, and why, if there
 * is room.  It can be pasted: if it is too long it goes on as in a shell.
 */
void sp_lines_print_command(FILE *out, size_t before, const char *text,
			    const char *why);

/* Remove the marks that both leave for a screen. */
void sp_lines_unmark(char *text);

/*
 * What was written to `text`, of open_memstream(&lines), which is closed, to
 * `out`.  A line that is too long goes on below, further in; a word stays
 * whole.  0; or -ENOMEM, and nothing was written.
 */
int sp_lines_close(FILE *out, FILE *text, char **lines);

/* The same for a page: a line with names is not broken, it is cut on a terminal
 * and whole elsewhere.  Between these two calls names are marked. */
void sp_lines_begin_page(void);
/* The lines that this part of a page takes; 0 without memory. */
size_t sp_lines_count(const char *text);
int sp_lines_close_page(FILE *out, FILE *text, char **lines);
/* A page whose names are cut where there is no terminal, too, such as a log:
 * lightly, to SP_LINES_WIDTH, with dots of ASCII. */
int sp_lines_close_screen(FILE *out, FILE *text, char **lines);
