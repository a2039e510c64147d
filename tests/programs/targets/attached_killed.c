/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into the command that attaches: it and its worker end by SIGKILL
 * before (KILLED=before:N) or after (after:N) the N-th request that changes
 * what a traced thread does, or when it is run.  KILLED=command:N: the command
 * alone, before the request.  TRACE_ERROR=N: the kernel cannot suspend seccomp
 * filters, and refuses with that errno.  ENDED=PID: that process ends as soon
 * as the worker has ended.
 *
 * Or a process exchanges its new memory file: on SIGUSR1, which it gets before
 * the command opens that file (EXCHANGED=open) or once it is sealed (sealed).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUSPENDS_FILTERS (1u << 21) /* PTRACE_O_SUSPEND_SECCOMP */

typedef int schedule_fn(pid_t tid, int policy, const struct sched_param *param);
typedef int niceness_fn(int which, id_t tid, int nice);
typedef long trace_fn(int request, pid_t tid, void *address, void *data);
typedef pid_t wait_fn(pid_t pid, int *status, int options);
typedef int open_fn(const char *path, int flags, ...);
typedef int control_fn(int fd, int request, long argument);

static unsigned int n_requests;
static pid_t own_pid;

static void __attribute__((constructor)) note_command(void)
{
	own_pid = getpid();
}

static int changes(int request)
{
	return request == PTRACE_SETREGSET || request == PTRACE_SETSIGMASK ||
	       request == PTRACE_SYSCALL || request == PTRACE_CONT ||
	       request == PTRACE_INTERRUPT || request == PTRACE_DETACH;
}

static void end_at(const char *when)
{
	const char *at = getenv("KILLED");
	const size_t n = strlen(when);

	if (!at || strncmp(at, when, n) != 0 || at[n] != ':' ||
	    strtoul(at + n + 1, NULL, 10) != n_requests)
		return;
	kill(own_pid, SIGKILL);
	if (strcmp(when, "command") != 0)
		kill(getpid(), SIGKILL);
}

static void end_before(void)
{
	end_at("before");
	end_at("command");
}

/* As a kernel without CONFIG_CHECKPOINT_RESTORE does. */
static int is_refused(int request, const void *data)
{
	return request == PTRACE_SEIZE && getenv("TRACE_ERROR") &&
	       (uintptr_t)data & SUSPENDS_FILTERS;
}

long ptrace(enum __ptrace_request request, ...)
{
	trace_fn *next = (trace_fn *)(uintptr_t)dlsym(RTLD_NEXT, "ptrace");
	const int counts = changes((int)request);
	void *address, *data;
	va_list args;
	pid_t tid;
	long ret;

	va_start(args, request);
	tid = va_arg(args, pid_t);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	n_requests += (unsigned int)counts;
	if (counts)
		end_before();
	if (is_refused((int)request, data)) {
		errno = atoi(getenv("TRACE_ERROR"));
		return -1;
	}
	ret = next((int)request, tid, address, data);
	if (counts)
		end_at("after");
	return ret;
}

int sched_setscheduler(pid_t tid, int policy, const struct sched_param *param)
{
	schedule_fn *next = (schedule_fn *)(uintptr_t)dlsym(
		RTLD_NEXT, "sched_setscheduler");
	int ret;

	n_requests += tid != 0;
	if (tid)
		end_before();
	ret = next(tid, policy, param);
	if (tid)
		end_at("after");
	return ret;
}

int setpriority(enum __priority_which which, id_t tid, int nice)
{
	niceness_fn *next =
		(niceness_fn *)(uintptr_t)dlsym(RTLD_NEXT, "setpriority");
	int ret;

	n_requests += tid != 0;
	if (tid)
		end_before();
	ret = next((int)which, tid, nice);
	if (tid)
		end_at("after");
	return ret;
}

static void end_process(const char *pid)
{
	struct pollfd end = {(int)syscall(SYS_pidfd_open, atoi(pid), 0), POLLIN,
			     0};

	kill(atoi(pid), SIGKILL);
	poll(&end, 1, -1);
	close(end.fd);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	wait_fn *next = (wait_fn *)(uintptr_t)dlsym(RTLD_NEXT, "waitpid");
	const pid_t got = next(pid, status, options);

	if (got > 0 && getpid() == own_pid && getenv("ENDED"))
		end_process(getenv("ENDED"));
	return got;
}

/* ---- exchanged ---- */

#define MEMORY_FILE "/memfd:"

static char exchanged[80]; /* the path of the memory file */

static void have_it_exchanged(const char *when)
{
	const char *wanted = getenv("EXCHANGED");
	char file[sizeof(MEMORY_FILE)] = "";
	int pid, fd;

	if (!wanted || strcmp(wanted, when) != 0 ||
	    sscanf(exchanged, "/proc/%d/task/%*d/fd/%d", &pid, &fd) != 2)
		return;
	kill(pid, SIGUSR1);
	do
		if (readlink(exchanged, file, sizeof(MEMORY_FILE) - 1) < 0)
			return;
	while (strcmp(file, MEMORY_FILE) == 0);
}

int open(const char *path, int flags, ...)
{
	open_fn *next = (open_fn *)(uintptr_t)dlsym(RTLD_NEXT, "open");
	int pid, fd;
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (sscanf(path, "/proc/%d/task/%*d/fd/%d", &pid, &fd) == 2) {
		snprintf(exchanged, sizeof(exchanged), "%s", path);
		have_it_exchanged("open");
	}
	return next(path, flags, mode);
}

int fcntl(int fd, int request, ...)
{
	control_fn *next = (control_fn *)(uintptr_t)dlsym(RTLD_NEXT, "fcntl");
	va_list args;
	long argument;
	int ret;

	va_start(args, request);
	argument = va_arg(args, long);
	va_end(args);
	ret = next(fd, request, argument);
	if (request == F_ADD_SEALS)
		have_it_exchanged("sealed");
	return ret;
}
