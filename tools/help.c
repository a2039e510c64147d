/* SPDX-License-Identifier: MIT */
/* sampleprof help: which commands there are. */
#include <stddef.h>
#include <errno.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "tools/commands.h"

static void describe_commands(FILE *out)
{
	fputs("\nRecord:\n", out);
	sp_command_print_recording(out);
	fputs("\nRead profiles:\n", out);
	sp_command_print_reading(out);
}

/* An option of the report, or nearly one: the command is missing. */
static int refuse_in_help(const char *name, struct sp_error *err)
{
	static const struct sp_argument_group *const groups[] = {
		&sp_options_question, &sp_options_filter, &sp_options_method,
		&sp_options_report, &sp_options_symbols};
	struct sp_nearest own, nearest;

	sp_nearest_init(&own, name);
	sp_nearest_init(&nearest, name);
	for (const struct sp_argument *a = sp_arguments_about.option; a->name;
	     a++)
		sp_nearest_try(&own, a->name);
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		for (const struct sp_argument *a = groups[i]->option; a->name;
		     a++)
			sp_nearest_try(&nearest, a->name);
	return sp_nearest_name(&own) || !sp_nearest_name(&nearest)
		       ? 0
		       : sp_error_set(err, -EINVAL, NULL,
				      "the command goes first: did you mean "
				      "sampleprof report --%s?",
				      sp_nearest_name(&nearest));
}

const struct sp_command_line help_line = {
	.forms = "COMMAND [OPTION]... [ARGUMENT]...\n"
		 "help [COMMAND]",
	.brief = "Record which functions of a program allocate how much, and "
		 "what stays alive;\n"
		 "read the profile, each figure with its confidence interval.\n"
		 "\n"
		 "  run PROGRAM        run a program and record it\n"
		 "  attach PID         record a process that already runs; "
		 "detach PID ends that\n"
		 "  ctl PID COMMAND    switch the sampling of a process, mark "
		 "phases\n"
		 "  ps                 list the processes that are recorded\n"
		 "  ls [DIR]           list the profiles in a directory\n"
		 "  report FILE        functions: bytes with their intervals\n"
		 "  tree FILE          the call tree, from the outermost "
		 "callers\n"
		 "  peek REGEX FILE    callers and callees of functions\n"
		 "  leaks FILE         which call sites leak, which fill a "
		 "cache\n"
		 "  diff OLD NEW       what changed\n"
		 "  check NEW          compare a profile with limits, for CI\n"
		 "  rss PID            where the resident memory of a process "
		 "is\n"
		 "  export FORMAT      a profile for another program, or as a "
		 "page\n"
		 "\n"
		 "`sampleprof help COMMAND` shows what is used most of a "
		 "command, with --help-all\n"
		 "all of it. `sampleprof --help-all`: all commands.\n",
	.about = "Record which functions of a program allocate how much, and "
		 "what stays alive;\n"
		 "read the profile, each figure with its confidence "
		 "interval.\n",
	.describe = describe_commands,
	.parts = (const struct sp_argument_part[]){{&sp_arguments_alone, 0},
						   {0}},
	.ending = "`sampleprof help COMMAND` shows the options of a command.\n",
	.stops_at_word = true,
	.refuse = refuse_in_help,
};
