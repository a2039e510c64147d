/* SPDX-License-Identifier: MIT */
/* The commands that need what no report does.  sampleprof starts it. */
#include <string.h>

#include "cli/commands.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

int main(int argc, char **argv)
{
	sp_console_init(argv[0]);
	sp_text_set_ascii(!sp_console_is_utf8());
	/* "sampleprof serve", or by its own name without the command. */
	if (argc > 1 && strcmp(argv[1], "serve") == 0) {
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	return run_serve(argc, argv);
}
