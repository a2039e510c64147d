/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/error.h"
#include "cli/arguments.h"
#include "model/profile.h"
#include "read/load.h"

/* Standard output and standard error of all commands, and their exit codes. */

enum exit_code {
	EXIT_FINE = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_REGRESSION = 3, /* of check */
	EXIT_QUEUED = 3,     /* of ctl: the order was not carried out yet */
	EXIT_CANNOT_TELL = 4,
};

/* Before all else: how the program was called, and the locale. */
void sp_console_init(const char *argv0);

/* "sampleprof", or one of the names of its parts. */
const char *sp_console_program(void);

/* Can the terminal show more than ASCII?  By the locale. */
bool sp_console_is_utf8(void);

/* A message on standard error; `error` may hold untrusted text.  Returns
 * EXIT_ERROR. */
int sp_console_fail(const char *error);
int sp_console_fail_with(const struct sp_error *err);

/* The same for a command line that is wrong: which --help to look at.
 * `command` is "" if it is about none.  Returns EXIT_USAGE. */
int sp_console_fail_usage(const char *error, const char *command);

/* After a command line was parsed, with `r`: the exit code if the command ends
 * with that, after --help, --version or a mistake; else -1. */
int sp_console_parsed(int r, const struct sp_error *err,
		      const struct sp_command_line *line, const char *command);

/* Parse it (sp_arguments_parse()); the same. */
int sp_console_parse(const struct sp_command_line *line, const char *command,
		     int argc, char **argv, void *options,
		     const char *const **ret_words, size_t *ret_n);

/* Standard output.  A failed write, also one to a pipe without a reader, ends
 * the process with EXIT_ERROR; what is wrong was said. */
FILE *sp_console_open(void);

/* A page for people follows: if standard output is a terminal, its width, and
 * colours unless NO_COLOR or TERM forbid them; through a pager if wanted. */
void sp_console_begin_page(bool wants_pager);

/* Of the terminal that standard output is; 24 by 80 if it does not say. */
struct winsize sp_console_size(void);

/* Once, at the end.  Returns EXIT_FINE or EXIT_ERROR. */
int sp_console_close(FILE *out);

int sp_console_print_version(void);
int sp_console_print_help(const struct sp_command_line *line);

/* Columns of the terminal that standard output is; 80 if it is none. */
unsigned int sp_console_width(void);

/* Untrusted text, as sp_text_print() writes it, in at most so many columns
 * (>= 4): "..." stands for the rest. */
void sp_console_print_cut(FILE *out, const char *text, unsigned int columns);

/* The same, with spaces up to that column. */
void sp_console_print_cell(FILE *out, const char *text, unsigned int columns);

/* Is all of stdout written, by those who use that?  An exit code. */
int sp_console_finish(void);

/*
 * Progress of a work that takes more than a second, on standard error if that
 * is a terminal: sp_console_progress_fn() is NULL if it is none.  `doing` is a
 * word, borrowed.  Output and errors erase what is shown.
 */
sp_progress_fn *sp_console_progress_fn(void);
void sp_console_begin_progress(const char *doing);
void sp_console_go_on(const char *doing); /* with something else */
void sp_console_erase_progress(void);

/* Something was drawn on the terminal, without a cursor: the next error shows
 * it again. */
void sp_console_hold_cursor(void);

#define SP_CONSOLE_TOKEN_MAX 4096

/* A bearer token: the first line of the file, or what was given; `path` and
 * `given` may be NULL, and the token "". */
int sp_console_read_token(const char *path, const char *given,
			  char token[SP_CONSOLE_TOKEN_MAX],
			  struct sp_error *err);
