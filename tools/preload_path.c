/* SPDX-License-Identifier: MIT */
/* sampleprof preload-path: the library, for LD_PRELOAD. */
#include <stdio.h>

#include "control/launch.h"
#include "tools/commands.h"
#include "tools/console.h"

struct preload_path_options {
	bool help;    /* asked for; nothing else counts */
	bool version; /* likewise */
};

static const struct sp_argument arguments[] = {
	SP_ARGUMENTS_ABOUT(struct preload_path_options)};

static const struct sp_argument_group group = {"Options", arguments, NULL};

const struct sp_command_line preload_path_line = {
	.forms = "preload-path",
	.about = "Print the path of the library, for programs that are not "
		 "started by sampleprof\n"
		 "run:\n"
		 "\n"
		 "  LD_PRELOAD=$(sampleprof preload-path) ./app\n",
	.parts = (const struct sp_argument_part[]){{&group, 0}, {0}},
	.ending = "Exit status: 0 fine, 1 the library is not there, 2 usage.\n",
};

int run_preload_path(int argc, char **argv)
{
	struct preload_path_options options = {0};
	char library[SP_LAUNCH_PATH_MAX];
	const char *const *words;
	struct sp_error err;
	size_t n;

	if (sp_arguments_parse(&preload_path_line, argc, argv, &options, &words,
			       &n, &err) < 0)
		return sp_console_fail_usage(err.message, "preload-path");
	if (options.help)
		return sp_console_print_help(&preload_path_line);
	if (options.version)
		return sp_console_print_version();
	if (n)
		return sp_console_fail_usage("preload-path has no arguments",
					     "preload-path");
	if (sp_launch_library(library, &err) < 0)
		return sp_console_fail_with(&err);
	puts(library);
	return sp_console_finish();
}
