/* SPDX-License-Identifier: MIT */
#ifndef SP_TEXT_LINES_H
#define SP_TEXT_LINES_H

#include <stddef.h>
#include <stdio.h>

/* Lines that fit on a screen. */
#define SP_LINES_WIDTH 80

/* Bytes of the text up to that many columns, up to its end if it has fewer. */
size_t sp_lines_bytes(const char *text, size_t columns);

/*
 * What was written to `text`, of open_memstream(&lines), which is closed, to
 * `out`.  A line that is too long goes on below, further in; a word stays
 * whole.  0; or -ENOMEM, and nothing was written.
 */
int sp_lines_close(FILE *out, FILE *text, char **lines);

#endif
