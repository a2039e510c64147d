/* SPDX-License-Identifier: MIT */
#include "cli/commands.h"

#include <stdbool.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/nearest.h"

const struct sp_command sp_commands[] = {
	{"run", SP_COMMAND_LAUNCHER, "PROGRAM", "run a program and record it"},
	{"attach", SP_COMMAND_LAUNCHER, "PID",
	 "record a process that already runs"},
	{"detach", SP_COMMAND_LAUNCHER, "PID",
	 "end a recording that attach began"},
	{"preload-path", SP_COMMAND_LAUNCHER, NULL,
	 "print the library, for LD_PRELOAD"},
	{"ps", SP_COMMAND_LAUNCHER, NULL,
	 "list the processes that are recorded"},
	{"ctl", SP_COMMAND_LAUNCHER, "PID COMMAND",
	 "switch the sampling of a process, mark phases"},
	{"ls", SP_COMMAND_LAUNCHER, "[DIR]",
	 "list the profiles in a directory"},
	{"report", SP_COMMAND_PAGE, "FILE",
	 "functions: bytes with their intervals"},
	{"top", SP_COMMAND_PAGE, "FILE",
	 "functions with 0.5 % of the view and more"},
	{"tree", SP_COMMAND_PAGE, "FILE",
	 "the call tree, from the outermost callers"},
	{"peek", SP_COMMAND_PAGE, "REGEX FILE",
	 "callers and callees of functions"},
	{"list", SP_COMMAND_PAGE, "REGEX FILE", "source lines of functions"},
	{"traces", SP_COMMAND_PAGE, "FILE", "all call stacks"},
	{"stats", SP_COMMAND_PAGE, "FILE",
	 "sizes, entry points, top sites at a glance"},
	{"export", SP_COMMAND_OTHER, "FORMAT",
	 "a profile for another program, or as a page"},
	{"symbolize", SP_COMMAND_OTHER, "FILE",
	 "a copy with names, to be read on another machine"},
	{"diff", SP_COMMAND_OTHER, "OLD NEW", "what changed"},
	{"check", SP_COMMAND_OTHER, "NEW",
	 "compare a profile with limits, for CI"},
	{"rss", SP_COMMAND_OTHER, "PID",
	 "where the resident memory of a process is"},
	{"leaks", SP_COMMAND_OTHER, "FILE",
	 "which call sites leak, which fill a cache"},
	{"advise", SP_COMMAND_OTHER, "FILE", "which sampling period to use"},
	{"serve", SP_COMMAND_SERVED, "[DIR]",
	 "profiles over HTTP: Prometheus, go tool pprof"},
	{"push", SP_COMMAND_SERVED, "[DIR|FILE]",
	 "send profiles to a Pyroscope server"},
	{"fleet", SP_COMMAND_SERVED, "ACTION",
	 "many processes in a database, in one report"},
	{"lab", SP_COMMAND_OTHER, "[FILE]",
	 "compare ways to sample by simulation"},
	{0},
};

const struct sp_command *sp_command_find(const char *name)
{
	for (const struct sp_command *c = sp_commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

const char *sp_command_nearest(const char *word)
{
	const char *here = sp_nearest_elsewhere("command", word);
	struct sp_nearest nearest;

	if (here)
		return here;
	sp_nearest_init(&nearest, word);
	for (const struct sp_command *c = sp_commands; c->name; c++)
		sp_nearest_try(&nearest, c->name);
	sp_nearest_try(&nearest, "help");
	return sp_nearest_name(&nearest);
}

const char *sp_command_program(const char *argv0)
{
	static const char *const programs[] = {
		SP_COMMAND_PROGRAM, "sampleprof-lab", SP_COMMAND_SERVER};
	const char *slash = strrchr(argv0, '/');
	const char *name = slash ? slash + 1 : argv0;

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (strcmp(name, programs[i]) == 0)
			return programs[i];
	return SP_COMMAND_OFFLINE;
}

const char *sp_command_implied(const char *program)
{
	const char *dash = strchr(program, '-');

	return dash ? dash + 1 : NULL;
}

static void print_commands(FILE *out, bool is_recording)
{
	for (const struct sp_command *c = sp_commands; c->name; c++) {
		int n;

		if ((c->place == SP_COMMAND_LAUNCHER) != is_recording)
			continue;
		n = fprintf(out, "  %s%s%s", c->name, c->operands ? " " : "",
			    c->operands ? c->operands : "");
		fprintf(out, "%*s", SP_ARGUMENTS_HELP_COLUMN - n, "");
		sp_arguments_print_lines(out, c->about);
	}
}

void sp_command_print_recording(FILE *out)
{
	print_commands(out, true);
}

void sp_command_print_reading(FILE *out)
{
	print_commands(out, false);
}
