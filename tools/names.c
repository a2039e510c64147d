/* SPDX-License-Identifier: MIT */
#include "tools/names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "control/launch.h"
#include "text/text.h"
#include "tools/console.h"

#define PROGRAM "sampleprof"

/* The words for one more file, behind which there is room for the last five. */
static bool add_module(struct names *names, const char *path, const char *file)
{
	static char option[] = "--module";
	char **grown =
		reallocarray(names->command, names->n + 7, sizeof(*grown));

	if (!grown)
		return false;
	names->command = grown;
	if (!path)
		return true;
	grown[names->n] = option;
	if (asprintf(&grown[names->n + 1], "%s=%s", path, file) < 0)
		return false;
	names->n += 2;
	return true;
}

bool names_begin(struct names *names, struct sp_kept *kept)
{
	static char symbolize[] = "symbolize";
	char program[SP_LAUNCH_PATH_MAX], file[SP_KEPT_FILE_BYTES];
	const char *path = NULL;
	struct sp_error err;
	bool is_fine;

	*names = (struct names){.n = 2};
	if (sp_launch_beside(SP_COMMAND_OFFLINE, program, &err) < 0) {
		sp_console_fail_with(&err);
		return false;
	}
	names->program = strdup(program);
	is_fine = names->program && add_module(names, NULL, NULL);
	for (size_t i = 0;
	     is_fine && kept && (path = sp_kept_gone(kept, i, file)) != NULL;
	     i++)
		is_fine = add_module(names, path, file);
	if (!is_fine) {
		names_end(names);
		sp_console_fail("not enough memory");
		return false;
	}
	names->command[0] = names->program;
	names->command[1] = symbolize;
	return true;
}

bool names_add(const struct names *names, char *path)
{
	static char option[] = "-o", operands[] = "--";
	char **last = names->command + names->n;
	struct sp_error err;
	int status = 0, before = dup(STDOUT_FILENO), nowhere;
	bool is_started;
	pid_t pid;

	last[0] = option;
	last[1] = path;
	last[2] = operands;
	last[3] = path;
	last[4] = NULL;
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fflush(stdout);
	if (nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	is_started = sp_launch_run(names->command, &pid, &status, &err) >= 0;
	if (before >= 0)
		dup2(before, STDOUT_FILENO);
	if (before >= 0)
		close(before);
	if (nowhere >= 0)
		close(nowhere);
	if (!is_started)
		sp_console_fail_with(&err);
	else if (status == 0)
		return true;
	fputs(PROGRAM ": names were not added to ", stderr);
	sp_text_print(stderr, path);
	putc('\n', stderr);
	return is_started;
}

void names_end(struct names *names)
{
	for (size_t i = 3; names->command && i < names->n; i += 2)
		free(names->command[i]);
	free(names->command);
	free(names->program);
	*names = (struct names){.command = NULL};
}
