/* SPDX-License-Identifier: MIT */
/* The command line: options, the one place that prints errors, exit codes. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "profile/profile.h"
#include "profile/symbolizer.h"
#include "report/aggregate.h"
#include "report/export_json.h"
#include "report/text.h"
#include "report/view_stacks.h"
#include "report/view_summary.h"
#include "report/view_top.h"

#define PROGRAM "sampleprof-report"

enum exit_code {
	EXIT_FINE = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
};

#define DEFAULT_TOP 30

static const char help[] =
	"usage: " PROGRAM " [OPTION]... FILE\n"
	"\n"
	"Estimate from a profile which functions allocated how much, with\n"
	"95 % confidence intervals.\n"
	"\n"
	"  --top N            functions shown; 0 shows all (default 30)\n"
	"  --sort flat|cum    order of the functions (default flat)\n"
	"  --stacks N         show the N call stacks with most bytes; 0 all\n"
	"  --json             everything as JSON\n"
	"  --debug-path DIRS  where separate debug files are, separated by\n"
	"                     colons (default /usr/lib/debug)\n"
	"  --debuginfod       fetch missing debug files from $DEBUGINFOD_URLS\n"
	"  --help             this text\n"
	"  --version          the version\n"
	"\n"
	"Exit status: 0 fine, 1 error, 2 usage.\n"
	"To record a profile: LD_PRELOAD=libsampleprof.so COMMAND\n";

static void erase_progress(void);

/* A message on standard error; `error` may hold untrusted text. */
static int fail(const char *error)
{
	erase_progress();
	fputs(PROGRAM ": ", stderr);
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

static int fail_usage(const char *error)
{
	if (error)
		fail(error);
	fputs("try '" PROGRAM " --help'\n", stderr);
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

static int print_and_close(const char *text)
{
	FILE *out = open_output();

	fputs(text, out);
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

struct options {
	const char *program; /* as it was called, for the next command */
	const char *file;
	uint64_t top;
	uint64_t stacks;
	bool has_text_options;
	bool has_stacks;
	bool json;
	enum sp_aggregate_order order;
	struct sp_symbolizer_options symbols;
};

static int print_text(FILE *out, struct sp_aggregate *aggregate,
		      const struct options *options, struct sp_error *err)
{
	int r;

	sp_aggregate_sort(aggregate, options->order);
	sp_view_summary_print_header(out, aggregate);
	r = sp_view_top_print(out, aggregate, options->top, err);
	if (r < 0)
		return r;
	if (options->has_stacks)
		sp_view_stacks_print(out, aggregate, options->stacks);
	sp_view_summary_print_notes(out, aggregate, options->program,
				    options->has_stacks);
	return 0;
}

static int print_profile(FILE *out, const struct sp_profile *profile,
			 const struct options *options, sp_progress_fn *fn,
			 struct sp_error *err)
{
	struct sp_symbolizer *symbolizer;
	struct sp_aggregate *aggregate;
	int r;

	r = sp_symbolizer_new(profile, &options->symbols, &symbolizer, err);
	if (r < 0)
		return r;
	progress.doing = "symbolizing";
	r = sp_aggregate_new(profile, symbolizer, fn, NULL, &aggregate, err);
	if (r >= 0) {
		erase_progress();
		r = options->json ? sp_export_json_write(out, aggregate, err)
				  : print_text(out, aggregate, options, err);
		sp_aggregate_free(aggregate);
	}
	sp_symbolizer_free(symbolizer);
	return r;
}

static int print_file(FILE *out, const struct options *options)
{
	sp_progress_fn *fn = isatty(STDERR_FILENO) ? show_progress : NULL;
	struct sp_profile *profile;
	struct sp_error err;
	int code = EXIT_FINE;

	progress.due_ns = now_ns() + PROGRESS_AFTER_NS;
	progress.doing = "reading";
	if (sp_profile_load(options->file, fn, NULL, &profile, &err) < 0)
		return fail_with(&err);
	/* The error may borrow from the profile: tell before it goes. */
	if (print_profile(out, profile, options, fn, &err) < 0)
		code = fail_with(&err);
	sp_profile_free(profile);
	return code;
}

enum option_code {
	OPTION_TOP = 256,
	OPTION_SORT,
	OPTION_STACKS,
	OPTION_JSON,
	OPTION_DEBUG_PATH,
	OPTION_DEBUGINFOD,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"top", required_argument, NULL, OPTION_TOP},
	{"sort", required_argument, NULL, OPTION_SORT},
	{"stacks", required_argument, NULL, OPTION_STACKS},
	{"json", no_argument, NULL, OPTION_JSON},
	{"debug-path", required_argument, NULL, OPTION_DEBUG_PATH},
	{"debuginfod", no_argument, NULL, OPTION_DEBUGINFOD},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static bool parse_order(const char *text, enum sp_aggregate_order *ret_order)
{
	if (!strcmp(text, "flat"))
		*ret_order = SP_AGGREGATE_BY_FLAT;
	else if (!strcmp(text, "cum"))
		*ret_order = SP_AGGREGATE_BY_CUM;
	else
		return false;
	return true;
}

/* One option with its argument; EXIT_FINE or EXIT_USAGE, said. */
static int take_option(struct options *options, int option)
{
	switch (option) {
	case OPTION_TOP:
		options->has_text_options = true;
		if (!sp_parse_u64(optarg, &options->top))
			return fail_usage("--top takes a number");
		return EXIT_FINE;
	case OPTION_SORT:
		options->has_text_options = true;
		if (!parse_order(optarg, &options->order))
			return fail_usage("--sort takes flat or cum");
		return EXIT_FINE;
	case OPTION_STACKS:
		options->has_text_options = true;
		options->has_stacks = true;
		if (!sp_parse_u64(optarg, &options->stacks))
			return fail_usage("--stacks takes a number");
		return EXIT_FINE;
	case OPTION_JSON:
		options->json = true;
		return EXIT_FINE;
	case OPTION_DEBUG_PATH:
		options->symbols.debug_path = optarg;
		return EXIT_FINE;
	case OPTION_DEBUGINFOD:
		options->symbols.use_debuginfod = true;
		return EXIT_FINE;
	default:
		return fail_usage(NULL);
	}
}

static int run_report(int argc, char **argv)
{
	struct options options = {.program = argv[0], .top = DEFAULT_TOP};
	FILE *out;
	int option, code, close_code;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) >=
	       0) {
		if (option == OPTION_HELP)
			return print_and_close(help);
		if (option == OPTION_VERSION)
			return print_and_close(PROGRAM " " SP_VERSION "\n");
		code = take_option(&options, option);
		if (code != EXIT_FINE)
			return code;
	}
	if (optind == argc)
		return fail_usage("which profile? no FILE was given");
	if (argc - optind > 1)
		return fail_usage("several FILEs are not supported yet");
	if (options.json && options.has_text_options)
		return fail_usage("--json shows everything: it goes without "
				  "--top, --sort and --stacks");
	options.file = argv[optind];

	out = open_output();
	code = print_file(out, &options);
	close_code = close_output(out);
	return code ? code : close_code;
}

/* The first is the default: FILE may follow the program's name at once. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"report", run_report},
};

int main(int argc, char **argv)
{
	/* A closed pipe is an error of write(), with an exit code of ours. */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands);
	     i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		argv[1] = argv[0];
		return commands[i].run(argc - 1, argv + 1);
	}
	return commands[0].run(argc, argv);
}
