/* SPDX-License-Identifier: MIT */
/* The options of sampleprof run, and the settings of the program by them. */
#include "tools/run_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "compare/check_period.h"
#include "tools/commands.h"
#include "tools/console.h"

/* Of an executable, as the agent takes it. */
#define FOLLOW_MAX 255

static bool take_follow(void *part, const char *text)
{
	struct run_options *o = part;

	o->follow = text;
	return *text && strlen(text) <= FOLLOW_MAX;
}

static bool take_fraction(void *part, const char *text)
{
	struct run_options *o = part;
	uint64_t millionths;

	o->fraction = text;
	return sp_parse_fraction(text, &millionths);
}

/* One or some of them, behind those that were given before. */
static bool take_label(void *part, const char *text)
{
	struct run_options *o = part;
	const size_t n = strlen(o->labels);

	if (!*text || sp_labels_check(text))
		return false;
	return (size_t)snprintf(o->labels + n, sizeof(o->labels) - n, "%s%s",
				n ? "," : "", text) < sizeof(o->labels) - n;
}

#define FLAG(name, member, help)                                               \
	SP_ARGUMENT_FLAG(struct run_options, name, member, help)

static const struct sp_argument arguments[] = {
	{"out", 0, "FILE", "a path", sp_argument_text,
	 offsetof(struct run_options, out),
	 "profile, or a directory that is there (default\n"
	 "%e.%p.sprof)"},
	{"follow", 0, "all|none|NAME", "all, none or the name of a program",
	 take_follow, 0,
	 "which processes are recorded: all that the program\n"
	 "starts (default), only itself, or those with the program\n"
	 "name NAME"},
	{"label", 0, "KEY=VALUE",
	 "KEY=VALUE[,...] of letters, digits and ._-:/@+", take_label, 0,
	 "a label of the processes, or some with commas between\n"
	 "them: service=checkout,version=1.7; may be given again"},
	{"fraction", 0, "SHARE", "a share such as 5% or 0.25%", take_fraction,
	 0,
	 "record only that share of the processes, drawn by chance\n"
	 "(default 100%)"},
	{"for-check", 0, "FILE", "a file", sp_argument_text,
	 offsetof(struct run_options, for_check),
	 "the period with which the check can tell whose --format\n"
	 "json=FILE this is; or that of a baseline (.json)"},
	FLAG("off", off, "sample nothing until `sampleprof ctl PID start`"),
	FLAG("python", python,
	     "see all of Python's objects, those of its own arenas\n"
	     "too: sets PYTHONMALLOC=malloc"),
	FLAG("rss", rss,
	     "as each process ends, show what its resident memory is\n"
	     "made of, and put that into its profile"),
	FLAG("rss-at-peak", rss_at_peak,
	     "also look when resident memory has grown by 5 %, and\n"
	     "keep the last look"),
	FLAG("no-symbols", no_symbols,
	     "do not put the names of functions into the profiles at\n"
	     "the end"),
	FLAG("quiet", quiet, "say nothing at the end"),
	{0},
};

static const struct sp_argument_group group = {NULL, arguments,
					       sampling_follow};

const struct sp_command_line run_line = {
	.forms = "run [OPTION]... [--] PROGRAM [ARGUMENT]...",
	.brief = "Run a program under the heap profiler, say at the end what "
		 "was recorded, and\n"
		 "put the names of functions into the profiles.\n"
		 "\n"
		 "  --period SIZE      mean bytes between two samples (default "
		 "512K)\n"
		 "  --out FILE         profile, or a directory that is there "
		 "(default\n"
		 "                     %e.%p.sprof)\n"
		 "  --follow all|none|NAME\n"
		 "                     which processes are recorded: all that "
		 "the program\n"
		 "                     starts (default), only itself, or those "
		 "with the program\n"
		 "                     name NAME\n"
		 "  --off              sample nothing until `sampleprof ctl "
		 "PID start`\n"
		 "  --python           see all of Python's objects, those of "
		 "its arenas too\n"
		 "  --rss              as each process ends, show what its "
		 "resident memory is\n"
		 "                     made of\n"
		 "  --quiet            say nothing at the end\n"
		 "  --help-all         all options\n"
		 "\n"
		 "Exit status: that of the program; 2 usage, 126 if it cannot "
		 "be run or profiled,\n"
		 "127 if it was not found.\n",
	.about = "Run a program under the heap profiler: set LD_PRELOAD, pass "
		 "on signals and the\n"
		 "exit status, say at the end what was recorded, and put the "
		 "names of functions\n"
		 "into the profiles.\n",
	.parts =
		(const struct sp_argument_part[]){
			SP_ARGUMENT_PART(struct run_options, sampling_group,
					 sampling),
			{&group, 0},
			{&sp_arguments_about, 0},
			{0}},
	.ending = "Exit status: that of the program; 2 usage, 126 if it cannot "
		  "be run or profiled,\n"
		  "127 if it was not found.\n",
	.stops_at_word = true,
};

static bool set_variable(const char *name, const char *value)
{
	return setenv(name, value, 1) == 0;
}

static bool export_ledger(const struct run_options *o)
{
	if (!o->rss)
		return unsetenv("SAMPLEPROF_LEDGER") == 0;
	return set_variable("SAMPLEPROF_LEDGER",
			    o->rss_at_peak ? "peak" : "end");
}

int run_options_read_period(struct run_options *o)
{
	struct sp_error err;
	uint64_t bytes;

	if (!o->for_check)
		return EXIT_FINE;
	if (o->sampling.period)
		return sp_console_fail_usage(
			"--period or --for-check, not both", "run");
	if (sp_check_period_read(o->for_check, &bytes, &err) < 0) {
		char text[1024];

		sp_error_describe(&err, text, sizeof(text));
		return sp_console_fail_usage(text, "run");
	}
	snprintf(o->period, sizeof(o->period), "%" PRIu64, bytes);
	o->sampling.period = o->period;
	return EXIT_FINE;
}

bool run_options_export(const struct run_options *o)
{
	return (!o->sampling.period ||
		set_variable("SAMPLEPROF_PERIOD", o->sampling.period)) &&
	       (!o->sampling.rate ||
		set_variable("SAMPLEPROF_RATE", o->sampling.rate)) &&
	       (!o->out || set_variable("SAMPLEPROF_OUT", o->out)) &&
	       (!o->follow || set_variable("SAMPLEPROF_FOLLOW", o->follow)) &&
	       (!o->fraction ||
		set_variable("SAMPLEPROF_FRACTION", o->fraction)) &&
	       (!o->off || set_variable("SAMPLEPROF_START", "off")) &&
	       export_ledger(o) &&
	       (!o->python || set_variable("PYTHONMALLOC", "malloc"));
}

int run_options_export_labels(const struct run_options *o)
{
	const char *before = getenv("SAMPLEPROF_LABELS");
	char all[2 * SP_LABELS_BYTES_MAX + 2], error[256];
	const char *why;

	if (!*o->labels)
		return EXIT_FINE;
	snprintf(all, sizeof(all), "%.*s%s%s", (int)SP_LABELS_BYTES_MAX,
		 before ? before : "", before && *before ? "," : "", o->labels);
	why = sp_labels_check(all);
	if (why) {
		snprintf(error, sizeof(error), "%s: the text of all labels %s",
			 before ? "SAMPLEPROF_LABELS with --label" : "--label",
			 why);
		return sp_console_fail_usage(error, "run");
	}
	return set_variable("SAMPLEPROF_LABELS", all)
		       ? EXIT_FINE
		       : sp_console_fail("not enough memory");
}
