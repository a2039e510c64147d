/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

/*
 * A stream in front of another one: what is written to it comes out as a
 * reader of that format takes for the same text.  What goes in is valid UTF-8
 * without control characters but '\n' (sp_text_print()).
 */
enum sp_escape {
	SP_ESCAPE_XML,             /* text and attributes */
	SP_ESCAPE_GITHUB_MESSAGE,  /* of a workflow command */
	SP_ESCAPE_GITHUB_PROPERTY, /* a value before its '::' */
	SP_ESCAPE_MARKDOWN,        /* nothing is formatting, or a link */
	SP_ESCAPE_LABEL,           /* of OpenMetrics, in quotes */
};

/* NULL without memory.  Not buffered, so that both streams can be written to in
 * turn; fclose() ends it, and `out` stays open. */
FILE *sp_escape_open(FILE *out, enum sp_escape kind);
