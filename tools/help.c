/* SPDX-License-Identifier: MIT */
/* sampleprof help: which commands there are. */
#include <stddef.h>
#include <stdio.h>

#include "cli/commands.h"
#include "tools/commands.h"

static const struct sp_argument arguments[] = {
	SP_ARGUMENTS_ABOUT(struct help_options)};

static const struct sp_argument_group group = {"Options", arguments, NULL};

static bool is_done(const void *options)
{
	const struct help_options *o = options;

	return o->help || o->version;
}

static void describe_commands(FILE *out)
{
	fputs("\nRecord:\n", out);
	sp_command_print_recording(out);
	fputs("\nRead profiles:\n", out);
	sp_command_print_reading(out);
}

const struct sp_command_line help_line = {
	.forms = "COMMAND [OPTION]... [ARGUMENT]...\n"
		 "help [COMMAND]",
	.about = "Record which functions of a program allocate how much, and "
		 "what stays alive;\n"
		 "read the profile, each figure with its confidence "
		 "interval.\n",
	.describe = describe_commands,
	.parts = (const struct sp_argument_part[]){{&group, 0}, {0}},
	.ending = "`sampleprof help COMMAND` shows the options of a command.\n",
	.stops_at_word = true,
	.is_done = is_done,
};
