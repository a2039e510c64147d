/* SPDX-License-Identifier: MIT */
#include "control/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Candidates relative to the directory of this program. */
static const char *const libraries[] = {
	SP_LIBRARY_FROM_BIN, "../src/agent/libsampleprof.so", /* in the build */
};

/* The directory of this program. */
static int find_directory(char path[SP_LAUNCH_PATH_MAX], struct sp_error *err)
{
	ssize_t n = readlink("/proc/self/exe", path, SP_LAUNCH_PATH_MAX - 1);

	if (n <= 0)
		return sp_error_set(err, -ENOENT, NULL,
				    "cannot tell where this program is: /proc "
				    "is not mounted");
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	return 0;
}

int sp_launch_beside(const char *name, char path[SP_LAUNCH_PATH_MAX],
		     struct sp_error *err)
{
	int r = find_directory(path, err);
	size_t used;

	if (r < 0)
		return r;
	used = strlen(path);
	if (used + 1 + strlen(name) >= SP_LAUNCH_PATH_MAX)
		return sp_error_set(err, -ENAMETOOLONG, NULL,
				    "the path of this program is too long");
	sprintf(path + used, "/%s", name);
	return 0;
}

int sp_launch_library(char path[SP_LAUNCH_PATH_MAX], struct sp_error *err)
{
	char self[SP_LAUNCH_PATH_MAX], joined[SP_LAUNCH_PATH_MAX + 128];
	int n = find_directory(self, err);

	if (n < 0)
		return n;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		char *real;

		snprintf(joined, sizeof(joined), "%s/%s", self, libraries[i]);
		real = realpath(joined, NULL);
		if (!real)
			continue;
		n = snprintf(path, SP_LAUNCH_PATH_MAX, "%s", real);
		free(real);
		if (n < SP_LAUNCH_PATH_MAX && !strpbrk(path, " :"))
			return 0;
		return sp_error_set(err, -ENOENT, NULL,
				    "LD_PRELOAD cannot name a path with a "
				    "space or a colon: %.150s",
				    path);
	}
	return sp_error_set(err, -ENOENT, NULL,
			    "libsampleprof.so is not where it was installed: "
			    "%.150s/%s",
			    self, SP_LIBRARY_FROM_BIN);
}

/* ---- signals go to the program ---- */

static volatile pid_t child;

/* All that somebody may send to end, stop or tell a program something. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
				SIGUSR2, SIGALRM, SIGWINCH, SIGCONT};

#define N_FORWARDED (sizeof(forwarded) / sizeof(*forwarded))

static void forward_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	/* What a terminal sends, it sends to the program as well. */
	if (child > 0 && info->si_code != SI_KERNEL)
		kill(child, number);
}

static void forward_signals(struct sigaction before[N_FORWARDED])
{
	struct sigaction action = {.sa_sigaction = forward_signal,
				   .sa_flags = SA_RESTART | SA_SIGINFO};

	for (size_t i = 0; i < N_FORWARDED; i++) {
		sigaction(forwarded[i], NULL, &before[i]);
		/* What is ignored here is ignored there. */
		if (before[i].sa_handler != SIG_IGN)
			sigaction(forwarded[i], &action, NULL);
	}
}

/* In the child: as the program would have had it without us. */
static void restore_signals(const struct sigaction before[N_FORWARDED],
			    const sigset_t *mask)
{
	for (size_t i = 0; i < N_FORWARDED; i++)
		sigaction(forwarded[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

/* The exec's errno comes through a pipe that a successful exec closes. */
static int start_program(char *const *argv, const struct sigaction *before,
			 const sigset_t *mask)
{
	int ends[2], code = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		restore_signals(before, mask);
		execvp(argv[0], argv);
		code = errno;
		n = write(ends[1], &code, sizeof(code));
		_exit(n == (ssize_t)sizeof(code) ? 127 : 126);
	}
	if (pid < 0)
		code = errno;
	close(ends[1]);
	while (pid > 0) {
		n = read(ends[0], &code, sizeof(code));
		if (n >= 0 || errno != EINTR)
			break;
	}
	close(ends[0]);
	if (code && pid > 0)
		waitpid(pid, NULL, 0);
	if (!code)
		child = pid;
	return -code;
}

int sp_launch_run(char *const *argv, pid_t *ret_pid, int *ret_status,
		  struct sp_error *err)
{
	struct sigaction before[N_FORWARDED];
	sigset_t all, mask;
	int r;

	/* None is lost between the fork and the handler that knows of it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	forward_signals(before);
	r = start_program(argv, before, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (r < 0)
		return sp_error_set(err, r, argv[0], "cannot be run: %s",
				    strerror(-r));
	while (waitpid(child, ret_status, 0) < 0)
		if (errno != EINTR)
			return sp_error_set(err, -errno, argv[0], "%s",
					    strerror(errno));
	*ret_pid = child;
	child = 0;
	return 0;
}
