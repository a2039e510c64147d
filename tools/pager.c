/* SPDX-License-Identifier: MIT */
#include "tools/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager; /* 0: none */

/* The command; NULL: none is wanted. */
static const char *pager_command(void)
{
	const char *command = getenv("PAGER");
	const char *terminal = getenv("TERM");

	if (!terminal || !*terminal || strcmp(terminal, "dumb") == 0)
		return NULL;
	if (!command)
		return "less";
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/* What is more than the name of a program is for the shell. */
static int spawn_pager(const char *command, int input, pid_t *ret_pid)
{
	const bool is_name =
		!command[strcspn(command, "|&;<>()$`\\\"' \t\n*?[#~=%")];
	const char *const words[] = {"sh", "-c", command, NULL};
	const char *const *argv = is_name ? words + 2 : words;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int r = ENOMEM;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return r;
	if (posix_spawnattr_init(&attributes) == 0) {
		r = posix_spawn_file_actions_adddup2(&actions, input,
						     STDIN_FILENO);
		posix_spawnattr_setsigdefault(&attributes, &defaults);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
		if (!r)
			r = posix_spawnp(
				ret_pid, argv[0], &actions, &attributes,
				(char *const *)(uintptr_t)argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

void sp_pager_start(void)
{
	const char *command = pager_command();
	int ends[2];

	if (!command || !isatty(STDOUT_FILENO) || pipe2(ends, O_CLOEXEC) < 0)
		return;
	/* less: leave at once if all fits, let colours pass, leave the text on
	 * the screen. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	if (spawn_pager(command, ends[0], &pager) != 0)
		pager = 0;
	else
		dup2(ends[1], STDOUT_FILENO);
	close(ends[0]);
	close(ends[1]);
}

bool sp_pager_is_on(void)
{
	return pager != 0;
}

void sp_pager_wait(void)
{
	if (!pager)
		return;
	/* An interrupt is for the pager, which stays. */
	signal(SIGINT, SIG_IGN);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
