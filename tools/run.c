/* SPDX-License-Identifier: MIT */
/* sampleprof run: a program under the library, and what was recorded. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/parse.h"
#include "control/files.h"
#include "control/launch.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/analysis.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

#define PROGRAM "sampleprof"

/* As env(1) and nohup(1) have them. */
enum {
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* Of an executable, as the agent takes it. */
#define FOLLOW_MAX 255

/* NULL: not given, so the environment decides. */
struct run_options {
	const char *period;
	const char *rate;
	const char *out;
	const char *follow;
	bool off;
	bool quiet;
	bool help;    /* asked for; nothing else counts */
	bool version; /* likewise */
};

static bool take_period(void *part, const char *text)
{
	struct run_options *o = part;
	uint64_t bytes;

	o->period = text;
	return sp_parse_size(text, &bytes) && bytes &&
	       bytes <= SP_FORMAT_PERIOD_MAX;
}

static bool take_rate(void *part, const char *text)
{
	struct run_options *o = part;
	uint64_t rate;

	o->rate = text;
	return sp_parse_rate(text, &rate);
}

static bool take_out(void *part, const char *text)
{
	struct run_options *o = part;

	o->out = text;
	return *text != '\0';
}

static bool take_follow(void *part, const char *text)
{
	struct run_options *o = part;

	o->follow = text;
	return *text && strlen(text) <= FOLLOW_MAX;
}

#define FLAG(name, member, help)                                               \
	SP_ARGUMENT_FLAG(struct run_options, name, member, help)

static const struct sp_argument arguments[] = {
	{"period", 0, "SIZE", "a size from 1 to 1T, such as 64K", take_period,
	 0, "mean bytes between two samples (default 512K)"},
	{"rate", 0, "N/s", "off, or 1/s to 1000000/s", take_rate, 0,
	 "at most N samples per second, over seconds: the period\n"
	 "grows beyond that (default off)"},
	{"out", 0, "FILE", "a path", take_out, 0,
	 "profile, or a directory (default %e.%p.sprof)"},
	{"follow", 0, "all|none|NAME", "all, none or the name of a program",
	 take_follow, 0,
	 "which processes are recorded: all that the program\n"
	 "starts (default), itself alone, or those of programs\n"
	 "with that name"},
	FLAG("off", off, "sample nothing until ctl PID start"),
	FLAG("quiet", quiet, "say nothing at the end"),
	SP_ARGUMENTS_ABOUT(struct run_options),
};

static const char *follow_word(size_t i)
{
	static const char *const words[] = {"all", "none", NULL};

	return words[i];
}

static const struct sp_argument_values values[] = {{"follow", follow_word},
						   {0}};

static const struct sp_argument_group group = {"How to record", arguments,
					       values};

static bool is_done(const void *options)
{
	const struct run_options *o = options;

	return o->help || o->version;
}

const struct sp_command_line run_line = {
	.forms = "run [OPTION]... [--] PROGRAM [ARGUMENT]...",
	.about = "Run a program under the heap profiler: set LD_PRELOAD, pass "
		 "signals and the\n"
		 "exit status on, say at the end what was recorded.\n",
	.parts = (const struct sp_argument_part[]){{&group, 0}, {0}},
	.ending = "Exit status: that of the program; 2 usage, 126 if it cannot "
		  "be run or profiled,\n"
		  "127 if it was not found.\n",
	.stops_at_word = true,
	.is_done = is_done,
};

static bool set(const char *name, const char *value)
{
	return setenv(name, value, 1) == 0;
}

/* The options as the settings of the program. */
static bool export_settings(const struct run_options *o)
{
	return (!o->period || set("SAMPLEPROF_PERIOD", o->period)) &&
	       (!o->rate || set("SAMPLEPROF_RATE", o->rate)) &&
	       (!o->out || set("SAMPLEPROF_OUT", o->out)) &&
	       (!o->follow || set("SAMPLEPROF_FOLLOW", o->follow)) &&
	       (!o->off || set("SAMPLEPROF_START", "off"));
}

static int preload(struct sp_error *err)
{
	const char *before = getenv("LD_PRELOAD");
	char library[SP_LAUNCH_PATH_MAX], *all;
	int r = sp_launch_library(library, err);

	if (r < 0)
		return r;
	/* In front: what follows is the allocator below, if it is one. */
	if (asprintf(&all, "%s%s%s", library, before && *before ? ":" : "",
		     before ? before : "") < 0)
		return sp_error_set(err, -ENOMEM, NULL, "not enough memory");
	if (!set("LD_PRELOAD", all))
		r = sp_error_set(err, -ENOMEM, NULL, "not enough memory");
	free(all);
	return r;
}

static void print_figures(const struct sp_analysis *a)
{
	const struct sp_profile *p = a->profile;

	fprintf(stderr, PROGRAM ": %s%s in %s allocation%s, exact; %s sample%s",
		sp_profile_is_exact(p) ? "" : "at least ",
		sp_text_bytes((double)p->exact_alloc_bytes).text,
		sp_text_count(p->exact_alloc_objects).text,
		sp_text_plural(p->exact_alloc_objects),
		sp_text_count(p->n_samples).text, sp_text_plural(p->n_samples));
	if (p->unsampled_bytes)
		fprintf(stderr, " of all but %s",
			sp_text_bytes((double)p->unsampled_bytes).text);
	if (!a->live) {
		fputs("\n" PROGRAM ": what was alive is not known "
		      "(SAMPLEPROF_FREES=off)\n",
		      stderr);
		return;
	}
	fputs("\n" PROGRAM ": peak ", stderr);
	sp_text_print_estimate(stderr, a->peak.bytes, a->peak.samples,
			       a->how.confidence);
	fputs("; alive at the end ", stderr);
	sp_text_print_estimate(stderr,
			       sp_estimate_bytes(&a->how, &a->live->all),
			       a->live->all.all.samples, a->how.confidence);
	putc('\n', stderr);
}

/* Three lines: exact totals, the live heap, what to do next. */
static int summarize(const struct sp_files *files)
{
	struct sp_analysis *analysis;
	struct sp_question question;
	struct sp_profile *profile;
	struct sp_error err;
	int r = sp_profile_load(files->path, NULL, NULL, &profile, &err);

	if (r < 0)
		return sp_console_fail_with(&err);
	sp_question_init(&question);
	r = sp_analysis_new(profile, &question, SP_VIEW_ALLOC, &analysis, &err);
	if (r < 0) {
		sp_profile_free(profile);
		return sp_console_fail_with(&err);
	}
	print_figures(analysis);
	fputs(PROGRAM ": next: " PROGRAM " report ", stderr);
	sp_text_print(stderr, files->path);
	if (files->others)
		fprintf(stderr,
			"    (%zu more profile%s of this time are beside it)",
			files->others, files->others == 1 ? "" : "s");
	putc('\n', stderr);
	sp_analysis_free(analysis);
	sp_profile_free(profile);
	return 0;
}

/* End as the program did. */
static int end_as(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	/* The program has left the core, if anybody. */
	fflush(NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static uint64_t unix_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int fail_run(const struct sp_error *err, int r)
{
	sp_console_fail_with(err);
	return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static int run_program(char **argv, bool is_quiet)
{
	char path[SP_LAUNCH_PATH_MAX];
	struct sp_files files;
	struct sp_error err;
	const char *note;
	uint64_t since;
	int r, status = 0;
	pid_t pid = 0;

	r = sp_launch_check(argv[0], path, &note, &err);
	if (r < 0)
		return fail_run(&err, r);
	if (note)
		fprintf(stderr, PROGRAM ": %s\n", note);
	if (preload(&err) < 0)
		return fail_run(&err, -ENOEXEC);
	since = unix_ns();
	r = sp_launch_run(argv, &pid, &status, &err);
	if (r < 0)
		return fail_run(&err, r);
	if (!is_quiet) {
		sp_files_find(&files, getenv("SAMPLEPROF_OUT"), (uint64_t)pid,
			      since);
		if (*files.path)
			summarize(&files);
		else
			fputs(PROGRAM ": no profile of the program was found\n",
			      stderr);
	}
	return end_as(status);
}

int run_run(int argc, char **argv)
{
	struct run_options options = {0};
	const char *const *words;
	struct sp_error err;
	size_t n;

	if (sp_arguments_parse(&run_line, argc, argv, &options, &words, &n,
			       &err) < 0)
		return sp_console_fail_usage(err.message, "run");
	if (options.help)
		return sp_console_print_help(&run_line);
	if (options.version)
		return sp_console_print_version();
	if (!n)
		return sp_console_fail_usage("run needs a program", "run");
	if (!export_settings(&options))
		return sp_console_fail("not enough memory");
	return run_program(argv + argc - n, options.quiet);
}
