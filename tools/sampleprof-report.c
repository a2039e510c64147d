/* SPDX-License-Identifier: MIT */
/* All commands that read profiles: from the words of a command line to what is
 * printed, and to an exit code; a screen that is drawn again and again. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/advise.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/page.h"
#include "cli/symbolize.h"
#include "export/export.h"
#include "export/options.h"
#include "compare/gate.h"
#include "compare/views.h"
#include "model/profile.h"
#include "read/load.h"
#include "rss/weigh.h"
#include "text/lines.h"
#include "text/output.h"
#include "text/lack.h"
#include "text/screen.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

/* What is made of profiles: a page, or an export if `options` is NULL. */
struct work {
	const struct sp_options *options;
	const struct sp_export_request *export;
};

static int load_profile(const struct work *work, sp_progress_fn *fn,
			struct sp_profile **ret_profile, struct sp_error *err)
{
	const struct sp_options *o = work->options;
	struct sp_load_needs needs;

	if (!o)
		return sp_load(work->export->files, work->export->n_files,
			       &work->export->question,
			       &work->export->format->needs, fn, NULL,
			       ret_profile, err);
	needs = sp_options_needs(o);
	return sp_load(o->files, o->n_files, &o->question, &needs, fn, NULL,
		       ret_profile, err);
}

static int write_work(FILE *out, const struct sp_profile *profile,
		      const struct work *work, sp_progress_fn *fn,
		      struct sp_error *err)
{
	return work->options ? sp_page_print(out, profile, work->options, fn,
					     NULL, err)
			     : sp_export_write(out, profile, work->export, fn,
					       NULL, err);
}

/* Most formats of others have no room for it. */
static void warn_lack(const struct sp_profile *profile)
{
	const struct sp_whole whole = sp_whole_of(profile);

	if (sp_whole_is_all(&whole))
		return;
	sp_console_erase_progress();
	fprintf(stderr, "%s: ", sp_console_program());
	sp_text_print(stderr, profile->path);
	fputs(": ", stderr);
	sp_lack_print(stderr, &whole);
	putc('\n', stderr);
}

/* Into `out`; *ret_end, how the process ended, if it could be read. */
static int make_report(const struct work *work, FILE *out,
		       enum sp_profile_end *ret_end)
{
	sp_progress_fn *fn = sp_console_progress_fn();
	struct sp_profile *profile;
	struct sp_error err;
	int code = EXIT_FINE;

	sp_console_begin_progress("reading");
	if (load_profile(work, fn, &profile, &err) < 0)
		return sp_console_fail_with(&err);
	sp_console_go_on("symbolizing");
	/* The error may borrow from the profile: tell before it goes. */
	if (write_work(out, profile, work, fn, &err) < 0)
		code = sp_console_fail_with(&err);
	else if (!work->options)
		warn_lack(profile);
	*ret_end = profile->end;
	sp_profile_free(profile);
	return code;
}

static int print_once(const struct work *work)
{
	FILE *out = sp_console_open();
	enum sp_profile_end end;
	int code = make_report(work, out, &end);
	int close_code = sp_console_close(out);

	return code ? code : close_code;
}

/* ---- again and again ---- */

static volatile sig_atomic_t is_interrupted;

static void interrupt_watch(int signal_number)
{
	(void)signal_number;
	is_interrupted = 1;
}

/* Blocked but while we sleep, so that none is missed: *ret_old is the mask to
 * sleep with. */
static void catch_signals(sigset_t *ret_old)
{
	struct sigaction action = {.sa_handler = interrupt_watch};
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
static char *render_report(const struct sp_options *options,
			   enum sp_profile_end *ret_end)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int code;

	if (!out) {
		sp_console_fail("not enough memory");
		return NULL;
	}
	code = make_report(&(struct work){.options = options}, out, ret_end);
	if (fclose(out) != 0 && code == EXIT_FINE)
		code = sp_console_fail("not enough memory");
	if (code == EXIT_FINE)
		return text;
	free(text);
	return NULL;
}

static void draw_screen(FILE *out, const char *text)
{
	const struct winsize size = sp_console_size();

	fputs("\033[?25l", out);
	sp_screen_draw(out, text, size.ws_row, size.ws_col);
	fflush(out);
	sp_console_hold_cursor();
}

/* Leave a whole page behind, below an empty screen. */
static void restore_screen(FILE *out, const char *text)
{
	fputs("\033[H\033[J\033[?25h", out);
	fputs(text, out);
}

/*
 * In a terminal the page is drawn over the last one, and the last page stays.
 * Into a pipe or file go all of them, with a form feed in between.  The end of
 * the process ends it too.
 */
static int watch_profile(struct sp_options *options)
{
	const bool is_screen = isatty(STDOUT_FILENO);
	enum sp_profile_end end = SP_PROFILE_END_RUNNING;
	FILE *out = sp_console_open();
	char *text = NULL;
	sigset_t mask;
	int code;

	catch_signals(&mask);
	while (!is_interrupted && end == SP_PROFILE_END_RUNNING) {
		bool is_first = !text;

		free(text);
		if (is_screen)
			sp_lines_set_terminal(sp_console_size().ws_col);
		if (is_screen)
			sp_lines_set_rows(sp_console_size().ws_row);
		text = render_report(options, &end);
		if (!text)
			break;
		if (is_screen) {
			if (end == SP_PROFILE_END_RUNNING)
				draw_screen(out, text);
		} else {
			fprintf(out, "%s%s", is_first ? "" : "\f", text);
			fflush(out);
		}
		if (end == SP_PROFILE_END_RUNNING)
			sleep_until_due(options->watch_ns, &mask);
	}
	if (is_screen && text)
		restore_screen(out, text);
	code = sp_console_close(out);
	if (!text)
		code = EXIT_ERROR;
	free(text);
	return code;
}

/* ---- for other programs ---- */

static int export_to_file(const struct sp_export_request *request)
{
	struct sp_output *output;
	enum sp_profile_end end;
	struct sp_error err;
	int code;

	if (sp_output_open(request->output, SP_OUTPUT_PRIVATE, &output, &err) <
	    0)
		return sp_console_fail_with(&err);
	code = make_report(&(struct work){.export = request}, output->stream,
			   &end);
	if (code) {
		sp_output_abandon(output);
		return code;
	}
	sp_console_erase_progress();
	return sp_output_commit(output, &err) < 0 ? sp_console_fail_with(&err)
						  : EXIT_FINE;
}

static int run_export(int argc, char **argv)
{
	struct sp_export_request request;
	struct sp_error err;
	int code;

	code = sp_console_parsed(
		sp_export_options_parse(argc, argv, &request, &err), &err,
		&sp_export_line, "export");
	if (code >= 0)
		return code;
	request.question.weigh = sp_resident_weigh;
	if (strcmp(request.output, "-") != 0)
		return export_to_file(&request);
	if (request.format->is_binary && isatty(STDOUT_FILENO))
		return sp_console_fail(
			"this format is binary and no text for a terminal: "
			"give -o FILE, or a pipe");
	return print_once(&(struct work){.export = &request});
}

/* ---- to be read elsewhere ---- */

static int run_symbolize(int argc, char **argv)
{
	sp_progress_fn *fn = sp_console_progress_fn();
	struct sp_symbolize_options options;
	struct sp_symbolize_result result;
	struct sp_error err;
	FILE *out;
	int code;

	code = sp_console_parsed(sp_symbolize_parse(argc, argv, &options, &err),
				 &err, &sp_symbolize_line, "symbolize");
	if (code >= 0)
		return code;
	sp_console_begin_progress("symbolizing");
	if (sp_symbolize(&options, fn, NULL, &result, &err) < 0)
		return sp_console_fail_with(&err);
	if (*result.note)
		sp_console_fail(result.note);
	out = sp_console_open();
	sp_text_print(out, options.output);
	fprintf(out, ": %zu of %" PRIu64 " addresses have a name", result.named,
		result.frames);
	if (result.time_error_ns)
		fprintf(out, "; times to within %s",
			sp_text_duration(result.time_error_ns).text);
	putc('\n', out);
	return sp_console_close(out);
}

/* ---- which period ---- */

static int advise_period(FILE *out, const struct sp_advise_options *options)
{
	sp_progress_fn *fn = sp_console_progress_fn();
	const struct sp_load_needs needs = {0};
	struct sp_question question;
	struct sp_profile *profile;
	bool can_tell;
	struct sp_error err;
	int code = EXIT_FINE;

	sp_question_init(&question);
	sp_console_begin_progress("reading");
	if (sp_load(&options->file, 1, &question, &needs, fn, NULL, &profile,
		    &err) < 0)
		return sp_console_fail_with(&err);
	sp_console_go_on("symbolizing");
	if (sp_advise_print(out, profile, options, fn, NULL, &can_tell, &err) <
	    0)
		code = sp_console_fail_with(&err);
	else if (!can_tell)
		code = EXIT_CANNOT_TELL;
	sp_profile_free(profile);
	return code;
}

static int run_advise(int argc, char **argv)
{
	struct sp_advise_options options;
	struct sp_error err;
	int code, close_code;
	FILE *out;

	code = sp_console_parsed(sp_advise_parse(argc, argv, &options, &err),
				 &err, &sp_advise_line, "advise");
	if (code >= 0)
		return code;
	sp_text_set_ascii(!sp_console_is_utf8() && !options.json &&
			  !options.csv);
	if (!options.json && !options.csv)
		sp_console_begin_page(false);
	out = sp_console_open();
	code = advise_period(out, &options);
	close_code = sp_console_close(out);
	return close_code ? close_code : code;
}

/* ---- two sides ---- */

/* A wrong command line is a usage error; a file of limits that cannot be read
 * is none. */
static int fail_options(int r, const struct sp_error *err, const char *command)
{
	char line[512];

	if (r != -EINVAL)
		return sp_console_fail_with(err);
	sp_error_describe(err, line, sizeof(line));
	return sp_console_fail_usage(line, command);
}

/* After `r`, which says whether all was written. */
static int end_output(FILE *out, int r, const struct sp_error *err)
{
	const int code = r < 0 ? sp_console_fail_with(err) : EXIT_FINE;
	const int close_code = sp_console_close(out);

	return code ? code : close_code;
}

static int compare_once(const struct sp_gate_options *options)
{
	struct sp_error err;
	FILE *out;

	if (!options->json && !options->csv)
		sp_console_begin_page(!options->no_pager);
	out = sp_console_open();
	sp_text_set_ascii(!sp_console_is_utf8() && !options->json &&
			  !options->csv);
	return end_output(out, sp_gate_diff(out, options, &err), &err);
}

static int check_once(const struct sp_gate_options *options)
{
	static const int codes[] = {
		[SP_VERDICT_PASS] = EXIT_FINE,
		[SP_VERDICT_CANNOT_TELL] = EXIT_CANNOT_TELL,
		[SP_VERDICT_IMPROVED] = EXIT_REGRESSION,
		[SP_VERDICT_REGRESSION] = EXIT_REGRESSION,
	};
	FILE *out = sp_console_open();
	struct sp_error err = {0};
	enum sp_verdict verdict;
	int code, close_code;

	if (sp_gate_check(out, options, &verdict, &err) < 0) {
		code = sp_console_fail_with(&err);
	} else {
		code = codes[verdict];
		if (code == EXIT_CANNOT_TELL && !options->update &&
		    options->undecided != SP_UNDECIDED_FAIL)
			code = EXIT_FINE;
		if (err.message[0])
			sp_console_fail_with(&err);
	}
	close_code = sp_console_close(out);
	return close_code ? close_code : code;
}

/* A command of the gate. */
static const struct gate_command {
	const char *name;
	int (*parse)(int argc, char **argv, struct sp_gate_options *ret,
		     struct sp_error *err);
	const struct sp_command_line *line;
	int (*once)(const struct sp_gate_options *options);
} gate_commands[] = {
	{"diff", sp_gate_options_parse_diff, &sp_diff_line, compare_once},
	{"check", sp_gate_options_parse_check, &sp_check_line, check_once},
};

static int run_gate(const struct gate_command *command, int argc, char **argv)
{
	struct sp_gate_options options;
	struct sp_error err;
	int r = command->parse(argc, argv, &options, &err);
	int code;

	options.question.weigh = sp_resident_weigh;
	if (r < 0)
		code = fail_options(r, &err, command->name);
	else
		code = sp_console_parsed(r, &err, command->line, command->name);
	if (code < 0)
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

/* Besides the pages of the report, which have options in common. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"export", run_export}, {"symbolize", run_symbolize},
	{"diff", run_diff},     {"check", run_check},
	{"advise", run_advise}, {"lab", run_lab},
	{"rss", run_rss},       {"leaks", run_leaks},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- the report ---- */

static bool is_command(const char *word)
{
	const struct sp_command *c = sp_command_find(word);

	return c && c->place == SP_COMMAND_OTHER;
}

/* Only a page shares its options with the report, and may stand behind them. */
static int fail_late(const char *command)
{
	char error[256];

	snprintf(error, sizeof(error),
		 "the command goes first: %s %s [OPTION]... (a profile of that "
		 "name is ./%s)",
		 sp_console_program(), command, command);
	return sp_console_fail_usage(error, "report");
}

/* A word that is neither a file nor a command here is more likely the latter,
 * mistyped or another program's, if it is near one; else NULL. */
static const char *mistyped_command(const char *word)
{
	const struct sp_command *c = sp_command_find(word);

	if (*word == '-' || strpbrk(word, "/.") || access(word, F_OK) == 0 ||
	    (c && c->place == SP_COMMAND_PAGE))
		return NULL;
	return c ? c->name : sp_command_nearest(word);
}

static int fail_mistyped(const char *word, const char *nearest)
{
	const bool is_elsewhere = strcmp(word, nearest) == 0;
	char error[256];

	snprintf(error, sizeof(error),
		 is_elsewhere
			 ? "%.80s is no file: sampleprof %s does that"
			 : "%.80s is no file and no command: did you mean %s?",
		 word, nearest);
	return sp_console_fail_usage(error, "");
}

/* What is wrong may be that the options are those of a command. */
static int fail_report(const struct sp_error *err, int argc, char **argv)
{
	const char *nearest = argc > 1 ? mistyped_command(argv[1]) : NULL;
	char error[sizeof(err->message) + 128];

	if (nearest)
		return fail_mistyped(argv[1], nearest);
	for (int i = 1; i < argc; i++) {
		if (!is_command(argv[i]))
			continue;
		snprintf(error, sizeof(error),
			 "%s; if %s is the command, it goes first: %s %s "
			 "[OPTION]...",
			 err->message, argv[i], sp_console_program(), argv[i]);
		return sp_console_fail_usage(error, "report");
	}
	return sp_console_fail_usage(err->message, "report");
}

static int print_based(const struct sp_options *options)
{
	FILE *out = sp_console_open();
	struct sp_error err;

	return end_output(out, sp_views_print(out, options, &err), &err);
}

static int run_report(int argc, char **argv)
{
	struct sp_options options;
	const char *nearest;
	struct sp_error err;
	const int r = sp_options_parse(argc, argv, &options, &err);

	if (r < 0)
		return fail_report(&err, argc, argv);
	if (r)
		return sp_console_parsed(r, &err, &sp_report_line, "report");
	options.question.weigh = sp_resident_weigh;
	if (is_command(options.files[0]))
		return fail_late(options.files[0]);
	nearest = mistyped_command(options.files[0]);
	if (nearest && options.page == SP_PAGE_REPORT)
		return fail_mistyped(options.files[0], nearest);
	if (!sp_console_is_utf8())
		options.ascii = true;
	if (options.watch_ns)
		return watch_profile(&options);
	if (!options.json && !options.csv)
		sp_console_begin_page(!options.no_pager);
	return options.n_base ? print_based(&options)
			      : print_once(&(struct work){.options = &options});
}

int main(int argc, char **argv)
{
	sp_console_init(argv[0]);
	/* A closed pipe is an error of write(), with an exit code of ours. */
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(sp_console_program(), "sampleprof-lab") == 0)
		return run_lab(argc, argv);
	for (size_t i = 0; argc > 1 && i < N_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		argv[1] = argv[0];
		return commands[i].run(argc - 1, argv + 1);
	}
	return run_report(argc, argv);
}
