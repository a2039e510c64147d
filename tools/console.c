/* SPDX-License-Identifier: MIT */
#include "tools/console.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "read/load.h"
#include "text/lines.h"
#include "text/style.h"
#include "text/text.h"
#include "tools/pager.h"

#define PROGRESS_AFTER_NS (1000 * 1000 * 1000)
#define PROGRESS_EVERY_NS (100 * 1000 * 1000)

static struct {
	const char *doing;
	uint64_t due_ns; /* when to show it next */
	bool is_shown;
} progress;

/* The cursor is hidden, at the end of what was drawn. */
static bool is_drawn;

static const char *program = SP_COMMAND_PROGRAM;

/*
 * A file that is opened where a standard descriptor was closed would take
 * messages for its bytes.  So each place is taken, by what answers EBADF as a
 * closed one does, and ends with exec: a program that is run finds it closed.
 */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0
					       ? O_WRONLY | O_CLOEXEC
					       : O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

void sp_console_init(const char *argv0)
{
	fill_standard_descriptors();
	program = sp_command_program(argv0);
	/* Only which characters can be drawn depends on the locale. */
	setlocale(LC_CTYPE, "");
}

const char *sp_console_program(void)
{
	return program;
}

bool sp_console_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* A message on standard error; `error` may hold untrusted text. */
int sp_console_fail(const char *error)
{
	sp_text_set_ascii(!sp_console_is_utf8());
	sp_console_erase_progress();
	fprintf(stderr, "%s%s: ", is_drawn ? "\033[?25h\n" : "", program);
	is_drawn = false;
	sp_text_print(stderr, error);
	putc('\n', stderr);
	return EXIT_ERROR;
}

int sp_console_fail_with(const struct sp_error *err)
{
	char line[4096];

	sp_error_describe(err, line, sizeof(line));
	return sp_console_fail(line);
}

int sp_console_fail_usage(const char *error, const char *command)
{
	const char *implied = sp_command_implied(program);

	sp_console_fail(error);
	if (implied && strcmp(implied, command) == 0)
		command = "";
	fprintf(stderr, "try '%s%s%s --help'\n", program, *command ? " " : "",
		command);
	return EXIT_USAGE;
}

/*
 * Standard output goes through this, so that the errno of a failed write is
 * not lost in stdio, and a reader that has left stops the work at once.
 */
static ssize_t write_output(void *cookie, const char *bytes, size_t n)
{
	size_t done = 0;
	char error[256];

	(void)cookie;
	sp_console_erase_progress();
	while (done < n) {
		ssize_t r = write(STDOUT_FILENO, bytes + done, n - done);

		if (r >= 0) {
			done += (size_t)r;
			continue;
		}
		if (errno == EINTR)
			continue;
		/* Who leaves the pager has seen enough. */
		if (errno == EPIPE && sp_pager_is_on()) {
			sp_pager_wait();
			_exit(EXIT_FINE);
		}
		if (errno != EPIPE) {
			snprintf(error, sizeof(error),
				 "cannot write to standard output: %s",
				 strerror(errno));
			sp_console_fail(error);
		}
		_exit(EXIT_ERROR);
	}
	return (ssize_t)n;
}

/* Does a terminal take escape sequences for what they are? */
static bool has_escapes(void)
{
	const char *terminal = getenv("TERM");

	return terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

/* Do people see colours in what we write to the terminal?  less does not show
 * them if its own settings forbid that. */
static bool has_colours(void)
{
	const char *no_color = getenv("NO_COLOR");
	const char *less = getenv("LESS");

	return (!no_color || !*no_color) && has_escapes() &&
	       (!sp_pager_is_on() || (less && strpbrk(less, "rR")));
}

struct winsize sp_console_size(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row ||
	    !size.ws_col)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	return size;
}

void sp_console_begin_page(bool wants_pager)
{
	if (!isatty(STDOUT_FILENO))
		return;
	sp_lines_set_terminal(sp_console_size().ws_col);
	sp_lines_set_rows(sp_console_size().ws_row);
	if (wants_pager)
		sp_pager_start();
	sp_style_set_colours(has_colours());
}

FILE *sp_console_open(void)
{
	const cookie_io_functions_t functions = {.write = write_output};
	FILE *out = fopencookie(NULL, "w", functions);

	if (!out)
		_exit(sp_console_fail("not enough memory"));
	return out;
}

int sp_console_close(FILE *out)
{
	char error[256];

	fclose(out);
	if (close(STDOUT_FILENO) == 0) {
		sp_pager_wait();
		return EXIT_FINE;
	}
	snprintf(error, sizeof(error), "cannot write to standard output: %s",
		 strerror(errno));
	return sp_console_fail(error);
}

int sp_console_print_version(void)
{
	FILE *out = sp_console_open();

	fprintf(out, "%s " SP_VERSION "\n", program);
	return sp_console_close(out);
}

int sp_console_print_help(const struct sp_command_line *line)
{
	FILE *out = sp_console_open();

	sp_arguments_print_help(out, line, program);
	return sp_console_close(out);
}

int sp_console_parsed(int r, const struct sp_error *err,
		      const struct sp_command_line *line, const char *command)
{
	if (r < 0)
		return sp_console_fail_usage(err->message, command);
	if (r == SP_ARGUMENTS_HELP)
		return sp_console_print_help(line);
	return r == SP_ARGUMENTS_VERSION ? sp_console_print_version() : -1;
}

int sp_console_parse(const struct sp_command_line *line, const char *command,
		     int argc, char **argv, void *options,
		     const char *const **ret_words, size_t *ret_n)
{
	struct sp_error err;
	const int r = sp_arguments_parse(line, argc, argv, options, ret_words,
					 ret_n, &err);

	return sp_console_parsed(r, &err, line, command);
}

unsigned int sp_console_width(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return 80;
	return size.ws_col;
}

/* Length of a character of UTF-8, which is taken to be one column wide. */
static size_t char_bytes(const char *text)
{
	size_t n = 1;

	while (((unsigned char)text[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* The columns that it takes, at most `columns`. */
static unsigned int print_cut(FILE *out, const char *text, unsigned int columns)
{
	size_t at = 0, end = 0;
	unsigned int n;

	for (n = 0; text[at] && n < columns; n++) {
		at += char_bytes(text + at);
		if (n + 4 == columns)
			end = at;
	}
	if (text[at])
		fprintf(out, "%.*s...", (int)end, text);
	else
		fputs(text, out);
	return n;
}

static unsigned int print_safe(FILE *out, const char *text,
			       unsigned int columns)
{
	unsigned int n = 0;
	char *shown = NULL;
	size_t size;
	FILE *buffer = open_memstream(&shown, &size);

	if (!buffer)
		return 0;
	sp_text_print(buffer, text);
	if (fclose(buffer) == 0)
		n = print_cut(out, shown, columns);
	free(shown);
	return n;
}

void sp_console_print_cut(FILE *out, const char *text, unsigned int columns)
{
	print_safe(out, text, columns);
}

void sp_console_print_cell(FILE *out, const char *text, unsigned int columns)
{
	const unsigned int n = print_safe(out, text, columns);

	fprintf(out, "%*s", (int)(columns - n), "");
}

int sp_console_finish(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_FINE;
	fprintf(stderr, "%s: standard output: %s\n", program, strerror(errno));
	return EXIT_ERROR;
}

void sp_console_erase_progress(void)
{
	if (progress.is_shown)
		fputs("\r\033[K", stderr);
	progress.is_shown = false;
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	const uint64_t now = sp_clock_ns();

	(void)arg;
	if (now < progress.due_ns)
		return;
	fprintf(stderr, "\r%s: %d %%\033[K", progress.doing,
		total ? (int)(100.0 * (double)done / (double)total) : 0);
	progress.is_shown = true;
	progress.due_ns = now + PROGRESS_EVERY_NS;
}

void sp_console_begin_progress(const char *doing)
{
	progress.doing = doing;
	progress.due_ns = sp_clock_ns() + PROGRESS_AFTER_NS;
}

void sp_console_go_on(const char *doing)
{
	progress.doing = doing;
}

sp_progress_fn *sp_console_progress_fn(void)
{
	return isatty(STDERR_FILENO) && has_escapes() ? show_progress : NULL;
}

void sp_console_hold_cursor(void)
{
	is_drawn = true;
}

int sp_console_read_token(const char *path, const char *given,
			  char token[SP_CONSOLE_TOKEN_MAX],
			  struct sp_error *err)
{
	FILE *file = path ? fopen(path, "re") : NULL;

	token[0] = '\0';
	if (path && !file)
		return sp_error_set(err, -errno, path, "%s", strerror(errno));
	if (file && !fgets(token, SP_CONSOLE_TOKEN_MAX, file))
		token[0] = '\0';
	if (file)
		fclose(file);
	else if (given)
		snprintf(token, SP_CONSOLE_TOKEN_MAX, "%s", given);
	token[strcspn(token, "\r\n")] = '\0';
	if (path && !*token)
		return sp_error_set(err, -EINVAL, path,
				    "has no token in its first line");
	if (strlen(token) == SP_CONSOLE_TOKEN_MAX - 1)
		return sp_error_set(err, -EINVAL, path,
				    "the token is too long");
	for (const char *c = token; *c; c++)
		if (*c < ' ' || *c > '~')
			return sp_error_set(err, -EINVAL, path,
					    "the token has characters that no "
					    "token has");
	return 0;
}
