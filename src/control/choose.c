/* SPDX-License-Identifier: MIT */
#include "control/choose.h"

#include <errno.h>
#include <unistd.h>

#include "control/seize.h"
#include "control/threads.h"
#include "base/clock.h"

/* How long to wait for the main thread, and then for the others after the last
 * one was asked. */
#define MAIN_THREAD_NS   300000000ull
#define OTHER_THREADS_NS 300000000ull
/* How often a thread is asked whose tracer was not found. */
#define ASK_TRIES 3

/* ---- threads that were asked to stop ---- */

static struct sp_tracee *find_asked_thread(struct sp_choice *c, pid_t tid)
{
	for (size_t i = 0; i < SP_CHOICE_ASKED; i++)
		if (c->asked[i].is_traced && c->asked[i].tid == tid)
			return &c->asked[i];
	return NULL;
}

static struct sp_tracee *find_free_entry(struct sp_choice *c)
{
	for (size_t i = 0; i < SP_CHOICE_ASKED; i++)
		if (!c->asked[i].is_traced)
			return &c->asked[i];
	return NULL;
}

static size_t count_asked_threads(const struct sp_choice *c)
{
	size_t n = 0;

	for (size_t i = 0; i < SP_CHOICE_ASKED; i++)
		n += c->asked[i].is_traced;
	return n;
}

/* The kernel has only EPERM for all of it: no right to trace, a thread that
 * ends, and another tracer.  -ESRCH: it ends; 0: we trace it already, for it
 * has executed a program. */
static int explain_refused(struct sp_choice *c, pid_t tid, struct sp_error *err)
{
	const struct sp_threads_state refused = sp_threads_look(c->pid, tid);

	if (refused.is_ending)
		return -ESRCH;
	if (refused.tracer == getpid())
		return 0;
	if (!refused.tracer)
		return -EPERM;
	c->tracer = refused.tracer;
	return sp_error_set(err, -EALREADY, NULL,
			    "process %d is being traced by process %d", c->pid,
			    c->tracer);
}

/* 0, also if the thread has ended; -EAGAIN: it cannot be traced now; or another
 * negative errno and *err. */
static int ask_thread(struct sp_choice *c, pid_t tid, struct sp_error *err)
{
	struct sp_tracee *t = find_free_entry(c);
	int r = -EPERM;

	if (!t || find_asked_thread(c, tid))
		return 0;
	/* Once more, for another tracer may have let go meanwhile. */
	for (int i = 0; i < ASK_TRIES && r == -EPERM; i++) {
		r = sp_tracee_ask(t, c->pid, tid, c->without_filter, err);
		c->is_in_exec = r == -EINTR;
		if (r == -EPERM)
			r = explain_refused(c, tid, err);
	}
	c->n_ended += r == -ESRCH;
	if (r == -ESRCH)
		return 0;
	if (r == -EINVAL || r == -EIO)
		return -EOPNOTSUPP;
	return r == -EINTR ? -EAGAIN : r;
}

/* -EAGAIN: the thread has not stopped yet, or was released. */
static int look_at_thread(struct sp_choice *c, struct sp_tracee *t,
			  struct sp_error *err)
{
	int r = sp_tracee_look(t);

	if (r == 0 && t->tid == t->pid)
		c->main_thread = sp_cpu_thread_pointer(&t->regs);
	if (r == 0) {
		c->chosen = t;
		r = c->look(c->arg, t, err);
		c->chosen = NULL;
		sp_tracee_release(t);
		return r;
	}
	return -EAGAIN;
}

/* sp_tracee.idle of the chosen thread: release the others as they stop, so that
 * they do not wait for its calls. */
static void release_other_threads(void *arg)
{
	struct sp_choice *c = arg;

	for (size_t i = 0; i < SP_CHOICE_ASKED; i++) {
		struct sp_tracee *t = &c->asked[i];

		if (t == c->chosen || !t->is_traced || sp_tracee_look(t) != 0)
			continue;
		if (t->tid == t->pid)
			c->main_thread = sp_cpu_thread_pointer(&t->regs);
		sp_tracee_release(t);
	}
}

/* ---- a round ---- */

static int look_at_asked_threads(struct sp_choice *c, struct sp_error *err)
{
	int r = -EAGAIN;

	for (size_t i = 0; i < SP_CHOICE_ASKED && r == -EAGAIN; i++)
		if (c->asked[i].is_traced)
			r = look_at_thread(c, &c->asked[i], err);
	return r;
}

/* The main thread is asked first, and alone: in a process that waits it is
 * mostly suitable, and the library needs to know its control block. */
static int try_main_thread(struct sp_choice *c, struct sp_error *err)
{
	const uint64_t until = sp_clock_ns() + MAIN_THREAD_NS;
	int r = ask_thread(c, c->pid, err);

	if (r == 0)
		r = -EAGAIN;
	while (r == -EAGAIN && find_asked_thread(c, c->pid)) {
		r = look_at_asked_threads(c, err);
		if (r != -EAGAIN || sp_clock_ns() > until ||
		    !c->may_go_on(c->arg))
			break;
		sp_seize_nap();
	}
	return r;
}

static int try_other_threads(struct sp_choice *c,
			     const struct sp_threads *threads,
			     struct sp_error *err)
{
	uint64_t until = sp_clock_ns() + OTHER_THREADS_NS;
	/* threads->tids[0] is the main thread. */
	size_t next = 1, n = SIZE_MAX;
	int r = -EAGAIN;

	while (r == -EAGAIN && (next < threads->n || n) &&
	       sp_clock_ns() < until && c->may_go_on(c->arg)) {
		const size_t before = next;

		r = 0;
		while (r == 0 && next < threads->n && find_free_entry(c))
			r = ask_thread(c, threads->tids[next++], err);
		if (r < 0 && r != -EAGAIN)
			break;
		r = look_at_asked_threads(c, err);
		if (next != before)
			until = sp_clock_ns() + OTHER_THREADS_NS;
		n = count_asked_threads(c);
		if (r == -EAGAIN && n)
			sp_seize_nap();
	}
	return r;
}

int sp_choice_round(struct sp_choice *c, struct sp_error *err)
{
	struct sp_threads threads;
	int r;

	for (size_t i = 0; i < SP_CHOICE_ASKED; i++) {
		c->asked[i].idle = release_other_threads;
		c->asked[i].idle_arg = c;
	}
	c->n_ended = 0;
	r = try_main_thread(c, err);
	if (r != -EAGAIN)
		return r;
	r = sp_threads_list(c->pid, &threads);
	if (r == 0) {
		r = try_other_threads(c, &threads, err);
		if (r == -EAGAIN && c->n_ended >= threads.n)
			r = -ESRCH;
		sp_threads_free(&threads);
	}
	return r == -ESRCH || r == -ENOENT
		       ? sp_error_set(err, -ESRCH, NULL, "process %d has ended",
				      c->pid)
		       : r;
}
