/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

/*
 * Redraw a terminal of `rows` by `columns` (each at least 1) with a text of
 * UTF-8 lines: from the home position, each line cut to the width, as many
 * lines as there are rows, the rest of the screen cleared.  Each character of
 * the text is taken to be one column wide.
 */
void sp_screen_draw(FILE *out, const char *text, unsigned int rows,
		    unsigned int columns);
