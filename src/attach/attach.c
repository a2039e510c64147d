/* SPDX-License-Identifier: MIT */
/*
 * The command's side of attach and detach.  A child process, the worker, does
 * all the tracing and nothing else: when it ends for any reason, the kernel
 * releases every thread that it still traces.
 */
#include "attach/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach_inner.h"
#include "attach/suitable.h"
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
/* A process that is younger may not have loaded its libraries yet. */
#define START_NS 1000000000ull

/* ---- which thread ---- */

static int explain_refused_trace(const struct sp_attach_job *job,
				 struct sp_error *err)
{
	if (!job->is_filtered || geteuid() == 0)
		return sp_suitable_explain_refusal((uint64_t)job->pid, err);
	return sp_error_set(err, -EPERM, NULL,
			    "process %d filters its system calls (seccomp), "
			    "and the filter may forbid what loading a library "
			    "needs: run as root, which can suspend the filter "
			    "for that time",
			    job->pid);
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
 * can. */
static int try_thread(void *arg, struct sp_tracee *t, struct sp_error *err)
{
	struct sp_attach_job *job = arg;
	uint64_t stopped_ns;
	int r;

	/* Taken again since await_loader() has looked. */
	if (job->lock_limit_ns == LOADER_LOCK_NS && is_loader_busy(job))
		return -EINPROGRESS;
	if (!sp_image_may_call(job->image, t))
		return -EAGAIN;
	/* 1: the main thread has not stopped, so its address is not known. */
	job->request.main_thread =
		job->choice.main_thread ? job->choice.main_thread : 1;
	/* The signal frames of sp_hurry make system calls for which a seccomp
	 * filter may kill the thread. */
	if (!job->is_filtered && sp_hurry_begin(&job->hurry, t->tid))
		t->hurry = &job->hurry;
	r = sp_attach_work(job, t, err);
	sp_tracee_return(t);
	sp_hurry_end(&job->hurry);
	sp_tracee_release(t);
	stopped_ns = sp_clock_ns() - t->stopped_ns;
	job->done.thread = (uint64_t)t->tid;
	if (stopped_ns > job->done.stopped_ns)
		job->done.stopped_ns = stopped_ns;
	return r;
}

/* Each round may stop a thread in vain while the allocator is busy, so the
 * pause grows. */
static void pause_between_rounds(const struct sp_attach_job *job)
{
	const uint64_t ns = ROUND_PAUSE_NS + job->busy * BUSY_PAUSE_NS;
	const struct timespec pause = {
		0, (long)(ns < PAUSE_MAX_NS ? ns : PAUSE_MAX_NS)};

	nanosleep(&pause, NULL);
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

	while (is_loader_busy(job)) {
		searched_ns = sp_clock_ns() - job->began_ns;
		if (searched_ns > LOADER_AWAIT_NS)
			break;
		nanosleep(&pause, NULL);
	}
	job->lock_limit_ns = searched_ns > LOADER_AWAIT_NS ? searched_ns / 8
							   : LOADER_LOCK_NS;
}

static int search_thread(struct sp_attach_job *job, struct sp_error *err)
{
	const uint64_t until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
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
		.arg = job,
	};
	job->began_ns = sp_clock_ns();
	do {
		await_loader(job);
		r = sp_choice_round(&job->choice, err);
		if (r != -EAGAIN && r != -EINPROGRESS)
			break;
		pause_between_rounds(job);
	} while (sp_clock_ns() < until);
	if (r == -EPERM)
		return explain_refused_trace(job, err);
	if (r != -EAGAIN && r != -EINPROGRESS)
		return r;
	return sp_suitable_explain_silence((uint64_t)job->pid, err);
}

/* Do the job in the worker.  When the worker ends, threads that it still traces
 * continue as if they had not been asked to stop. */
static int run_job(struct sp_attach_job *job, struct sp_error *err)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		sp_tracee_begin();
		job->result = search_thread(job, &job->err);
		_exit(0);
	}
	if (child < 0)
		return sp_error_set(err, -errno, NULL, "out of memory");
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			break;
	sp_hurry_end(&job->hurry);
	if (!WIFEXITED(status))
		return sp_error_set(
			err, -EINTR, NULL,
			"the helper that traces process %d was killed; the "
			"process continues as before: repeat the "
			"command",
			job->pid);
	if (job->result < 0 && err)
		*err = job->err;
	return job->result;
}

/* ---- attach and detach ---- */

/* The code and functions that the thread is made to call. */
static int find_functions(struct sp_attach_job *job, struct sp_error *err)
{
	const struct sp_image *image = job->image;

	job->syscall = sp_image_find_code(image, sp_cpu_syscall_code,
					  sizeof(sp_cpu_syscall_code));
	if (job->syscall)
		job->syscall += SP_CPU_SYSCALL_AT;
	job->sigreturn = sp_image_find_code(image, sp_cpu_sigreturn_code,
					    sizeof(sp_cpu_sigreturn_code));
	job->libc_close = sp_image_libc(image, "close");
	job->dlopen = sp_image_libc(image, "dlopen");
	job->dlerror = sp_image_libc(image, "dlerror");
	job->lock_probe = sp_image_libc(image, "dladdr");
	job->errno_location = sp_image_libc(image, "__errno_location");
	/* glibc has __libc_dlerror_result since 2.34. */
	if (!sp_image_libc_distance(image, "errno", "__libc_dlerror_result",
				    &job->error_distance))
		job->error_distance = 0;
	if (!sp_image_has_allocator(image)) {
		job->mallinfo2 = sp_image_libc(image, "mallinfo2");
		job->allocator_probe = sp_image_libc(image, "mallopt");
	}
	job->function = sp_image_ours(image, SP_ATTACH_FUNCTION);
	if (job->syscall && job->dlopen && job->dlerror && job->lock_probe &&
	    job->errno_location && job->libc_close)
		return 0;
	return sp_error_set(err, -ENOEXEC, NULL,
			    "process %d has no dlopen, because its glibc is "
			    "older than 2.34 and it does not use libdl: start "
			    "it under sampleprof run",
			    job->pid);
}

static int read_image(struct sp_attach_job *job, struct sp_error *err)
{
	int r = sp_image_open(job->pid, &job->image, err);

	if (r == 0)
		r = sp_suitable_check_image(job->pid, job->image, err);
	return r == 0 ? find_functions(job, err) : r;
}

/* Reads the image again while the process is so young that it may not have
 * loaded its libraries yet. */
static int open_job(struct sp_attach_job *job, uint64_t pid,
		    struct sp_error *err)
{
	const struct timespec pause = {0, START_NS / 50};
	const uint64_t until = sp_clock_ns() + START_NS;
	int r = sp_suitable_check(pid, &job->is_filtered, err);

	job->pid = (pid_t)pid;
	if (r < 0)
		return r;
	while ((r = read_image(job, err)) == -ENOEXEC &&
	       sp_clock_ns() < until &&
	       sp_suitable_age_ms(pid) < START_NS / 1000000) {
		sp_image_close(job->image);
		job->image = NULL;
		nanosleep(&pause, NULL);
	}
	return r;
}

static void close_job(struct sp_attach_job *job)
{
	sp_image_close(job->image);
	sp_library_free(&job->library);
	munmap(job, sizeof(*job));
}

static struct sp_attach_job *new_job(enum sp_attach_command command,
				     struct sp_error *err)
{
	struct sp_attach_job *job =
		mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (job == MAP_FAILED) {
		sp_error_set(err, -ENOMEM, NULL, "out of memory");
		return NULL;
	}
	job->request.version = SP_ATTACH_VERSION;
	job->request.command = command;
	return job;
}

static int pack_settings(struct sp_attach_job *job, const char *const *settings,
			 size_t n, struct sp_error *err)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t bytes = strlen(settings[i]) + 1;

		if (at + bytes + 1 > sizeof(job->request.settings))
			return sp_error_set(err, -E2BIG, NULL,
					    "the settings have more than 4 KiB "
					    "in all: unset SAMPLEPROF_ "
					    "variables, or shorten --out");
		memcpy(job->request.settings + at, settings[i], bytes);
		at += bytes;
	}
	return 0;
}

static int explain_not_there(uint64_t pid, struct sp_error *err)
{
	return sp_error_set(err, -ESRCH, NULL,
			    "nothing is attached to process %" PRIu64
			    ": sampleprof ps lists the processes that are "
			    "recorded",
			    pid);
}

/* An answer with the errno of a system call. */
static int explain_errno(const struct sp_attach_job *job, struct sp_error *err)
{
	const int error = job->request.error;

	if (job->request.result == SP_ATTACH_NO_FILE)
		return sp_error_set(err, error, NULL,
				    "process %d cannot create its profile: %s; "
				    "name a directory that its user may write "
				    "to: --out DIR/",
				    job->pid, strerror(-error));
	return sp_error_set(err, error, NULL,
			    "process %d cannot make its GOT slots and "
			    "symbol tables writable: %s; start the "
			    "program under sampleprof run",
			    job->pid, strerror(-error));
}

static int explain_answer(const struct sp_attach_job *job, struct sp_error *err)
{
	const struct sp_attach_request *q = &job->request;

	switch (q->result) {
	case SP_ATTACH_DONE:
		return 0;
	case SP_ATTACH_IS_PRELOADED:
		return sp_error_set(err, -EEXIST, NULL,
				    "process %d was started under sampleprof: "
				    "sampleprof ctl %d %s",
				    job->pid, job->pid,
				    q->command == SP_ATTACH_END ? "stop"
								: "start");
	case SP_ATTACH_IS_OFF:
		return sp_error_set(err, -EEXIST, NULL,
				    "process %d has the library, switched "
				    "off: it is a child that is not to be "
				    "recorded, was not drawn, or could not "
				    "create its file; attach to its parent, "
				    "with --follow all",
				    job->pid);
	case SP_ATTACH_NO_ALLOCATOR:
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %d: no allocator was found whose "
				    "calls can be redirected; start the "
				    "program under sampleprof run",
				    job->pid);
	case SP_ATTACH_REFUSED:
		return sp_error_set(err, -EINVAL, NULL,
				    "the library in process %d refuses to "
				    "record: a SAMPLEPROF_ variable is not "
				    "valid (man 7 sampleprof), or the program "
				    "is set-uid, which cannot be recorded",
				    job->pid);
	case SP_ATTACH_NO_FILE:
	case SP_ATTACH_NO_WRITE:
		return explain_errno(job, err);
	case SP_ATTACH_BUSY:
		return sp_error_set(err, -EBUSY, NULL,
				    "process %d: a thread is still in the "
				    "library, for the previous profile; try "
				    "again",
				    job->pid);
	case SP_ATTACH_NOT_THERE:
		return explain_not_there((uint64_t)job->pid, err);
	default:
		return sp_error_set(err, -EPROTO, NULL,
				    "process %d has another version of the "
				    "library loaded: use the sampleprof "
				    "command of that version",
				    job->pid);
	}
}

/* mallinfo2 is called only if glibc walks the heap in a short time, or if the
 * user asks for it (`any`). */
static void decide_heap_query(struct sp_attach_job *job, bool any)
{
	job->done.heap_bytes = sp_suitable_heap_bytes((uint64_t)job->pid);
	if (!job->mallinfo2 || any ||
	    job->done.heap_bytes <= SP_ATTACH_HEAP_BYTES)
		return;
	job->mallinfo2 = 0;
	job->done.before = SP_ATTACH_BEFORE_LARGE;
}

int sp_attach_begin(uint64_t pid, const char *const *settings, size_t n,
		    bool ask_before, struct sp_attach_done *ret,
		    struct sp_error *err)
{
	struct sp_attach_job *job = new_job(SP_ATTACH_BEGIN, err);
	int r;

	if (!job)
		return -ENOMEM;
	r = open_job(job, pid, err);
	if (r == 0)
		r = pack_settings(job, settings, n, err);
	if (r == 0)
		r = sp_library_read(&job->library, err);
	if (r == 0) {
		job->request.is_filtered = job->is_filtered;
		job->request.age_ms = sp_suitable_age_ms(pid);
		decide_heap_query(job, ask_before);
		r = run_job(job, err);
	}
	if (r == 0)
		r = explain_answer(job, err);
	job->done.places = job->request.places;
	*ret = job->done;
	close_job(job);
	return r;
}

int sp_attach_end(uint64_t pid, struct sp_attach_done *ret,
		  struct sp_error *err)
{
	const uint64_t until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
	struct sp_attach_job *job = new_job(SP_ATTACH_END, err);
	int r;

	if (!job)
		return -ENOMEM;
	r = open_job(job, pid, err);
	if (r == 0 && !job->function)
		r = explain_not_there(pid, err);
	while (r == 0) {
		r = run_job(job, err);
		if (r < 0 || job->request.result != SP_ATTACH_BUSY ||
		    sp_clock_ns() > until)
			break;
		job->busy++;
		pause_between_rounds(job);
	}
	if (r == 0 && job->request.result == SP_ATTACH_BUSY)
		r = sp_error_set(err, -EBUSY, NULL,
				 "process %" PRIu64
				 ": the profile is complete, "
				 "but a thread is still in the library; detach "
				 "again to free the library's memory",
				 pid);
	if (r == 0)
		r = explain_answer(job, err);
	job->done.places = job->request.places;
	*ret = job->done;
	close_job(job);
	return r;
}

bool sp_attach_sees_our_files(uint64_t pid)
{
	char path[64];
	struct stat here, there;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/ns/mnt", pid);
	if (stat(path, &there) != 0 || stat("/proc/self/ns/mnt", &here) != 0 ||
	    here.st_ino != there.st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/root", pid);
	return stat(path, &there) == 0 && stat("/", &here) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}
