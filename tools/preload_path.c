/* SPDX-License-Identifier: MIT */
/* sampleprof preload-path: the library, for LD_PRELOAD. */
#include <stdio.h>

#include "control/launch.h"
#include "tools/commands.h"
#include "tools/console.h"

const struct sp_command_line preload_path_line = {
	.forms = "preload-path",
	.about = "Print the path of the library, for programs that are not "
		 "started by sampleprof\n"
		 "run:\n"
		 "\n"
		 "  LD_PRELOAD=$(sampleprof preload-path) ./app\n",
	.parts = (const struct sp_argument_part[]){{&sp_arguments_alone, 0},
						   {0}},
	.ending = "Exit status: 0 fine, 1 the library is not there, 2 usage.\n",
};

int run_preload_path(int argc, char **argv)
{
	char library[SP_LAUNCH_PATH_MAX];
	const char *const *words;
	struct sp_error err;
	size_t n;
	int code;

	code = sp_console_parse(&preload_path_line, "preload-path", argc, argv,
				NULL, &words, &n);
	if (code >= 0)
		return code;
	if (n)
		return sp_console_fail_usage("preload-path has no arguments",
					     "preload-path");
	if (sp_launch_library(library, &err) < 0)
		return sp_console_fail_with(&err);
	puts(library);
	return sp_console_finish();
}
