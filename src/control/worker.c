/* SPDX-License-Identifier: MIT */
#include "control/worker.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS 100000000
/* How long a killed worker is waited for. */
#define KILLED_NS 5000000000ull

/* Of a terminal or a service manager: they also go to the worker, which must
 * neither end nor stop in the middle. */
static const int held[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
			   SIGTSTP, SIGTTIN, SIGTTOU};
#define N_HELD (sizeof(held) / sizeof(*held))

static void fill_held(sigset_t *signals)
{
	sigemptyset(signals);
	for (size_t i = 0; i < N_HELD; i++)
		sigaddset(signals, held[i]);
}

/* The signals that end this process, and SIGCHLD. */
static void fill_awaited(sigset_t *signals)
{
	struct sigaction now;

	sigemptyset(signals);
	sigaddset(signals, SIGCHLD);
	for (size_t i = 0; i < N_HELD && held[i] != SIGTSTP; i++)
		if (sigaction(held[i], NULL, &now) == 0 &&
		    now.sa_handler != SIG_IGN)
			sigaddset(signals, held[i]);
}

static _Noreturn void be_worker(pid_t parent, void (*work)(void *), void *arg)
{
	/* Its process group may be stopped, and it must not stop with it. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		work(arg);
	_exit(0);
}

/* 0: it has ended by itself; -EINTR: it was killed. */
static int status_of(int status)
{
	return WIFEXITED(status) ? 0 : -EINTR;
}

static int watch_worker(pid_t worker, struct sp_worker *shared, int *ret_signal)
{
	const struct timespec look = {0, LOOK_NS};
	uint64_t killed_ns = 0;
	sigset_t awaited;

	fill_awaited(&awaited);
	for (;;) {
		const uint64_t moved_ns = atomic_load(&shared->moved_ns);
		const uint64_t now = sp_clock_ns();
		int status, signal;

		if (waitpid(worker, &status, WNOHANG) == worker)
			return killed_ns ? -ETIMEDOUT : status_of(status);
		if (killed_ns && now - killed_ns > KILLED_NS)
			return -ETIMEDOUT;
		if (!killed_ns && now > moved_ns &&
		    now - moved_ns > SP_WORKER_STUCK_NS) {
			kill(worker, SIGKILL);
			killed_ns = now;
		}
		signal = sigtimedwait(&awaited, NULL, &look);
		if (signal > 0 && signal != SIGCHLD) {
			atomic_store(&shared->is_cancelled, true);
			*ret_signal = *ret_signal ? *ret_signal : signal;
		}
	}
}

int sp_worker_run(struct sp_worker *shared, void (*work)(void *arg), void *arg,
		  int *ret_signal)
{
	const struct sigaction plain = {.sa_handler = SIG_DFL};
	const pid_t parent = getpid();
	struct sigaction child_before;
	sigset_t signals, before;
	int r = 0;
	pid_t worker;

	*ret_signal = 0;
	/* Where SIGCHLD is ignored, the kernel reports no end. */
	sigaction(SIGCHLD, &plain, &child_before);
	fill_held(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	atomic_store(&shared->moved_ns, sp_clock_ns());
	worker = fork();
	if (worker == 0)
		be_worker(parent, work, arg);
	r = worker < 0 ? -errno : watch_worker(worker, shared, ret_signal);
	sigaction(SIGCHLD, &child_before, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
