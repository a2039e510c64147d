/* SPDX-License-Identifier: MIT */
#include "tools/names.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "control/launch.h"
#include "text/text.h"
#include "tools/console.h"

#define PROGRAM "sampleprof"

/* The words for one more file, behind which there is room for the last seven.
 */
static bool add_module(struct names *names, const char *path, const char *file)
{
	static char option[] = "--module";
	char **grown =
		reallocarray(names->command, names->n + 9, sizeof(*grown));

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

bool names_begin(struct names *names, struct sp_kept *kept, uint64_t within_ns)
{
	static char symbolize[] = "symbolize";
	char program[SP_LAUNCH_PATH_MAX], file[SP_KEPT_FILE_BYTES];
	const char *path = NULL;
	struct sp_error err;
	bool is_fine;

	*names = (struct names){.n = 2, .until_ns = sp_clock_ns() + within_ns};
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

bool names_are_last(const struct names *names, const char *program)
{
	const size_t n = strlen(program);

	for (size_t i = 3; i < names->n; i += 2) {
		const char *path = names->command[i];
		const char *end = strrchr(path, '=');
		const size_t length = (size_t)(end - path);

		if (length > n && end[-(ptrdiff_t)n - 1] == '/' &&
		    memcmp(end - n, program, n) == 0)
			return true;
	}
	return false;
}

/* By the command, whose standard output goes nowhere.  False: not started. */
static bool run_command(char *const *command, int *ret_status)
{
	int before = dup(STDOUT_FILENO), nowhere;
	struct sp_error err;
	bool is_started;
	pid_t pid;

	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	fflush(stdout);
	if (nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	is_started = sp_launch_run(command, &pid, ret_status, &err) >= 0;
	if (before >= 0)
		dup2(before, STDOUT_FILENO);
	if (before >= 0)
		close(before);
	if (nowhere >= 0)
		close(nowhere);
	if (!is_started)
		sp_console_fail_with(&err);
	return is_started;
}

bool names_add(const struct names *names, char *path)
{
	static char timeout[] = "--timeout", output[] = "-o", operands[] = "--";
	const uint64_t now_ns = sp_clock_ns();
	const uint64_t left_ns =
		now_ns < names->until_ns ? names->until_ns - now_ns : 0;
	char **last = names->command + names->n, time[32];
	bool goes_on = left_ns != 0;
	int status = 1;

	snprintf(time, sizeof(time), "%" PRIu64 "us", left_ns / 1000);
	last[0] = timeout;
	last[1] = time;
	last[2] = output;
	last[3] = path;
	last[4] = operands;
	last[5] = path;
	last[6] = NULL;
	if (goes_on)
		goes_on = run_command(names->command, &status);
	else
		fputs(PROGRAM ": no time is left for names: `" PROGRAM
			      " symbolize FILE -o FILE` adds them\n",
		      stderr);
	if (status == 0)
		return true;
	fputs(PROGRAM ": names were not added to ", stderr);
	sp_text_print(stderr, path);
	putc('\n', stderr);
	return goes_on;
}

void names_end(struct names *names)
{
	for (size_t i = 3; names->command && i < names->n; i += 2)
		free(names->command[i]);
	free(names->command);
	free(names->program);
	*names = (struct names){.command = NULL};
}
