/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into the command that attaches: it and its process group end by
 * SIGKILL before (KILLED=before:N) or after (after:N) the N-th request that
 * changes what a traced thread does, or when it is run.
 */
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

typedef int schedule_fn(pid_t tid, int policy, const struct sched_param *param);
typedef int niceness_fn(int which, id_t tid, int nice);
typedef long trace_fn(int request, pid_t tid, void *address, void *data);

static unsigned int n_requests;

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

	if (at && strncmp(at, when, n) == 0 && at[n] == ':' &&
	    strtoul(at + n + 1, NULL, 10) == n_requests)
		kill(0, SIGKILL);
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
		end_at("before");
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
		end_at("before");
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
		end_at("before");
	ret = next((int)which, tid, nice);
	if (tid)
		end_at("after");
	return ret;
}
