/* SPDX-License-Identifier: MIT */
#include "control/tracee.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "control/frames.h"
#include "control/seize.h"
#include "base/clock.h"
#include "base/proc.h"

#define TRACE_OPTIONS (PTRACE_O_TRACESYSGOOD)
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

#define SYSCALL_STOP (SIGTRAP | 0x80)
/* How long a borrowed thread is waited for: it would crash if it were released
 * with our registers, and it needs only a processor or a lock of the kernel. */
#define BORROWED_NS 60000000000ull
#define RELEASE_NS  500000000ull

/* ---- stops ---- */

static long trace_thread(const struct sp_tracee *t, int request, long address,
			 long data)
{
	return ptrace(request, t->tid, address, data);
}

/* Wait for the next stop: its status as of waitpid; -ETIMEDOUT; or -EIO: the
 * thread has ended. */
static int wait_stop(struct sp_tracee *t, uint64_t timeout_ns)
{
	const uint64_t until = sp_clock_ns() + timeout_ns;
	int status;

	for (;;) {
		const int r = sp_seize_look(t->pid, &t->tid, &status);

		if (r < 0) {
			t->is_traced = false;
			return -EIO;
		}
		if (r > 0) {
			t->is_stopped = true;
			return status;
		}
		if (sp_clock_ns() > until)
			return -ETIMEDOUT;
		if (t->idle)
			t->idle(t->idle_arg);
		sp_seize_nap();
	}
}

static bool resume_thread(struct sp_tracee *t, int request, int signal)
{
	if (trace_thread(t, request, 0, signal) != 0)
		return false;
	t->is_stopped = false;
	return true;
}

static bool is_event_stop(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

/* Wait for the stop that PTRACE_INTERRUPT asked for.  Signals that come before
 * it are delivered to the program.  0; -ETIMEDOUT; -EIO: the thread has ended;
 * -EAGAIN: it stopped together with its whole process, by a signal such as
 * SIGSTOP. */
static int wait_requested_stop(struct sp_tracee *t, uint64_t timeout_ns)
{
	for (;;) {
		int status = wait_stop(t, timeout_ns);

		if (status < 0)
			return status;
		if (is_event_stop(status))
			return WSTOPSIG(status) == SIGTRAP ? 0 : -EAGAIN;
		if (!resume_thread(t, PTRACE_CONT, WSTOPSIG(status)))
			return -EIO;
	}
}

int sp_tracee_ask(struct sp_tracee *t, pid_t pid, pid_t tid,
		  bool without_filter, struct sp_error *err)
{
	const long options =
		TRACE_OPTIONS | (without_filter ? PTRACE_O_SUSPEND_SECCOMP : 0);
	int r;

	*t = (struct sp_tracee){.pid = pid,
				.tid = tid,
				.idle = t->idle,
				.idle_arg = t->idle_arg};
	r = sp_seize(tid, options);
	if (r < 0)
		return sp_error_set(err, r, NULL,
				    "thread %d cannot be traced: %s", tid,
				    strerror(-r));
	t->is_traced = true;
	t->stopped_ns = sp_clock_ns();
	/* A failure means that the thread has ended, which sp_tracee_look
	 * reports. */
	trace_thread(t, PTRACE_INTERRUPT, 0, 0);
	return 0;
}

/* ---- registers ---- */

static bool set_regs(struct sp_tracee *t, const sp_cpu_regs *to)
{
	return sp_cpu_write(t->tid, to);
}

static bool get_regs(struct sp_tracee *t)
{
	return sp_cpu_read(t->tid, &t->now);
}

static bool save_state(struct sp_tracee *t)
{
	return sp_cpu_read_vector(t->tid, t->vector, &t->vector_bytes) &&
	       trace_thread(t, PTRACE_GETSIGMASK, sizeof(t->sigmask),
			    (long)(uintptr_t)&t->sigmask) == 0;
}

/*
 * Let the thread enter the system call that was interrupted, which shows how
 * the kernel restarts it, and leave the call out.  0: its saved registers
 * restart the call; -EAGAIN: a signal came first, and the thread was asked to
 * stop again; -ESRCH or -EBUSY: the caller has to release it.
 */
static int reveal_restart(struct sp_tracee *t)
{
	int status = resume_thread(t, PTRACE_SYSCALL, 0)
			     ? wait_stop(t, BORROWED_NS)
			     : -1;

	if (status < 0)
		return -ESRCH;
	if (is_event_stop(status))
		return -EBUSY;
	if (WSTOPSIG(status) != SYSCALL_STOP)
		return resume_thread(t, PTRACE_CONT, WSTOPSIG(status)) &&
				       trace_thread(t, PTRACE_INTERRUPT, 0,
						    0) == 0
			       ? -EAGAIN
			       : -ESRCH;
	if (!get_regs(t) || !sp_cpu_skip(t->tid) ||
	    !resume_thread(t, PTRACE_SYSCALL, 0) ||
	    wait_stop(t, BORROWED_NS) < 0)
		return -ESRCH;
	sp_cpu_take_restart(&t->regs, &t->now);
	return set_regs(t, &t->regs) ? 0 : -ESRCH;
}

int sp_tracee_look(struct sp_tracee *t)
{
	const uint64_t now = sp_clock_ns();
	int status, r = -EBUSY;
	int got = sp_seize_look(t->pid, &t->tid, &status);

	if (got == 0) {
		t->stopped_ns = now;
		return -EAGAIN;
	}
	if (got < 0) {
		t->is_traced = false;
		return -ESRCH;
	}
	t->is_stopped = true;
	if (!is_event_stop(status))
		return resume_thread(t, PTRACE_CONT, WSTOPSIG(status)) ? -EAGAIN
								       : -ESRCH;
	if (WSTOPSIG(status) == SIGTRAP && sp_cpu_read(t->tid, &t->regs))
		r = sp_cpu_hides_restart(&t->regs) ? reveal_restart(t) : 0;
	if (r == -ESRCH || r == -EBUSY)
		sp_tracee_release(t);
	return r;
}

/* Block all signals but faults and SIGWINCH.  If a fault is blocked, the kernel
 * resets the program's handler for it; not blocked, a fault stops the thread
 * and is suppressed.  SIGWINCH marks the end of our code. */
static bool hold_signals(struct sp_tracee *t)
{
	const int faults[] = {SIGSEGV, SIGBUS,  SIGILL,
			      SIGFPE,  SIGTRAP, SIGWINCH};
	uint64_t mask = UINT64_MAX;

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		mask &= ~(1ull << (faults[i] - 1));
	return trace_thread(t, PTRACE_SETSIGMASK, sizeof(mask),
			    (long)(uintptr_t)&mask) == 0;
}

/* Is a signal pending that the program has a handler for and does not block? */
static bool has_pending_signal(const struct sp_tracee *t)
{
	uint64_t own = 0, shared = 0, handled = 0;
	struct sp_proc_lines l = {
		.in = sp_proc_open_file("/proc/%d/task/%d/status", t->pid,
					t->tid)};

	while (sp_proc_next(&l)) {
		sscanf(l.line, "SigPnd: %" SCNx64, &own);
		sscanf(l.line, "ShdPnd: %" SCNx64, &shared);
		sscanf(l.line, "SigCgt: %" SCNx64, &handled);
	}
	return (own | shared) & handled & ~t->sigmask;
}

/* Restore the thread at a stop outside a system call: only from there does the
 * kernel restart an interrupted system call as if nothing had happened. */
static void restore_state(struct sp_tracee *t)
{
	if (trace_thread(t, PTRACE_INTERRUPT, 0, 0) != 0 ||
	    !resume_thread(t, PTRACE_CONT, 0))
		return;
	/* A stop of the whole process is outside a system call, too. */
	wait_requested_stop(t, BORROWED_NS);
	if (!t->is_stopped)
		return;
	/* Now, because the thread would still restore its priority by itself if
	 * we were killed. */
	if (t->hurry)
		sp_hurry_end(t->hurry);
	if (has_pending_signal(t))
		sp_cpu_interrupt_wait(&t->regs);
	/* The registers last: until then it would return through its frame. */
	trace_thread(t, PTRACE_SETSIGMASK, sizeof(t->sigmask),
		     (long)(uintptr_t)&t->sigmask);
	sp_cpu_write_vector(t->tid, t->vector, t->vector_bytes);
	set_regs(t, &t->regs);
	t->is_borrowed = false;
}

void sp_tracee_return(struct sp_tracee *t)
{
	const uint64_t memory[6] = {t->code, SP_TRACEE_MEMORY};

	if (!t->is_borrowed || !t->is_stopped)
		return;
	t->frame = 0; /* it is in that memory */
	if (t->code)
		sp_tracee_syscall(t, SYS_munmap, memory);
	restore_state(t);
}

void sp_tracee_release(struct sp_tracee *t)
{
	if (!t->is_traced)
		return;
	sp_tracee_return(t);
	/* A thread that runs returns by itself.  If it does not stop, the
	 * kernel releases it when this process ends. */
	if (t->is_stopped || trace_thread(t, PTRACE_INTERRUPT, 0, 0) != 0 ||
	    wait_requested_stop(t, RELEASE_NS) != -EIO)
		trace_thread(t, PTRACE_DETACH, 0, 0);
	t->is_traced = t->is_stopped = false;
	for (int signal = 1; signal < 64; signal++)
		if (t->missed >> (signal - 1) & 1)
			kill(t->pid, signal);
}

/* ---- calls ---- */

static bool is_fault_signal(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
	       signal == SIGFPE || signal == SIGTRAP;
}

/* Let the thread run to the next entry to or exit from a system call. */
static int next_syscall_stop(struct sp_tracee *t, uint64_t timeout_ns)
{
	for (;;) {
		int status;

		if (!resume_thread(t, PTRACE_SYSCALL, 0))
			return -EIO;
		status = wait_stop(t, timeout_ns);
		if (status < 0)
			return status;
		if (WSTOPSIG(status) == SYSCALL_STOP)
			return get_regs(t) ? 0 : -EIO;
		if (is_event_stop(status))
			continue;
		if (is_fault_signal(WSTOPSIG(status)))
			return -EFAULT;
		/* A signal of the program: sent once more at the end. */
		t->missed |= 1ull << (WSTOPSIG(status) - 1);
	}
}

static bool prepare_syscall(struct sp_tracee *t, long n, const uint64_t args[6],
			    uint64_t frame)
{
	const sp_cpu_regs r = sp_frames_regs_of_syscall(t, n, args, frame);

	if (t->hurry && !t->undoes_hurry)
		sp_hurry_pause(t->hurry);
	return set_regs(t, &r);
}

static long make_syscall(struct sp_tracee *t)
{
	if (t->hurry && t->undoes_hurry)
		sp_hurry_first(t->hurry);
	if (next_syscall_stop(t, BORROWED_NS) != 0 ||
	    next_syscall_stop(t, BORROWED_NS) != 0)
		return -EIO;
	return (long)sp_cpu_result(&t->now);
}

long sp_tracee_syscall(struct sp_tracee *t, long n, const uint64_t args[6])
{
	/* The frame in our memory also unmaps that memory. */
	const uint64_t frame =
		t->sigreturn && t->frame ? t->frame : t->stack_frame;

	return prepare_syscall(t, n, args, frame) ? make_syscall(t) : -EIO;
}

/* Let the thread run until sp_cpu_code has sent its SIGWINCH.  Other signals,
 * which were not blocked or were on their way, are sent once more at the end.
 * 0; -ETIMEDOUT; -EFAULT; -EIO; -EAGAIN: the thread was asked to stop
 * (`is_asked`), and stopped before the end. */
static int wait_end_of_code(struct sp_tracee *t, uint64_t timeout_ns,
			    bool is_asked)
{
	const uint64_t until = sp_clock_ns() + timeout_ns;

	for (;;) {
		const uint64_t now = sp_clock_ns();
		int status;

		if (t->is_stopped && !resume_thread(t, PTRACE_CONT, 0))
			return -EIO;
		status = wait_stop(t, now < until ? until - now : 0);
		if (status < 0)
			return status;
		if (is_event_stop(status) && is_asked)
			return -EAGAIN;
		if (is_event_stop(status))
			continue;
		if (is_fault_signal(WSTOPSIG(status)))
			return -EFAULT;
		if (!get_regs(t))
			return -EIO;
		if (WSTOPSIG(status) == SIGWINCH &&
		    sp_cpu_pc(&t->now) == t->code + SP_CPU_CODE_END)
			return 0;
		t->missed |= 1ull << (WSTOPSIG(status) - 1);
	}
}

bool sp_tracee_prepare(struct sp_tracee *t, const struct sp_cpu_call *calls,
		       size_t n)
{
	const size_t bytes = n * sizeof(*calls);
	sp_cpu_regs r = t->regs;

	sp_cpu_set_run(&r, t->code, t->memory, n, t->frame, t->hurry);
	t->ended = 1;
	return n <= SP_TRACEE_CALLS &&
	       sp_tracee_write(t, t->memory, calls, bytes) && set_regs(t, &r);
}

int sp_tracee_go_on(struct sp_tracee *t, struct sp_cpu_call *calls, size_t n,
		    uint64_t timeout_ns)
{
	int r = t->ended;

	/* sp_tracee_abandon may have seen the end already. */
	if (r > 0)
		r = wait_end_of_code(t, timeout_ns, false);
	else
		t->ended = 1;

	if (r < 0)
		return r;
	return sp_tracee_read(t->pid, t->memory, calls, n * sizeof(*calls))
		       ? 0
		       : -EIO;
}

bool sp_tracee_has_made_first(const struct sp_tracee *t)
{
	struct sp_cpu_call call = {.result = SP_TRACEE_NOT_MADE};

	return sp_tracee_read(t->pid, t->memory, &call, sizeof(call)) &&
	       call.result != SP_TRACEE_NOT_MADE;
}

bool sp_tracee_abandon(struct sp_tracee *t)
{
	int r;

	if (trace_thread(t, PTRACE_INTERRUPT, 0, 0) != 0)
		return false;
	r = wait_end_of_code(t, BORROWED_NS, true);
	if (r != -EAGAIN)
		t->ended = r;
	if (r != -EAGAIN || !get_regs(t) || sp_tracee_has_made_first(t))
		return false;
	/* A thread that was woken must not be stopped here: it has to take the
	 * lock, or to wake the next one. */
	return sp_cpu_syscall(&t->now) == SYS_futex &&
	       sp_cpu_is_interrupted(&t->now);
}

/* ---- memory ---- */

bool sp_tracee_read(pid_t pid, uint64_t from, void *to, size_t bytes)
{
	struct iovec here = {to, bytes};
	struct iovec there = {(void *)(uintptr_t)from, bytes};
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	/* Perhaps its main thread alone has ended. */
	if (n < 0 && errno == ESRCH)
		n = process_vm_readv(sp_proc_thread((uint64_t)pid), &here, 1,
				     &there, 1, 0);
	return n == (ssize_t)bytes;
}

bool sp_tracee_write(const struct sp_tracee *t, uint64_t to, const void *from,
		     size_t bytes)
{
	struct iovec here = {(void *)(uintptr_t)from, bytes};
	struct iovec there = {(void *)(uintptr_t)to, bytes};

	return process_vm_writev(t->tid, &here, 1, &there, 1, 0) ==
	       (ssize_t)bytes;
}

bool sp_tracee_force(const struct sp_tracee *t, uint64_t to, uint64_t word)
{
	return trace_thread(t, PTRACE_POKETEXT, (long)to, (long)word) == 0;
}

/* A word at a time: that cleans the instruction caches, too. */
static bool write_code(const struct sp_tracee *t)
{
	uint64_t word;

	for (size_t at = 0; at < sizeof(sp_cpu_code); at += sizeof(word)) {
		const size_t left = sizeof(sp_cpu_code) - at;

		word = 0;
		memcpy(&word, (const char *)sp_cpu_code + at,
		       left < sizeof(word) ? left : sizeof(word));
		if (!sp_tracee_force(t, t->code + at, word))
			return false;
	}
	return true;
}

static int fail_mapping(const struct sp_tracee *t, long result,
			struct sp_error *err)
{
	return sp_error_set(err, (int)result, NULL,
			    "process %d cannot map memory for a remote call: "
			    "%s",
			    t->pid, strerror((int)-result));
}

static bool is_errno(long result)
{
	return result < 0 && result > -4096;
}

/* No page can be both written to and executed, at any moment: a process may
 * have forbidden itself to have one. */
static int map_memory(struct sp_tracee *t, struct sp_error *err)
{
	const uint64_t all[6] = {0,
				 SP_TRACEE_MEMORY,
				 PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS,
				 UINT64_MAX,
				 0};
	uint64_t code[6] = {0,
			    SP_TRACEE_CODE,
			    PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			    UINT64_MAX,
			    0};
	long memory;

	if (!prepare_syscall(t, SYS_mmap, all, t->stack_frame) ||
	    !hold_signals(t))
		return sp_error_set(err, -EIO, NULL,
				    "thread %d cannot be made to map memory",
				    t->tid);
	memory = make_syscall(t);
	if (is_errno(memory))
		return fail_mapping(t, memory, err);
	t->code = code[0] = (uint64_t)memory;
	t->memory = t->code + SP_TRACEE_CODE;
	t->frame = sp_frames_write_in_memory(t);
	memory = sp_tracee_syscall(t, SYS_mmap, code);
	return is_errno(memory) ? fail_mapping(t, memory, err) : 0;
}

int sp_tracee_borrow(struct sp_tracee *t, uint64_t syscall, uint64_t sigreturn,
		     struct sp_error *err)
{
	int r;

	t->syscall = syscall;
	t->sigreturn = sigreturn;
	if (!save_state(t))
		return sp_error_set(err, -EIO, NULL,
				    "the registers of thread %d cannot be read",
				    t->tid);
	sp_frames_write_on_stack(t);
	/* Block signals only after the frame is written, because returning
	 * through the frame unblocks them. */
	t->is_borrowed = true;
	r = map_memory(t, err);
	if (r < 0)
		return r;
	if (!t->frame || !write_code(t))
		return sp_error_set(err, -EIO, NULL,
				    "the memory of process %d cannot be "
				    "written",
				    t->pid);
	return 0;
}
