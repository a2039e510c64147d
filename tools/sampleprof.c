/* SPDX-License-Identifier: MIT */
/* The launcher, and the list of programs that run under the library. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "control/files.h"
#include "control/launch.h"
#include "control/target.h"
#include "model/profile.h"
#include "read/load.h"
#include "report/analysis.h"
#include "text/text.h"
#include "tools/sampleprof.h"

/* Of run, as env(1) and nohup(1) have them. */
enum {
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

static const char help[] =
	"usage: sampleprof run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       sampleprof ps\n"
	"       sampleprof ctl [--timeout TIME] PID COMMAND\n"
	"\n"
	"Run a program under the heap profiler, and control programs that run "
	"under it.\n"
	"\n"
	"run: sets LD_PRELOAD, passes signals and the exit status on, says at "
	"the end\n"
	"what was recorded.\n"
	"  --period SIZE          mean bytes between two samples (default "
	"512K)\n"
	"  --rate N/s             at most N samples per second, over seconds: "
	"the "
	"period\n"
	"                         grows beyond that (default off)\n"
	"  --out FILE             profile, or a directory (default "
	"%e.%p.sprof)\n"
	"  --follow all|none|NAME which processes are recorded: all that the "
	"program\n"
	"                         starts (default), itself alone, or those of "
	"programs\n"
	"                         with that name\n"
	"  --off                  sample nothing until ctl PID start\n"
	"  --quiet                say nothing at the end\n"
	"\n"
	"ps: process id, profile and command of each process that is being "
	"profiled.\n"
	"\n"
	"ctl: COMMAND is one of\n"
	"  start                  start sampling\n"
	"  stop                   stop sampling; exact totals go on\n"
	"  period SIZE            change the period, now or for when it is "
	"started;\n"
	"                         with --rate the smallest one\n"
	"  mark NAME              the phase NAME begins\n"
	"  snapshot NAME          give the moment a name\n"
	"  status                 what is known by now, and orders that "
	"wait\n"
	"  --timeout TIME         wait that long until the order is carried "
	"out (default\n"
	"                         5s); then it stays queued\n"
	"A process carries out its orders in turn, when one of its threads "
	"has allocated\n"
	"another 4 KiB. 8 can wait.\n"
	"\n"
	"  --help, --version\n"
	"\n"
	"Exit status: 0 fine, 1 error, 2 usage; of ctl 3 if the order stays "
	"queued;\n"
	"of run that of the program, 126 if it cannot be run or profiled, "
	"127 if it was\n"
	"not found.\n";

int fail(const struct sp_error *err, int code)
{
	char line[4096];

	sp_error_describe(err, line, sizeof(line));
	fputs(PROGRAM ": ", stderr);
	sp_text_print(stderr, line);
	putc('\n', stderr);
	return code;
}

int point_to_help(void)
{
	fputs("try '" PROGRAM " --help'\n", stderr);
	return EXIT_USAGE;
}

int usage(const char *what, const char *word)
{
	fputs(PROGRAM ": ", stderr);
	fputs(what, stderr);
	if (word) {
		fputs(": ", stderr);
		sp_text_print(stderr, word);
	}
	putc('\n', stderr);
	return point_to_help();
}

/* ---- run ---- */

struct run_options {
	bool quiet;
};

static bool set(const char *name, const char *value)
{
	return setenv(name, value, 1) == 0;
}

/* getopt has printed what is wrong. */
static int parse_run(int argc, char **argv, struct run_options *ret)
{
	static const struct option options[] = {
		{"period", required_argument, NULL, 'p'},
		{"rate", required_argument, NULL, 'r'},
		{"out", required_argument, NULL, 'o'},
		{"follow", required_argument, NULL, 'f'},
		{"off", no_argument, NULL, 'x'},
		{"quiet", no_argument, NULL, 'q'},
		{0},
	};
	uint64_t number;
	bool ok = true;
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (!sp_parse_size(optarg, &number) || !number ||
			    number > SP_FORMAT_PERIOD_MAX)
				return usage("--period is from 1 to 1T, "
					     "like 64K",
					     optarg);
			ok &= set("SAMPLEPROF_PERIOD", optarg);
			break;
		case 'r':
			if (!sp_parse_rate(optarg, &number))
				return usage("--rate is off, or from 1/s to "
					     "1000000/s",
					     optarg);
			ok &= set("SAMPLEPROF_RATE", optarg);
			break;
		case 'o':
			if (!*optarg)
				return usage("--out needs a name", NULL);
			ok &= set("SAMPLEPROF_OUT", optarg);
			break;
		case 'f':
			if (!*optarg || strlen(optarg) > 255)
				return usage("--follow is all, none or the "
					     "name of a program",
					     optarg);
			ok &= set("SAMPLEPROF_FOLLOW", optarg);
			break;
		case 'x':
			ok &= set("SAMPLEPROF_START", "off");
			break;
		case 'q':
			ret->quiet = true;
			break;
		default:
			return point_to_help();
		}
	}
	if (optind == argc)
		return usage("run needs a program", NULL);
	return ok ? EXIT_FINE : usage("not enough memory", NULL);
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
		return fail(&err, r);
	sp_question_init(&question);
	r = sp_analysis_new(profile, &question, SP_VIEW_ALLOC, &analysis, &err);
	if (r < 0) {
		sp_profile_free(profile);
		return fail(&err, r);
	}
	print_figures(analysis);
	fputs(PROGRAM ": next: " PROGRAM "-report ", stderr);
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

static int command_run(int argc, char **argv)
{
	struct run_options options = {.quiet = false};
	char path[SP_LAUNCH_PATH_MAX];
	struct sp_files files;
	struct sp_error err;
	const char *note;
	uint64_t since;
	int r = parse_run(argc, argv, &options), status = 0;
	pid_t pid = 0;

	if (r)
		return r;
	r = sp_launch_check(argv[optind], path, &note, &err);
	if (r < 0)
		return fail(&err,
			    r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
	if (note)
		fprintf(stderr, PROGRAM ": %s\n", note);
	if (preload(&err) < 0)
		return fail(&err, EXIT_CANNOT_RUN);
	since = unix_ns();
	r = sp_launch_run(argv + optind, &pid, &status, &err);
	if (r < 0)
		return fail(&err,
			    r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
	if (!options.quiet) {
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

/* ---- ps ---- */

static void print_command(uint64_t pid)
{
	char path[64], text[512];
	size_t n;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/cmdline", pid);
	in = fopen(path, "re");
	n = in ? fread(text, 1, sizeof(text) - 1, in) : 0;
	if (in)
		fclose(in);
	for (size_t i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	text[n] = '\0';
	sp_text_print(stdout, text);
}

static void print_target(void *arg, const struct sp_target *target)
{
	(void)arg;
	printf("%8" PRIu64 "  ", target->pid);
	print_command(target->pid);
	fputs("  ", stdout);
	sp_text_print(stdout, target->path);
	putchar('\n');
}

int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_FINE;
	fprintf(stderr, PROGRAM ": standard output: %s\n", strerror(errno));
	return EXIT_ERROR;
}

static int command_ps(int argc)
{
	struct sp_error err;

	if (argc > 1)
		return usage("ps has no arguments", NULL);
	printf("%8s  %s  %s\n", "pid", "command", "profile");
	if (sp_target_list(print_target, NULL, &err) < 0)
		return fail(&err, EXIT_ERROR);
	return finish_output();
}

int main(int argc, char **argv)
{
	static char run_name[] = PROGRAM " run", ctl_name[] = PROGRAM " ctl";
	const char *command = argc > 1 ? argv[1] : "";

	/* Only which characters can be shown depends on the locale. */
	setlocale(LC_CTYPE, "");
	sp_text_set_ascii(strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
	if (strcmp(command, "--help") == 0 ||
	    (argc == 3 && strcmp(argv[2], "--help") == 0)) {
		fputs(help, stdout);
		return finish_output();
	}
	if (strcmp(command, "--version") == 0) {
		puts(PROGRAM " " SP_VERSION);
		return finish_output();
	}
	if (strcmp(command, "ps") == 0)
		return command_ps(argc - 1);
	if (strcmp(command, "run") == 0) {
		argv[1] = run_name; /* with which getopt begins its errors */
		return command_run(argc - 1, argv + 1);
	}
	if (strcmp(command, "ctl") == 0) {
		argv[1] = ctl_name;
		return command_ctl(argc - 1, argv + 1);
	}
	return usage(*command ? "unknown command" : "what is to be done",
		     *command ? command : NULL);
}
