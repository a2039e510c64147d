/* SPDX-License-Identifier: MIT */
/*
 * A thread that executes a program waits until all other threads have ended,
 * and a traced one has ended only when its tracer has seen that.  Meanwhile the
 * kernel traces no further thread of the process: PTRACE_SEIZE waits.  So a
 * tracer that waits there, and has other threads to look at, waits for ever,
 * and the program with it.
 */
#include "control/seize.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

/* SIGCHLD reports each stop.  In case that one is missed, poll as often. */
#define POLL_NS 1000000
/* How long PTRACE_SEIZE may wait. */
#define SEIZE_US 10000

static _Atomic uint64_t *moved;
static sigjmp_buf before_wait;
static volatile sig_atomic_t may_leave;

/* The kernel would begin the call anew if the handler returned. */
static void leave_wait(int signal)
{
	(void)signal;
	if (may_leave)
		siglongjmp(before_wait, 1);
}

static void fill_signal_set(sigset_t *signals, int signal)
{
	sigemptyset(signals);
	sigaddset(signals, signal);
}

void sp_seize_begin(_Atomic uint64_t *moved_ns)
{
	const struct sigaction leave = {.sa_handler = leave_wait};
	sigset_t signals;

	moved = moved_ns;
	sp_seize_move();
	fill_signal_set(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigaction(SIGALRM, &leave, NULL);
	fill_signal_set(&signals, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

void sp_seize_move(void)
{
	atomic_store(moved, sp_clock_ns());
}

void sp_seize_nap(void)
{
	const struct timespec poll = {0, POLL_NS};
	sigset_t signals;

	sp_seize_move();
	fill_signal_set(&signals, SIGCHLD);
	sigtimedwait(&signals, NULL, &poll);
}

int sp_seize(pid_t tid, long options)
{
	const struct itimerval limit = {.it_value = {0, SEIZE_US}}, none = {0};
	volatile int r = -EINTR;

	sp_seize_move();
	if (sigsetjmp(before_wait, 1) == 0) {
		may_leave = 1;
		setitimer(ITIMER_REAL, &limit, NULL);
		r = ptrace(PTRACE_SEIZE, tid, 0,
			   options | PTRACE_O_TRACEEXEC) == 0
			    ? 0
			    : -errno;
	}
	may_leave = 0;
	setitimer(ITIMER_REAL, &none, NULL);
	/* The signal may have come after the thread was traced. */
	if (r == -EINTR && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0)
		r = 0;
	return r;
}

int sp_seize_look(pid_t pid, pid_t *tid, int *ret_status)
{
	const int flags = __WALL | WNOHANG;
	pid_t got = waitpid(*tid, ret_status, flags);

	/* The kernel reports the end of each traced thread.  So this one has
	 * not ended, but has another id. */
	if (got < 0 && *tid != pid) {
		*tid = pid;
		got = waitpid(pid, ret_status, flags);
	}
	if (got == 0)
		return 0;
	if (got < 0 || !WIFSTOPPED(*ret_status))
		return -ESRCH;
	if (*ret_status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return 1;
	ptrace(PTRACE_DETACH, *tid, 0, 0);
	return -ESRCH;
}
