/* SPDX-License-Identifier: MIT */
/* The command that people meet.  It runs programs under the library by itself,
 * and leaves what reads profiles to sampleprof-report beside it: so a run loads
 * no more than it needs, and goes without the other program. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "control/launch.h"
#include "text/text.h"
#include "tools/commands.h"
#include "tools/console.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} own_commands[] = {
	{"run", run_run},       {"preload-path", run_preload_path},
	{"ps", run_ps},         {"ctl", run_ctl},
	{"ls", run_ls},         {"attach", run_attach},
	{"detach", run_detach},
};

/* Another program, under our name.  argv[0] is of no use but for that. */
static int exec_beside(const char *program, char **argv)
{
	static char name[] = SP_COMMAND_PROGRAM;
	char path[SP_LAUNCH_PATH_MAX];
	struct sp_error err;

	if (strcmp(sp_command_program(argv[0]), SP_COMMAND_PROGRAM) != 0)
		argv[0] = name;
	if (sp_launch_beside(program, path, &err) < 0)
		return sp_console_fail_with(&err);
	execv(path, argv);
	sp_error_set(&err, -errno, path,
		     "cannot be run for the command %.40s: %s", argv[1],
		     strerror(errno));
	return sp_console_fail_with(&err);
}

/* A program or a profile may have been given without the command. */
static const char *guess_command(const char *word)
{
	struct stat status;

	if (stat(word, &status) != 0 || !S_ISREG(status.st_mode))
		return NULL;
	return access(word, X_OK) == 0 ? "run" : "report";
}

static int fail_unknown(const char *word)
{
	const char *nearest = sp_command_nearest(word);
	const char *command = guess_command(word);
	struct sp_error err;

	if (command)
		sp_error_set(&err, -EINVAL, NULL,
			     "unknown command %.80s: did you mean "
			     "sampleprof %s %.80s?",
			     word, command, word);
	else if (nearest)
		sp_error_set(&err, -EINVAL, NULL,
			     "unknown command %.80s: did you mean %s?", word,
			     nearest);
	else
		sp_error_set(&err, -EINVAL, NULL, "unknown command %.80s",
			     word);
	return sp_console_fail_usage(err.message, "");
}

static int run_command(int argc, char **argv)
{
	const struct sp_command *command;
	char *const name = argv[0];

	for (size_t i = 0; i < sizeof(own_commands) / sizeof(*own_commands);
	     i++) {
		if (strcmp(argv[1], own_commands[i].name) != 0)
			continue;
		argv[1] = name;
		return own_commands[i].run(argc - 1, argv + 1);
	}
	command = sp_command_find(argv[1]);
	if (!command)
		return fail_unknown(argv[1]);
	return exec_beside(command->place == SP_COMMAND_SERVED
				   ? SP_COMMAND_SERVER
				   : SP_COMMAND_OFFLINE,
			   argv);
}

/* The words are help and what follows. */
static int run_help(char *name, int argc, char **argv)
{
	static char option[] = "--help";
	char *words[] = {name, argv[1], option, NULL};

	if (argc > 2)
		return sp_console_fail_usage("help takes one command", "");
	if (argc < 2 || strcmp(argv[1], "help") == 0)
		return sp_console_print_help(&help_line);
	return run_command(3, words);
}

int main(int argc, char **argv)
{
	const char *const *words;
	size_t n;
	int code;

	sp_console_init(SP_COMMAND_PROGRAM);
	sp_text_set_ascii(!sp_console_is_utf8());
	code = sp_console_parse(&help_line, "", argc, argv, NULL, &words, &n);
	if (code >= 0)
		return code;
	if (!n) {
		sp_arguments_print_help(stderr, &help_line, SP_COMMAND_PROGRAM);
		return EXIT_USAGE;
	}
	/* "--" may stand before the command. */
	argv[argc - (int)n - 1] = argv[0];
	argv += argc - (int)n - 1;
	if (strcmp(argv[1], "help") == 0)
		return run_help(argv[0], (int)n, argv + 1);
	return run_command((int)n + 1, argv);
}
