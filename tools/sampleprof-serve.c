/* SPDX-License-Identifier: MIT */
/* The commands that need what no report does.  sampleprof starts it. */
#include <string.h>

#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {{"serve", run_serve}, {"push", run_push}, {"fleet", run_fleet}};

int main(int argc, char **argv)
{
	sp_console_init(argv[0]);
	sp_text_set_ascii(!sp_console_is_utf8());
	/* "sampleprof serve", or by its own name without the command. */
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands);
	     i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		argv[1] = argv[0];
		return commands[i].run(argc - 1, argv + 1);
	}
	return run_serve(argc, argv);
}
