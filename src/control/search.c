/* SPDX-License-Identifier: MIT */
/* The search for a thread that can do the job, in the worker. */
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "control/attach_inner.h"
#include "control/seize.h"
#include "base/clock.h"

/* Pause between two rounds; BUSY_PAUSE_NS more for each time that a lock was
 * not free. */
#define ROUND_PAUSE_NS 1000000ull
#define BUSY_PAUSE_NS  4000000ull
#define PAUSE_MAX_NS   40000000ull
/* How long a thread may wait for the loader's lock; and for how long a search
 * stops no thread while another has the lock. */
#define LOADER_LOCK_NS  5000000ull
#define LOADER_AWAIT_NS 1500000000ull
#define LOADER_POLL_NS  200000ull

void sp_attach_pause(const struct sp_attach_job *job)
{
	const uint64_t ns = ROUND_PAUSE_NS + job->busy * BUSY_PAUSE_NS;
	const struct timespec pause = {
		0, (long)(ns < PAUSE_MAX_NS ? ns : PAUSE_MAX_NS)};

	nanosleep(&pause, NULL);
}

static bool has_executed(const struct sp_attach_job *job)
{
	return sp_suitable_has_executed(job->pid, &job->program);
}

static bool is_loader_busy(const struct sp_attach_job *job)
{
	uint32_t word = 0;

	return job->loader_lock &&
	       sp_tracee_read(job->pid, job->loader_lock, &word,
			      sizeof(word)) &&
	       word;
}

/* sp_choice.look.  -EAGAIN: this thread cannot be used now; -EINPROGRESS: none
 * can; -ESTALE: the image is of the program before. */
static int try_thread(void *arg, struct sp_tracee *t, struct sp_error *err)
{
	struct sp_attach_job *job = arg;
	uint64_t stopped_ns;
	int r;

	if (has_executed(job))
		return -ESTALE;
	job->n_looked++;
	/* Taken again since await_loader() has looked. */
	if (job->lock_limit_ns == LOADER_LOCK_NS && is_loader_busy(job))
		return -EINPROGRESS;
	if (!sp_image_may_call(job->image, t)) {
		job->n_unknown += !sp_image_knew_stack(job->image);
		return -EAGAIN;
	}
	/* 1: the main thread has not stopped, so its address is not known. */
	job->request.main_thread =
		job->choice.main_thread ? job->choice.main_thread : 1;
	/* The signal frames of sp_hurry make system calls for which a seccomp
	 * filter may kill the thread. */
	if (!job->is_filtered && sp_hurry_begin(&job->hurry, t->tid))
		t->hurry = &job->hurry;
	r = sp_attach_work(job, t, err);
	sp_tracee_return(t);
	/* If it has ended, its id may be that of another thread by now. */
	if (!t->is_traced)
		job->hurry = (struct sp_hurry){.tid = 0};
	sp_hurry_end(&job->hurry);
	sp_tracee_release(t);
	stopped_ns = sp_clock_ns() - t->stopped_ns;
	job->done.thread = (uint64_t)t->tid;
	if (stopped_ns > job->done.stopped_ns)
		job->done.stopped_ns = stopped_ns;
	return r;
}

/*
 * While another thread has the loader's lock, which may take long on a busy
 * machine, none is stopped.  If it has the lock all the time, one has to wait
 * for it like all others, and the longer, the longer the search has lasted.
 */
static void await_loader(struct sp_attach_job *job)
{
	const struct timespec pause = {0, LOADER_POLL_NS};
	uint64_t searched_ns = 0;

	while (is_loader_busy(job) && !has_executed(job)) {
		searched_ns = sp_clock_ns() - job->began_ns;
		if (searched_ns > LOADER_AWAIT_NS)
			break;
		sp_seize_move();
		nanosleep(&pause, NULL);
	}
	job->lock_limit_ns = searched_ns > LOADER_AWAIT_NS ? searched_ns / 8
							   : LOADER_LOCK_NS;
}

static bool may_search(void *arg)
{
	const struct sp_attach_job *job = arg;

	return sp_clock_ns() < job->search_until &&
	       !atomic_load(&job->worker.is_cancelled);
}

static bool may_come_later(const struct sp_attach_job *job, int r)
{
	return r == -EAGAIN || r == -EINPROGRESS ||
	       (r == -EALREADY && sp_suitable_is_ours(job->choice.tracer));
}

/* Explain why filters are not suspended. */
static int explain_filter(const struct sp_attach_job *job, int r,
			  struct sp_error *err)
{
	if (r == -EOPNOTSUPP)
		return sp_error_set(
			err, r, NULL,
			"process %d filters its system calls (seccomp), and "
			"this kernel cannot suspend the filter (it has no "
			"CONFIG_CHECKPOINT_RESTORE): start the program under "
			"sampleprof run",
			job->pid);
	if (geteuid() == 0 && sp_seize(job->pid, 0) < 0)
		return sp_suitable_explain_refusal((uint64_t)job->pid, err);
	return sp_error_set(
		err, r, NULL,
		"process %d filters its system calls (seccomp), which may "
		"forbid what loading a library needs: %s",
		job->pid,
		geteuid() ? "run as root, which can suspend the filter for "
			    "that time"
			  : "suspending the filter needs CAP_SYS_ADMIN, and a "
			    "command without a filter of its own (attach from "
			    "the host)");
}

static int explain_search(const struct sp_attach_job *job, int r,
			  struct sp_error *err)
{
	const uint64_t pid = (uint64_t)job->pid;

	if (r == -EOPNOTSUPP || (r == -EPERM && job->is_filtered))
		return explain_filter(job, r, err);
	if (r == -EPERM)
		return sp_suitable_explain_refusal(pid, err);
	if (r == -ESTALE)
		return sp_error_set(err, r, NULL,
				    "process %d has executed another program",
				    job->pid);
	if (r == -EALREADY)
		return sp_suitable_explain_tracer(pid, job->choice.tracer, err);
	if (r != -EAGAIN && r != -EINPROGRESS)
		return r;
	if (job->choice.is_in_exec)
		return sp_error_set(err, -EBUSY, NULL,
				    "process %d is executing another program, "
				    "and that was not done in 2 s: try again",
				    job->pid);
	if (job->n_looked && job->n_looked == job->n_unknown)
		return sp_error_set(err, -EBUSY, NULL,
				    "process %d: the stacks of its threads "
				    "could not be followed to their ends in "
				    "2 s, as those of coroutines (makecontext) "
				    "or of code without unwind tables: start "
				    "it under sampleprof run",
				    job->pid);
	return sp_suitable_explain_silence(pid, job->n_looked > 0, err);
}

static int search_thread(struct sp_attach_job *job, struct sp_error *err)
{
	const struct sched_param first = {.sched_priority = 2};
	int r;

	/* A stopped thread waits until the worker is scheduled.  So the worker
	 * gets a priority above all others, even above the thread that makes
	 * the calls.  Without the right to that, stops are longer on a busy
	 * machine. */
	if (sched_setscheduler(0, SCHED_RR, &first) != 0)
		setpriority(PRIO_PROCESS, 0, -20);
	job->choice = (struct sp_choice){
		.pid = job->pid,
		.without_filter = job->is_filtered,
		.look = try_thread,
		.may_go_on = may_search,
		.arg = job,
	};
	job->began_ns = sp_clock_ns();
	job->search_until = job->began_ns + SP_ATTACH_GIVE_UP_NS;
	job->n_looked = job->n_unknown = 0;
	do {
		await_loader(job);
		r = sp_choice_round(&job->choice, err);
		if (!may_come_later(job, r))
			break;
		sp_attach_pause(job);
	} while (may_search(job));
	return explain_search(job, r, err);
}

void sp_attach_search(void *arg)
{
	struct sp_attach_job *job = arg;

	sp_seize_begin(&job->worker.moved_ns);
	job->result = search_thread(job, &job->err);
}
