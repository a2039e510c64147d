/* SPDX-License-Identifier: MIT */
/* The report command: the one place that prints errors, exit codes, a screen
 * that is drawn again and again. */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "profile/merge.h"
#include "gate/gate.h"
#include "profile/profile.h"
#include "report/export.h"
#include "report/options.h"
#include "report/output.h"
#include "report/page.h"
#include "report/screen.h"
#include "report/symbolize.h"
#include "report/text.h"

#define PROGRAM "sampleprof-report"

enum exit_code {
	EXIT_FINE = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_REGRESSION = 3,
	EXIT_CANNOT_TELL = 4,
};

static void erase_progress(void);

/* The cursor is at the end of what was drawn. */
static bool is_drawn;

static bool is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* A message on standard error; `error` may hold untrusted text. */
static int fail(const char *error)
{
	sp_text_set_ascii(!is_utf8());
	erase_progress();
	fputs(is_drawn ? "\033[?25h\n" PROGRAM ": " : PROGRAM ": ", stderr);
	is_drawn = false;
	sp_text_print(stderr, error);
	putc('\n', stderr);
	return EXIT_ERROR;
}

static int fail_with(const struct sp_error *err)
{
	char line[4096];

	sp_error_describe(err, line, sizeof(line));
	return fail(line);
}

static int fail_usage(const char *error, const char *command)
{
	fail(error);
	fprintf(stderr, "try '" PROGRAM "%s --help'\n", command);
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
	erase_progress();
	while (done < n) {
		ssize_t r = write(STDOUT_FILENO, bytes + done, n - done);

		if (r >= 0) {
			done += (size_t)r;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EPIPE) {
			snprintf(error, sizeof(error),
				 "cannot write to standard output: %s",
				 strerror(errno));
			fail(error);
		}
		_exit(EXIT_ERROR);
	}
	return (ssize_t)n;
}

static FILE *open_output(void)
{
	const cookie_io_functions_t functions = {.write = write_output};
	FILE *out = fopencookie(NULL, "w", functions);

	if (!out)
		_exit(fail("not enough memory"));
	return out;
}

static int close_output(FILE *out)
{
	char error[256];

	fclose(out);
	if (close(STDOUT_FILENO) == 0)
		return EXIT_FINE;
	snprintf(error, sizeof(error), "cannot write to standard output: %s",
		 strerror(errno));
	return fail(error);
}

static int print_version(void)
{
	FILE *out = open_output();

	fputs(PROGRAM " " SP_VERSION "\n", out);
	return close_output(out);
}

static int print_help(void (*print)(FILE *out))
{
	FILE *out = open_output();

	print(out);
	return close_output(out);
}

/* Progress on a terminal, once the work has taken a second. */
#define PROGRESS_AFTER_NS (1000 * 1000 * 1000)
#define PROGRESS_EVERY_NS (100 * 1000 * 1000)

static struct {
	const char *doing;
	int64_t due_ns; /* when to show it next */
	bool is_shown;
} progress;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void erase_progress(void)
{
	if (progress.is_shown)
		fputs("\r\033[K", stderr);
	progress.is_shown = false;
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	int64_t now = now_ns();

	(void)arg;
	if (now < progress.due_ns)
		return;
	fprintf(stderr, "\r%s: %d %%\033[K", progress.doing,
		total ? (int)(100.0 * (double)done / (double)total) : 0);
	progress.is_shown = true;
	progress.due_ns = now + PROGRESS_EVERY_NS;
}

/* What a command makes of a profile: sp_page_print() or sp_export_write(). */
typedef int make_fn(FILE *out, const struct sp_profile *profile,
		    const struct sp_options *options, sp_progress_fn *progress,
		    void *progress_arg, struct sp_error *err);

static int load(const struct sp_options *options, sp_progress_fn *fn,
		struct sp_profile **ret_profile, struct sp_error *err)
{
	if (sp_options_can_fold(options))
		return sp_profile_load_folded(options->files[0],
					      options->question.confidence, fn,
					      NULL, ret_profile, err);
	return sp_profile_load_many(options->files, options->n_files, fn, NULL,
				    ret_profile, err);
}

/* Into `out`; *ret_end, how the process ended, if it could be read. */
static int make(make_fn *what, FILE *out, const struct sp_options *options,
		enum sp_profile_end *ret_end)
{
	sp_progress_fn *fn = isatty(STDERR_FILENO) ? show_progress : NULL;
	struct sp_profile *profile;
	struct sp_error err;
	int code = EXIT_FINE;

	progress.due_ns = now_ns() + PROGRESS_AFTER_NS;
	progress.doing = "reading";
	if (load(options, fn, &profile, &err) < 0)
		return fail_with(&err);
	progress.doing = "symbolizing";
	/* The error may borrow from the profile: tell before it goes. */
	if (what(out, profile, options, fn, NULL, &err) < 0)
		code = fail_with(&err);
	*ret_end = profile->end;
	sp_profile_free(profile);
	return code;
}

static int print_once(make_fn *what, const struct sp_options *options)
{
	FILE *out = open_output();
	enum sp_profile_end end;
	int code = make(what, out, options, &end);
	int close_code = close_output(out);

	return code ? code : close_code;
}

/* ---- again and again ---- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
	(void)signal_number;
	is_interrupted = 1;
}

/* Blocked but while we sleep, so that none is missed: *ret_old is the mask to
 * sleep with. */
static void catch_signals(sigset_t *ret_old)
{
	struct sigaction action = {.sa_handler = interrupt};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, ret_old);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static void sleep_until_due(uint64_t ns, const sigset_t *mask)
{
	const struct timespec time = {(time_t)(ns / 1000000000),
				      (long)(ns % 1000000000)};

	ppoll(NULL, 0, &time, mask);
}

/* The page in memory; NULL, said, if it could not be made. */
static char *render(const struct sp_options *options,
		    enum sp_profile_end *ret_end)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int code;

	if (!out) {
		fail("not enough memory");
		return NULL;
	}
	code = make(sp_page_print, out, options, ret_end);
	if (fclose(out) != 0 && code == EXIT_FINE)
		code = fail("not enough memory");
	if (code == EXIT_FINE)
		return text;
	free(text);
	return NULL;
}

static struct winsize screen_size(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row ||
	    !size.ws_col)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	return size;
}

static void draw(FILE *out, const char *text)
{
	const struct winsize size = screen_size();

	fputs("\033[?25l", out);
	sp_screen_draw(out, text, size.ws_row, size.ws_col);
	fflush(out);
	is_drawn = true;
}

/* Leave a whole page behind, below an empty screen. */
static void restore(FILE *out, const char *text)
{
	fputs("\033[H\033[J\033[?25h", out);
	fputs(text, out);
}

/*
 * In a terminal the page is drawn over the last one, and the last page stays.
 * Into a pipe or file go all of them, with a form feed in between.  The end of
 * the process ends it too.
 */
static int watch(struct sp_options *options)
{
	const bool is_screen = isatty(STDOUT_FILENO);
	enum sp_profile_end end = SP_PROFILE_END_RUNNING;
	FILE *out = open_output();
	char *text = NULL;
	sigset_t mask;
	int code;

	catch_signals(&mask);
	while (!is_interrupted && end == SP_PROFILE_END_RUNNING) {
		bool is_first = !text;

		free(text);
		if (is_screen)
			options->columns = screen_size().ws_col;
		text = render(options, &end);
		if (!text)
			break;
		if (is_screen) {
			if (end == SP_PROFILE_END_RUNNING)
				draw(out, text);
		} else {
			fprintf(out, "%s%s", is_first ? "" : "\f", text);
			fflush(out);
		}
		if (end == SP_PROFILE_END_RUNNING)
			sleep_until_due(options->watch_ns, &mask);
	}
	if (is_screen && text)
		restore(out, text);
	code = close_output(out);
	if (!text)
		code = EXIT_ERROR;
	free(text);
	return code;
}

static int run_report(enum sp_page page, int argc, char **argv)
{
	struct sp_options options;
	struct sp_error err;

	if (sp_options_parse(page, argc, argv, &options, &err) < 0)
		return fail_usage(err.message, "");
	if (options.help)
		return print_help(sp_options_print_help);
	if (options.version)
		return print_version();
	if (!is_utf8())
		options.ascii = true;
	return options.watch_ns ? watch(&options)
				: print_once(sp_page_print, &options);
}

/* ---- for other programs ---- */

static int export_to_file(const struct sp_options *options)
{
	struct sp_output *output;
	enum sp_profile_end end;
	struct sp_error err;
	int code;

	if (sp_output_open(options->output, &output, &err) < 0)
		return fail_with(&err);
	code = make(sp_export_write, output->stream, options, &end);
	if (code) {
		sp_output_abandon(output);
		return code;
	}
	erase_progress();
	return sp_output_commit(output, &err) < 0 ? fail_with(&err) : EXIT_FINE;
}

static int run_export(int argc, char **argv)
{
	struct sp_options options;
	struct sp_error err;

	if (sp_options_parse_export(argc, argv, &options, &err) < 0)
		return fail_usage(err.message, " export");
	if (options.help)
		return print_help(sp_options_print_export_help);
	if (options.version)
		return print_version();
	if (strcmp(options.output, "-") != 0)
		return export_to_file(&options);
	if (options.format->is_binary && isatty(STDOUT_FILENO))
		return fail("this format is binary and no text for a terminal: "
			    "give -o FILE, or a pipe");
	return print_once(sp_export_write, &options);
}

/* ---- to be read elsewhere ---- */

static int run_symbolize(int argc, char **argv)
{
	sp_progress_fn *fn = isatty(STDERR_FILENO) ? show_progress : NULL;
	struct sp_symbolize_options options;
	struct sp_symbolize_result result;
	struct sp_error err;
	FILE *out;

	if (sp_symbolize_parse(argc, argv, &options, &err) < 0)
		return fail_usage(err.message, " symbolize");
	if (options.help)
		return print_help(sp_symbolize_print_help);
	if (options.version)
		return print_version();
	progress.due_ns = now_ns() + PROGRESS_AFTER_NS;
	progress.doing = "symbolizing";
	if (sp_symbolize(&options, fn, NULL, &result, &err) < 0)
		return fail_with(&err);
	out = open_output();
	sp_text_print(out, options.output);
	fprintf(out, ": %zu of %" PRIu64 " addresses have a name\n",
		result.named, result.frames);
	return close_output(out);
}

/* ---- two sides ---- */

/* A wrong command line is a usage error; a file of limits that cannot be read
 * is none. */
static int fail_options(int r, const struct sp_error *err, const char *command)
{
	char line[512];

	if (r != -EINVAL)
		return fail_with(err);
	sp_error_describe(err, line, sizeof(line));
	return fail_usage(line, command);
}

static int compare_once(const struct sp_gate_options *options)
{
	FILE *out = open_output();
	struct sp_error err;
	int code = EXIT_FINE, close_code;

	sp_text_set_ascii(!is_utf8() && !options->json && !options->csv);
	if (sp_gate_diff(out, options, &err) < 0)
		code = fail_with(&err);
	close_code = close_output(out);
	return code ? code : close_code;
}

static int check_once(const struct sp_gate_options *options)
{
	static const int codes[] = {
		[SP_VERDICT_PASS] = EXIT_FINE,
		[SP_VERDICT_CANNOT_TELL] = EXIT_CANNOT_TELL,
		[SP_VERDICT_IMPROVED] = EXIT_REGRESSION,
		[SP_VERDICT_REGRESSION] = EXIT_REGRESSION,
	};
	FILE *out = open_output();
	struct sp_error err = {0};
	enum sp_verdict verdict;
	int code, close_code;

	if (sp_gate_check(out, options, &verdict, &err) < 0) {
		code = fail_with(&err);
	} else {
		code = codes[verdict];
		if (err.message[0])
			fail_with(&err);
	}
	close_code = close_output(out);
	return close_code ? close_code : code;
}

/* A command of the gate. */
static const struct gate_command {
	const char *name;
	int (*parse)(int argc, char **argv, struct sp_gate_options *ret,
		     struct sp_error *err);
	void (*print_help)(FILE *out);
	int (*once)(const struct sp_gate_options *options);
} gate_commands[] = {
	{" diff", sp_gate_options_parse_diff, sp_gate_options_print_diff_help,
	 compare_once},
	{" check", sp_gate_options_parse_check,
	 sp_gate_options_print_check_help, check_once},
};

static int run_gate(const struct gate_command *command, int argc, char **argv)
{
	struct sp_gate_options options;
	struct sp_error err;
	int r = command->parse(argc, argv, &options, &err);
	int code;

	if (r < 0)
		code = fail_options(r, &err, command->name);
	else if (options.help)
		code = print_help(command->print_help);
	else if (options.version)
		code = print_version();
	else
		code = command->once(&options);
	sp_gate_options_done(&options);
	return code;
}

static int run_diff(int argc, char **argv)
{
	return run_gate(&gate_commands[0], argc, argv);
}

static int run_check(int argc, char **argv)
{
	return run_gate(&gate_commands[1], argc, argv);
}

/* Besides the pages of the report, which have commands of their own. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"export", run_export},
	{"symbolize", run_symbolize},
	{"diff", run_diff},
	{"check", run_check},
};

int main(int argc, char **argv)
{
	enum sp_page page = SP_PAGE_REPORT;

	/* Only which characters can be drawn depends on the locale. */
	setlocale(LC_CTYPE, "");
	/* A closed pipe is an error of write(), with an exit code of ours. */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands);
	     i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		argv[1] = argv[0];
		return commands[i].run(argc - 1, argv + 1);
	}
	/* FILE may follow the program's name at once. */
	if (argc > 1 && sp_page_parse(argv[1], &page)) {
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	return run_report(page, argc, argv);
}
