/* SPDX-License-Identifier: MIT */
/* What a thread of the process is made to call. */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "attach/attach_inner.h"
#include "attach/clock.h"

#define LOCK_NS  10000000ull /* at first */
#define SUMS_NS  5000000ull
#define PROBE_NS 3000000ull
#define FIRST_NS 500000000ull
/* For so long a thread is looked for that need not wait for its allocator. */
#define QUIET_NS   300000000ull
#define SUMS_TRIES 3

/* What is where in the memory of a tracee. */
#define AT_REQUEST SP_TRACEE_FREE
#define AT_PATH    6144u
#define AT_INFO    7168u
static_assert(AT_REQUEST + sizeof(struct sp_attach_request) <= AT_PATH,
	      "has room");

static uint64_t left_ns(const struct sp_attach_job *job)
{
	const uint64_t now = sp_clock_ns();

	return now < job->until ? job->until - now : 0;
}

/* ---- calls ---- */

/*
 * Calls, before all others if that may be: so the thread has what it waits for
 * as soon as that is free.  If we are killed meanwhile, it sees itself to the
 * end of that.  What takes long may be waiting for a thread that is to be run.
 */
static int run_calls(struct sp_tracee *t, struct sp_cpu_call *calls, size_t n,
		     uint64_t limit_ns)
{
	const uint64_t first = limit_ns < FIRST_NS ? limit_ns : FIRST_NS;
	int r;

	if (!sp_tracee_prepare(t, calls, n))
		return -EIO;
	if (t->hurry)
		sp_hurry_first(t->hurry);
	r = sp_tracee_go_on(t, calls, n, first);
	if (r != -ETIMEDOUT || limit_ns == first)
		return r;
	if (t->hurry)
		sp_hurry_calm(t->hurry);
	return sp_tracee_go_on(t, calls, n, limit_ns - first);
}

/* Calls that wait for locks.  -EAGAIN: the last of them does, for longer than
 * the limit, and it is as if it had not been made. */
static int run_or_abandon(struct sp_attach_job *job, struct sp_tracee *t,
			  struct sp_cpu_call *calls, size_t n,
			  uint64_t limit_ns)
{
	int r = run_calls(t, calls, n, limit_ns);

	while (r == -ETIMEDOUT && left_ns(job)) {
		if (sp_tracee_abandon(t))
			return -EAGAIN;
		/* It only was not run. */
		r = sp_tracee_go_on(t, calls, n, limit_ns);
	}
	return r;
}

static int fail_call(const struct sp_tracee *t, int r, const char *what,
		     struct sp_error *err)
{
	if (r == -ETIMEDOUT)
		return sp_error_set(err, -EBUSY, NULL,
				    "process %d does not get ready with %s; "
				    "it goes on by itself, try again later",
				    t->pid, what);
	if (r == -EFAULT)
		return sp_error_set(err, -EIO, NULL,
				    "%s fails in process %d; it goes on as "
				    "before",
				    what, t->pid);
	return sp_error_set(err, -EIO, NULL, "process %d has ended in %s",
			    t->pid, what);
}

static int explain_load(struct sp_attach_job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	struct sp_cpu_call call = {.function = job->error};
	char text[160] = "";

	if (run_calls(t, &call, 1, SP_ATTACH_GIVE_UP_NS) == 0 && call.result)
		for (size_t i = 0; i + 1 < sizeof(text); i++)
			if (!sp_tracee_read(t->pid, call.result + i, text + i,
					    1) ||
			    !text[i])
				break;
	text[sizeof(text) - 1] = '\0';
	return sp_error_set(err, -ENOEXEC, NULL,
			    "process %d cannot load the library: %s", t->pid,
			    text[0] ? text : "its loader does not say why");
}

static int load_library(struct sp_attach_job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	struct sp_cpu_call calls[2] = {
		{job->load, {t->memory + AT_PATH, RTLD_NOW | RTLD_LOCAL}, 0},
		{job->close, {0}, 0},
	};
	struct sp_library_there there;
	int r;

	sp_library_hand_over(&job->library, t, t->memory + AT_PATH, &there);
	calls[1].args[0] = (uint64_t)there.fd;
	r = sp_tracee_write(t, t->memory + AT_PATH, there.path,
			    strlen(there.path) + 1)
		    ? run_calls(t, calls, there.fd < 0 ? 1 : 2, left_ns(job))
		    : -EIO;
	sp_library_clean_up(t->pid, &there);
	if (r < 0)
		return fail_call(t, r, "loading the library", err);
	job->function = sp_library_find(&job->library, t->pid, &there);
	return job->function ? 0 : explain_load(job, t, err);
}

static int call_library(struct sp_attach_job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	const uint64_t at = t->memory + AT_REQUEST;
	struct sp_cpu_call call = {job->function, {at}, 0};
	int r;

	if (!sp_tracee_write(t, at, &job->request, sizeof(job->request)))
		return fail_call(t, -EIO, "the library", err);
	r = run_calls(t, &call, 1, left_ns(job));
	if (r < 0)
		return fail_call(t, r, "the library", err);
	if (!sp_tracee_read(t->pid, at, &job->request, sizeof(job->request)))
		return fail_call(t, -EIO, "the library", err);
	return 0;
}

/* The longer the search takes, the longer the lock is waited for: on a busy
 * machine the thread that holds it may not be run for a while. */
static uint64_t lock_ns(const struct sp_attach_job *job)
{
	const uint64_t ns = (sp_clock_ns() - job->began_ns) / 8;

	return ns > LOCK_NS ? ns : LOCK_NS;
}

/*
 * Before anything else: where errno is; and that the loader's lock is free, or
 * will be soon.  If it is not, another thread is in a constructor, which may
 * wait for this one.
 */
static int begin_work(struct sp_attach_job *job, struct sp_tracee *t,
		      uint64_t *ret_errno)
{
	struct sp_cpu_call calls[2] = {
		{job->errno_location, {0}, 0},
		{job->lock_probe, {job->lock_probe, t->memory + AT_INFO}, 0},
	};
	int r = run_or_abandon(job, t, calls, 2, lock_ns(job));

	*ret_errno = calls[0].result;
	return r;
}

/* struct mallinfo2 of glibc. */
struct sums {
	uint64_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks,
		uordblks, fordblks, keepcost;
};

/*
 * What was alive before, as glibc counts it, if that goes quickly: it locks one
 * arena after the other, and each lock may be wanted by many threads.  Not the
 * library does it, for that has the loader's lock meanwhile.  -EINPROGRESS:
 * once more, later.
 */
static int ask_before(struct sp_attach_job *job, struct sp_tracee *t,
		      struct sp_error *err)
{
	struct sp_cpu_call call = {job->sums, {t->memory + AT_INFO}, 0};
	struct sums sums;
	int r;

	job->request.knows_glibc = 0;
	if (!job->sums || job->busy >= SUMS_TRIES)
		return 0;
	r = run_or_abandon(job, t, &call, 1, SUMS_NS);
	if (r == -EAGAIN) {
		job->done.before = SP_ATTACH_BEFORE_BUSY;
		return ++job->busy < SUMS_TRIES ? -EINPROGRESS : 0;
	}
	if (r < 0)
		return fail_call(t, r, "its allocator", err);
	if (sp_tracee_read(t->pid, t->memory + AT_INFO, &sums, sizeof(sums))) {
		job->request.glibc_bytes = sums.uordblks + sums.hblkhd;
		job->request.knows_glibc = 1;
		job->done.before = SP_ATTACH_BEFORE_ASKED;
	}
	return 0;
}

/*
 * Loading allocates, and cannot be given up.  Where many threads want the
 * allocator, its lock is mostly held by one that is not run: so a function is
 * called first that waits for the main thread's arena, and does nothing else.
 */
static int check_allocator(struct sp_attach_job *job, struct sp_tracee *t,
			   struct sp_error *err)
{
	struct sp_cpu_call call = {job->allocator_probe, {0}, 0};
	int r;

	if (!job->allocator_probe || job->function || t->tid != t->pid ||
	    sp_clock_ns() - job->began_ns > QUIET_NS)
		return 0;
	r = run_or_abandon(job, t, &call, 1, PROBE_NS);
	if (r == -EAGAIN) {
		job->busy++;
		return -EINPROGRESS;
	}
	return r < 0 ? fail_call(t, r, "its allocator", err) : 0;
}

static int begin_profile(struct sp_attach_job *job, struct sp_tracee *t,
			 struct sp_error *err)
{
	int r = ask_before(job, t, err);

	if (r == 0)
		r = check_allocator(job, t, err);
	if (r == 0 && !job->function)
		r = load_library(job, t, err);
	return r == 0 ? call_library(job, t, err) : r;
}

/* What the thread has of its C library, and is to find as it was: errno, and a
 * text that dlerror has for it, which each call of the loader would free. */
struct kept {
	uint64_t errno_at, error_at;
	int error_number;
	uint64_t error;
};

static bool keep_errors(const struct sp_attach_job *job, struct sp_tracee *t,
			struct kept *kept)
{
	const uint64_t none = 0;

	if (!sp_tracee_read(t->pid, kept->errno_at, &kept->error_number,
			    sizeof(kept->error_number)))
		return false;
	if (!job->error_distance)
		return true;
	kept->error_at = kept->errno_at + job->error_distance;
	return sp_tracee_read(t->pid, kept->error_at, &kept->error,
			      sizeof(kept->error)) &&
	       (!kept->error ||
		sp_tracee_write(t, kept->error_at, &none, sizeof(none)));
}

static void restore_errors(struct sp_tracee *t, const struct kept *kept)
{
	sp_tracee_write(t, kept->errno_at, &kept->error_number,
			sizeof(kept->error_number));
	if (kept->error)
		sp_tracee_write(t, kept->error_at, &kept->error,
				sizeof(kept->error));
}

int sp_attach_work(struct sp_attach_job *job, struct sp_tracee *t,
		   struct sp_error *err)
{
	struct kept kept = {0};
	int r;

	job->until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
	r = sp_tracee_borrow(t, job->syscall, job->way_back, err);
	if (r < 0)
		return r;
	r = begin_work(job, t, &kept.errno_at);
	if (r < 0)
		return r == -EAGAIN ? r : fail_call(t, r, "its loader", err);
	if (!keep_errors(job, t, &kept))
		return fail_call(t, -EIO, "its C library", err);
	r = job->request.command == SP_ATTACH_BEGIN ? begin_profile(job, t, err)
						    : call_library(job, t, err);
	restore_errors(t, &kept);
	return r;
}
