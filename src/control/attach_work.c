/* SPDX-License-Identifier: MIT */
/* The remote calls of an attach or detach, in the order in which one stopped
 * thread makes them. */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "control/attach_inner.h"
#include "base/clock.h"

/* Limits of calls that wait for a lock. */
#define MALLINFO_NS       5000000ull
#define ALLOCATOR_LOCK_NS 3000000ull
/* The longest time for which the thread has a real-time policy. */
#define REAL_TIME_NS 500000000ull
/* How long to search for a moment in which the allocator's lock is free. */
#define ALLOCATOR_SEARCH_NS 300000000ull
#define MALLINFO_TRIES      3

/* Offsets in the memory of a tracee. */
#define AT_REQUEST SP_TRACEE_FREE
#define AT_PATH    7168u
#define AT_INFO    8192u
#define AT_LIBDL   9216u
static_assert(AT_REQUEST + sizeof(struct sp_attach_request) <= AT_PATH,
	      "the request ends before the path");

/* What dlopen adds to the mode for glibc's inner function. */
#define DLOPEN_MODE 0x80000000u

static uint64_t remaining_ns(const struct sp_attach_job *job)
{
	const uint64_t now = sp_clock_ns();

	return now < job->until ? job->until - now : 0;
}

/* ---- calls ---- */

/*
 * Wait until the prepared calls have been made.  The thread has a real-time
 * priority at first, if we may give it one: so it takes a lock as soon as the
 * lock is free.  If we are killed meanwhile, the thread restores its priority
 * by itself.  Calls that take longer may wait for a thread that gets no
 * processor because of that priority, so the priority is lowered after
 * REAL_TIME_NS.
 */
static int wait_for_calls(struct sp_tracee *t, struct sp_cpu_call *calls,
			  size_t n, uint64_t limit_ns)
{
	const uint64_t first =
		limit_ns < REAL_TIME_NS ? limit_ns : REAL_TIME_NS;
	int r = sp_tracee_go_on(t, calls, n, first);

	if (r != -ETIMEDOUT || limit_ns == first)
		return r;
	if (t->hurry)
		sp_hurry_calm(t->hurry);
	return sp_tracee_go_on(t, calls, n, limit_ns - first);
}

static bool begin_calls(struct sp_tracee *t, const struct sp_cpu_call *calls,
			size_t n)
{
	if (!sp_tracee_prepare(t, calls, n))
		return false;
	if (t->hurry)
		sp_hurry_first(t->hurry);
	return true;
}

static int run_calls(struct sp_tracee *t, struct sp_cpu_call *calls, size_t n,
		     uint64_t limit_ns)
{
	return begin_calls(t, calls, n) ? wait_for_calls(t, calls, n, limit_ns)
					: -EIO;
}

/* The same; calls[0] waits for a lock.  -EAGAIN: it has waited for longer than
 * limit_ns, and was given up as if it had not been made; the calls after it
 * were not made. */
static int run_calls_or_abandon(struct sp_attach_job *job, struct sp_tracee *t,
				struct sp_cpu_call *calls, size_t n,
				uint64_t limit_ns)
{
	int r = -EIO;

	calls[0].result = SP_TRACEE_NOT_MADE;
	if (begin_calls(t, calls, n))
		r = sp_tracee_go_on(t, calls, n, limit_ns);
	while (r == -ETIMEDOUT && remaining_ns(job) &&
	       !sp_tracee_has_made_first(t)) {
		if (sp_tracee_abandon(t))
			return -EAGAIN;
		/* The call does not wait for a lock, or has just got it. */
		r = sp_tracee_go_on(t, calls, n, limit_ns);
	}
	return r == -ETIMEDOUT ? wait_for_calls(t, calls, n, remaining_ns(job))
			       : r;
}

/*
 * Take and release the loader's lock (calls[0]), then make the others, the
 * first of which takes it again: the thread is not stopped between the two, so
 * another thread hardly gets it there.  If the lock stays taken, another thread
 * runs a constructor, which may wait for this very thread: -EINPROGRESS.
 */
static int run_calls_of_loader(struct sp_attach_job *job, struct sp_tracee *t,
			       struct sp_cpu_call *calls, size_t n)
{
	int r;

	calls[0] = (struct sp_cpu_call){
		job->lock_probe, {job->lock_probe, t->memory + AT_INFO}, 0};
	r = run_calls_or_abandon(job, t, calls, n, job->lock_limit_ns);
	if (r != -EAGAIN)
		return r;
	job->loader_lock = sp_cpu_first_argument(&t->now);
	return -EINPROGRESS;
}

static int fail_call(const struct sp_attach_job *job, int r, const char *what,
		     struct sp_error *err)
{
	if (r == -ETIMEDOUT)
		return sp_error_set(
			err, -EBUSY, NULL,
			"process %d has not finished %s in 2 s; it continues "
			"by itself%s: try again later",
			job->pid, what,
			job->request.command == SP_ATTACH_BEGIN
				? ", and nothing is recorded"
				: "");
	if (r == -EFAULT)
		return sp_error_set(err, -EIO, NULL,
				    "%s raised a fault in process %d, which "
				    "was suppressed: the process continues as "
				    "before",
				    what, job->pid);
	return sp_error_set(err, -EIO, NULL, "process %d has ended during %s",
			    job->pid, what);
}

static int explain_load(struct sp_attach_job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	struct sp_cpu_call call = {.function = job->dlerror};
	char text[160] = "";

	if (call.function &&
	    run_calls(t, &call, 1, SP_ATTACH_GIVE_UP_NS) == 0 && call.result)
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

static void close_in_process(struct sp_tracee *t, int fd)
{
	const uint64_t args[6] = {(uint64_t)fd};

	if (fd >= 0)
		sp_tracee_syscall(t, SYS_close, args);
}

#define LIBDL "libdl.so.2"

/* The calls that load the library, which calls[0] is left out of: load what it
 * needs, load it, close its file.  Returns how many there are, with that of
 * calls[0]; *ret_load is the one that loads it. */
static size_t plan_load(const struct sp_attach_job *job,
			const struct sp_tracee *t, int fd,
			struct sp_cpu_call calls[SP_TRACEE_CALLS],
			size_t *ret_load)
{
	const uint64_t how =
		RTLD_NOW | RTLD_LOCAL | (job->needs_libdl ? DLOPEN_MODE : 0u);
	size_t n = 1;

	if (job->needs_libdl)
		calls[n++] = (struct sp_cpu_call){
			job->dlopen, {t->memory + AT_LIBDL, how}, 0};
	*ret_load = n;
	calls[n++] = (struct sp_cpu_call){
		job->dlopen, {t->memory + AT_PATH, how}, 0};
	if (fd >= 0)
		calls[n++] = (struct sp_cpu_call){
			job->libc_close, {(uint64_t)fd}, 0};
	return n;
}

static int load_library(struct sp_attach_job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	const uint64_t path = t->memory + AT_PATH;
	struct sp_cpu_call calls[SP_TRACEE_CALLS];
	struct sp_library_there there;
	size_t n, load;
	int r = sp_library_hand_over(&job->library, t, path, &there, err);

	if (r < 0) {
		close_in_process(t, there.fd);
		return r;
	}
	n = plan_load(job, t, there.fd, calls, &load);
	r = sp_tracee_write(t, path, there.path, strlen(there.path) + 1) &&
			    sp_tracee_write(t, t->memory + AT_LIBDL, LIBDL,
					    sizeof(LIBDL))
		    ? run_calls_of_loader(job, t, calls, n)
		    : -EIO;
	sp_library_clean_up(&there);
	if (r == -EINPROGRESS) {
		close_in_process(t, there.fd);
		return r;
	}
	if (r < 0)
		return fail_call(job, r, "loading the library", err);
	job->function = sp_library_find(&job->library, t->tid, &there);
	if (!job->function && calls[load].result)
		job->function = sp_library_find_late(&job->library, t->tid);
	if (!job->function && calls[load].result)
		return sp_error_set(err, -EBADF, NULL,
				    "process %d has loaded another file than "
				    "the library: it may be hostile; nothing "
				    "of it is recorded",
				    t->pid);
	return job->function ? 0 : explain_load(job, t, err);
}

/* The library takes too long.  0: it has ended meanwhile; else it does not
 * begin a profile any more. */
static int give_up_library(struct sp_tracee *t, uint64_t request,
			   struct sp_cpu_call *calls, size_t n)
{
	const uint32_t yes = 1;
	uint32_t answered = 0;

	if (!sp_tracee_write(
		    t, request + offsetof(struct sp_attach_request, given_up),
		    &yes, sizeof(yes)) ||
	    !sp_tracee_read(
		    t->pid,
		    request + offsetof(struct sp_attach_request, answered),
		    &answered, sizeof(answered)))
		return -EIO;
	return answered ? sp_tracee_go_on(t, calls, n, SP_ATTACH_GIVE_UP_NS)
			: -ETIMEDOUT;
}

static int ask_library(struct sp_attach_job *job, struct sp_tracee *t,
		       struct sp_error *err)
{
	const uint64_t at = t->memory + AT_REQUEST;
	struct sp_cpu_call calls[2] = {[1] = {job->function, {at}, 0}};
	int r;

	job->request.given_up = job->request.answered = 0;
	if (!sp_tracee_write(t, at, &job->request, sizeof(job->request)))
		return fail_call(job, -EIO, "a call to the library", err);
	r = run_calls_of_loader(job, t, calls, 2);
	if (r == -EINPROGRESS)
		return r;
	if (r == -ETIMEDOUT)
		r = give_up_library(t, at, calls, 2);
	if (r < 0)
		return fail_call(job, r, "a call to the library", err);
	if (!sp_tracee_read(t->pid, at, &job->request, sizeof(job->request)))
		return fail_call(job, -EIO, "a call to the library", err);
	if (job->request.result == SP_ATTACH_GIVEN_UP)
		return fail_call(job, -ETIMEDOUT, "a call to the library", err);
	return 0;
}

/* The words that the library has left to us.  False: the process has ended. */
static bool write_words(struct sp_attach_job *job, const struct sp_tracee *t)
{
	const struct sp_attach_words *words = &job->request.words;

	for (size_t i = 0; i < words->n && i < SP_ATTACH_WORDS; i++) {
		const struct sp_attach_word *w = &words->list[i];
		uint64_t now;

		if (!sp_tracee_read(t->pid, w->at, &now, sizeof(now)) ||
		    (now == w->from && !sp_tracee_force(t, w->at, w->to)))
			return false;
	}
	return true;
}

static int call_library(struct sp_attach_job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	struct sp_attach_request answer;
	int r = ask_library(job, t, err);

	if (r < 0 || !job->request.words.n)
		return r;
	if (!write_words(job, t))
		return fail_call(job, -EIO, "a call to the library", err);
	if (job->request.command != SP_ATTACH_BEGIN ||
	    job->request.result != SP_ATTACH_DONE)
		return 0;
	/* Once more, for what a thread was binding lazily meanwhile: it is
	 * attached whether that succeeds or not. */
	answer = job->request;
	r = ask_library(job, t, err);
	job->request = answer;
	return r == -EIO ? r : 0;
}

/* struct mallinfo2 of glibc 2.33, which older headers do not have. */
struct mallinfo2_result {
	uint64_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks,
		uordblks, fordblks, keepcost;
};
static_assert(AT_INFO + sizeof(struct mallinfo2_result) <= AT_LIBDL &&
		      AT_LIBDL < SP_TRACEE_ROOM,
	      "the caller's part of the memory ends before the stack");

/*
 * Ask glibc for the bytes that are allocated already, if the answer comes soon:
 * mallinfo2 locks one arena after the other, and many threads may wait for each
 * lock.  The library could not ask, because it holds the loader's lock while it
 * works.  -EINPROGRESS: try once more later.
 */
static int ask_heap_in_use(struct sp_attach_job *job, struct sp_tracee *t,
			   struct sp_error *err)
{
	struct sp_cpu_call call = {job->mallinfo2, {t->memory + AT_INFO}, 0};
	struct mallinfo2_result info;
	int r;

	job->request.knows_glibc = 0;
	if (!job->mallinfo2 || job->busy >= MALLINFO_TRIES)
		return 0;
	r = run_calls_or_abandon(job, t, &call, 1, MALLINFO_NS);
	if (r == -EAGAIN) {
		job->done.before = SP_ATTACH_BEFORE_BUSY;
		return ++job->busy < MALLINFO_TRIES ? -EINPROGRESS : 0;
	}
	if (r < 0)
		return fail_call(job, r, "a call to its allocator", err);
	if (sp_tracee_read(t->pid, t->memory + AT_INFO, &info, sizeof(info))) {
		job->request.glibc_bytes = info.uordblks + info.hblkhd;
		job->request.knows_glibc = 1;
		job->done.before = SP_ATTACH_BEFORE_ASKED;
	}
	return 0;
}

/*
 * dlopen allocates, and cannot be given up once it has begun.  Where many
 * threads allocate, the lock of an arena is mostly held by a thread that has no
 * processor.  So first call a function that waits for the main arena's lock and
 * does nothing else.  -EINPROGRESS: the lock is not free; try once more later.
 */
static int probe_allocator_lock(struct sp_attach_job *job, struct sp_tracee *t,
				struct sp_error *err)
{
	struct sp_cpu_call call = {job->allocator_probe, {0}, 0};
	int r;

	if (!job->allocator_probe || job->function || t->tid != t->pid ||
	    sp_clock_ns() - job->began_ns > ALLOCATOR_SEARCH_NS)
		return 0;
	r = run_calls_or_abandon(job, t, &call, 1, ALLOCATOR_LOCK_NS);
	if (r == -EAGAIN) {
		job->busy++;
		return -EINPROGRESS;
	}
	return r < 0 ? fail_call(job, r, "a call to its allocator", err) : 0;
}

static int begin_profile(struct sp_attach_job *job, struct sp_tracee *t,
			 struct sp_error *err)
{
	int r = ask_heap_in_use(job, t, err);

	if (r == 0)
		r = probe_allocator_lock(job, t, err);
	if (r == 0 && !job->function)
		r = load_library(job, t, err);
	return r == 0 ? call_library(job, t, err) : r;
}

/* Thread-local state of the C library that the calls must not change: errno,
 * and the pointer to the text that dlerror would return.  Every call of the
 * loader would free that text. */
struct saved_errors {
	uint64_t errno_at, error_at;
	int error_number;
	uint64_t error;
};

static bool save_errors(const struct sp_attach_job *job, struct sp_tracee *t,
			struct saved_errors *saved)
{
	const uint64_t none = 0;

	if (!sp_tracee_read(t->pid, saved->errno_at, &saved->error_number,
			    sizeof(saved->error_number)))
		return false;
	if (!job->error_distance)
		return true;
	saved->error_at = saved->errno_at + job->error_distance;
	return sp_tracee_read(t->pid, saved->error_at, &saved->error,
			      sizeof(saved->error)) &&
	       (!saved->error ||
		sp_tracee_write(t, saved->error_at, &none, sizeof(none)));
}

static void restore_errors(struct sp_tracee *t,
			   const struct saved_errors *saved)
{
	sp_tracee_write(t, saved->errno_at, &saved->error_number,
			sizeof(saved->error_number));
	if (saved->error)
		sp_tracee_write(t, saved->error_at, &saved->error,
				sizeof(saved->error));
}

/* The first calls: get the address of errno; and take and release the loader's
 * lock, before the heap is asked in vain. */
static int make_first_calls(struct sp_attach_job *job, struct sp_tracee *t,
			    uint64_t *ret_errno)
{
	struct sp_cpu_call errno_call = {job->errno_location, {0}, 0}, probe;
	int r = run_calls(t, &errno_call, 1, remaining_ns(job));

	*ret_errno = errno_call.result;
	return r < 0 || job->request.command == SP_ATTACH_END
		       ? r
		       : run_calls_of_loader(job, t, &probe, 1);
}

int sp_attach_work(struct sp_attach_job *job, struct sp_tracee *t,
		   struct sp_error *err)
{
	struct saved_errors saved = {0};
	int r;

	job->until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
	r = sp_tracee_borrow(t, job->syscall, job->sigreturn, err);
	if (r < 0)
		return r;
	r = make_first_calls(job, t, &saved.errno_at);
	if (r < 0)
		return r == -EINPROGRESS
			       ? r
			       : fail_call(job, r, "a call to its loader", err);
	if (!save_errors(job, t, &saved))
		return fail_call(job, -EIO, "a call to its C library", err);
	r = job->request.command == SP_ATTACH_BEGIN ? begin_profile(job, t, err)
						    : call_library(job, t, err);
	restore_errors(t, &saved);
	return r;
}
