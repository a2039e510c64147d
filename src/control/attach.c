/* SPDX-License-Identifier: MIT */
#include "control/attach.h"

#include <assert.h>
#include <dlfcn.h>
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

#include "control/choose.h"
#include "control/clock.h"
#include "control/image.h"
#include "control/library.h"
#include "control/suitable.h"
#include "control/tracee.h"
#include "format/attach.h"

#define GIVE_UP_NS 2000000000ull
#define LOCK_NS    100000000ull
#define SUMS_NS    5000000ull
#define ROUND_NS   1000000
#define START_NS   1000000000ull

/* What is where in the memory of a tracee. */
#define AT_REQUEST SP_TRACEE_FREE
#define AT_PATH    6144u
#define AT_INFO    7168u
static_assert(AT_REQUEST + sizeof(struct sp_attach_request) <= AT_PATH,
	      "has room");

/* What is to be done in one thread, and with what it needs of the process.  In
 * memory that is shared with the process that does it. */
struct job {
	pid_t pid;
	struct sp_image *image;
	struct sp_library library;
	struct sp_attach_request request;
	bool is_filtered; /* its system calls are */
	uint64_t syscall, load, close, error, errno_location, lock_probe;
	uint64_t sums;     /* mallinfo2, or 0 */
	uint64_t until;    /* by then the thread is let go */
	uint64_t function; /* of ours, 0: not loaded yet */
	struct sp_attach_done done;
	/* The thread that is run before others for the moment, or 0. */
	pid_t hurried;
	int nice; /* what it has otherwise */
	/* Of the process that does the work. */
	struct sp_choice choice;
	struct sp_error err;
	int result;
};

static uint64_t left_ns(const struct job *job)
{
	const uint64_t now = sp_clock_ns();

	return now < job->until ? job->until - now : 0;
}

/* ---- in a thread that is ours for the moment ---- */

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

static int explain_load(const struct job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	struct sp_cpu_call call = {.function = job->error};
	char text[160] = "";

	if (sp_tracee_run(t, &call, 1, GIVE_UP_NS) == 0 && call.result)
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

static int load_library(struct job *job, struct sp_tracee *t,
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
		    ? sp_tracee_run(t, calls, there.fd < 0 ? 1 : 2,
				    left_ns(job))
		    : -EIO;
	sp_library_clean_up(t->pid, &there);
	if (r < 0)
		return fail_call(t, r, "loading the library", err);
	job->function = sp_library_find(&job->library, t->pid, &there);
	return job->function ? 0 : explain_load(job, t, err);
}

static int call_library(struct job *job, struct sp_tracee *t,
			struct sp_error *err)
{
	const uint64_t at = t->memory + AT_REQUEST;
	struct sp_cpu_call call = {job->function, {at}, 0};
	int r;

	if (!sp_tracee_write(t, at, &job->request, sizeof(job->request)))
		return fail_call(t, -EIO, "the library", err);
	r = sp_tracee_run(t, &call, 1, left_ns(job));
	if (r < 0)
		return fail_call(t, r, "the library", err);
	if (!sp_tracee_read(t->pid, at, &job->request, sizeof(job->request)))
		return fail_call(t, -EIO, "the library", err);
	return 0;
}

/* Calls that wait for locks.  -EAGAIN: the last of them does, for longer than
 * the limit, and it is as if it had not been made. */
static int run_or_abandon(const struct job *job, struct sp_tracee *t,
			  struct sp_cpu_call *calls, size_t n,
			  uint64_t limit_ns)
{
	int r = sp_tracee_run(t, calls, n, limit_ns);

	while (r == -ETIMEDOUT && left_ns(job)) {
		if (sp_tracee_abandon(t))
			return -EAGAIN;
		/* It only was not run. */
		r = sp_tracee_go_on(t, calls, n, limit_ns);
	}
	return r;
}

/*
 * Before anything else: where errno is; and that the loader's lock is free, or
 * will be at once.  If it is not, another thread is in a constructor, which may
 * wait for this one.
 */
static int begin_work(struct job *job, struct sp_tracee *t, uint64_t *ret_errno)
{
	struct sp_cpu_call calls[2] = {
		{job->errno_location, {0}, 0},
		{job->lock_probe, {job->lock_probe, t->memory + AT_INFO}, 0},
	};
	int r = run_or_abandon(job, t, calls, 2, LOCK_NS);

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
 * library does it, for that has the loader's lock meanwhile.
 */
static int ask_before(struct job *job, struct sp_tracee *t,
		      struct sp_error *err)
{
	struct sp_cpu_call call = {job->sums, {t->memory + AT_INFO}, 0};
	struct sums sums;
	int r;

	job->request.knows_glibc = 0;
	if (!job->sums || job->request.command != SP_ATTACH_BEGIN)
		return 0;
	r = run_or_abandon(job, t, &call, 1, SUMS_NS);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return fail_call(t, r, "its allocator", err);
	if (sp_tracee_read(t->pid, t->memory + AT_INFO, &sums, sizeof(sums))) {
		job->request.glibc_bytes = sums.uordblks + sums.hblkhd;
		job->request.knows_glibc = 1;
	}
	return 0;
}

/* While it works the thread may have the loader's lock, and on a busy machine
 * it would mostly wait for a processor.  Only root may do that. */
static void hurry(struct job *job, pid_t tid)
{
	errno = 0;
	job->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	if (errno)
		return;
	job->hurried = tid;
	if (setpriority(PRIO_PROCESS, (id_t)tid, -20) != 0)
		job->hurried = 0;
}

static void stop_hurry(struct job *job)
{
	if (job->hurried)
		setpriority(PRIO_PROCESS, (id_t)job->hurried, job->nice);
	job->hurried = 0;
}

/* 0, and the answer is in the request; -EAGAIN: in another thread. */
static int work_in(struct job *job, struct sp_tracee *t, struct sp_error *err)
{
	uint64_t errno_at = 0;
	int saved_errno, r;

	job->until = sp_clock_ns() + GIVE_UP_NS;
	r = sp_tracee_borrow(t, job->syscall, err);
	if (r < 0)
		return r;
	r = begin_work(job, t, &errno_at);
	if (r < 0)
		return r == -EAGAIN ? r : fail_call(t, r, "its loader", err);
	if (!sp_tracee_read(t->pid, errno_at, &saved_errno,
			    sizeof(saved_errno)))
		return fail_call(t, -EIO, "its C library", err);
	if (!job->function)
		r = load_library(job, t, err);
	if (r == 0)
		r = ask_before(job, t, err);
	if (r == 0)
		r = call_library(job, t, err);
	sp_tracee_write(t, errno_at, &saved_errno, sizeof(saved_errno));
	return r;
}

/* ---- which thread ---- */

static int refuse_trace(const struct job *job, struct sp_error *err)
{
	if (!job->is_filtered || geteuid() == 0)
		return sp_suitable_explain_refusal((uint64_t)job->pid, err);
	return sp_error_set(err, -EPERM, NULL,
			    "process %d filters its system calls (seccomp), "
			    "which may forbid what loading a library needs: be "
			    "root, who may suspend that for the moment",
			    job->pid);
}

/* -EAGAIN: not in this one, or not now. */
static int try_thread(void *arg, struct sp_tracee *t, struct sp_error *err)
{
	struct job *job = arg;
	int r;

	if (!sp_image_may_call(job->image, t))
		return -EAGAIN;
	/* 1: it was not there to be asked. */
	job->request.main_thread =
		job->choice.main_thread ? job->choice.main_thread : 1;
	hurry(job, t->tid);
	r = work_in(job, t, err);
	sp_tracee_release(t);
	stop_hurry(job);
	job->done.thread = (uint64_t)t->tid;
	job->done.stopped_ns = sp_clock_ns() - t->stopped_ns;
	return r;
}

static int search(struct job *job, struct sp_error *err)
{
	const uint64_t until = sp_clock_ns() + GIVE_UP_NS;
	const struct timespec pause = {0, ROUND_NS};
	const struct sched_param first = {.sched_priority = 1};
	int r;

	/* Every stop of a thread waits for us to be run.  If we may not go
	 * before all others, it is longer on a busy machine. */
	if (sched_setscheduler(0, SCHED_RR, &first) != 0)
		setpriority(PRIO_PROCESS, 0, -20);
	job->choice = (struct sp_choice){
		.pid = job->pid,
		.without_filter = job->is_filtered,
		.look = try_thread,
		.arg = job,
	};
	while ((r = sp_choice_round(&job->choice, err)) == -EAGAIN &&
	       sp_clock_ns() < until)
		nanosleep(&pause, NULL);
	if (r == -EPERM)
		return refuse_trace(job, err);
	if (r != -EAGAIN)
		return r;
	return sp_error_set(err, -EBUSY, NULL,
			    "process %d: in 2 s no thread was found at a place "
			    "where it can load a library (outside its "
			    "allocator, its loader and signal handlers); try "
			    "again",
			    job->pid);
}

/* In a process of its own: whatever it still traces at its end goes on as if it
 * had not been asked to stop. */
static int work(struct job *job, struct sp_error *err)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		job->result = search(job, &job->err);
		_exit(0);
	}
	if (child < 0)
		return sp_error_set(err, -errno, NULL, "out of memory");
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			break;
	stop_hurry(job);
	if (!WIFEXITED(status))
		return sp_error_set(err, -EINTR, NULL,
				    "attaching to process %d was interrupted",
				    job->pid);
	if (job->result < 0 && err)
		*err = job->err;
	return job->result;
}

/* ---- beginning and end ---- */

/* The functions that the thread is made to call. */
static int find_functions(struct job *job, struct sp_error *err)
{
	const struct sp_image *image = job->image;

	job->syscall = sp_image_find_code(image, sp_cpu_syscall_code,
					  sizeof(sp_cpu_syscall_code));
	if (job->syscall)
		job->syscall += SP_CPU_SYSCALL_AT;
	job->close = sp_image_libc(image, "close");
	job->load = sp_image_libc(image, "dlopen");
	job->error = sp_image_libc(image, "dlerror");
	job->lock_probe = sp_image_libc(image, "dladdr");
	job->errno_location = sp_image_libc(image, "__errno_location");
	job->sums = sp_image_libc(image, "mallinfo2");
	job->function = sp_image_ours(image, SP_ATTACH_FUNCTION);
	if (job->syscall && job->load && job->error && job->lock_probe &&
	    job->errno_location && job->close)
		return 0;
	return sp_error_set(err, -ENOEXEC, NULL,
			    "process %d has no dlopen: its glibc is older than "
			    "2.34 and it does not use libdl; start it under "
			    "sampleprof run",
			    job->pid);
}

static int read_image(struct job *job, struct sp_error *err)
{
	int r = sp_image_open(job->pid, &job->image, err);

	if (r == 0)
		r = sp_suitable_check_image(job->pid, job->image, err);
	return r == 0 ? find_functions(job, err) : r;
}

/* A process that has just begun may not have loaded its libraries yet. */
static int open_job(struct job *job, uint64_t pid, struct sp_error *err)
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

static void close_job(struct job *job)
{
	sp_image_close(job->image);
	sp_library_free(&job->library);
	munmap(job, sizeof(*job));
}

static struct job *new_job(enum sp_attach_command command, struct sp_error *err)
{
	struct job *job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (job == MAP_FAILED) {
		sp_error_set(err, -ENOMEM, NULL, "out of memory");
		return NULL;
	}
	job->request.version = SP_ATTACH_VERSION;
	job->request.command = command;
	return job;
}

static int pack_settings(struct job *job, const char *const *settings, size_t n,
			 struct sp_error *err)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t bytes = strlen(settings[i]) + 1;

		if (at + bytes + 1 > sizeof(job->request.settings))
			return sp_error_set(err, -E2BIG, NULL,
					    "the settings are too long");
		memcpy(job->request.settings + at, settings[i], bytes);
		at += bytes;
	}
	return 0;
}

static int explain_answer(const struct job *job, struct sp_error *err)
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
				    "off: it is a child that was not to be "
				    "recorded, was not drawn, or can have no "
				    "file; begin with its parent, and follow "
				    "children",
				    job->pid);
	case SP_ATTACH_NO_ALLOCATOR:
		return sp_error_set(err, -ENOEXEC, NULL,
				    "process %d: no allocator was found",
				    job->pid);
	case SP_ATTACH_REFUSED:
		return sp_error_set(err, -EINVAL, NULL,
				    "the library in process %d refuses: a "
				    "setting is not valid, or the program is "
				    "set-uid",
				    job->pid);
	case SP_ATTACH_NO_FILE:
		return sp_error_set(err, q->error, NULL,
				    "process %d cannot create its profile: %s; "
				    "name a directory that its user may write "
				    "to: --out DIR/",
				    job->pid, strerror(-q->error));
	case SP_ATTACH_BUSY:
		return sp_error_set(err, -EBUSY, NULL,
				    "process %d: a thread is still in the "
				    "library, for the profile before; try "
				    "again",
				    job->pid);
	case SP_ATTACH_NOT_THERE:
		return sp_error_set(err, -ESRCH, NULL,
				    "nothing is attached to process %d",
				    job->pid);
	case SP_ATTACH_NO_WRITE:
		return sp_error_set(err, q->error, NULL,
				    "process %d may not make its pointers "
				    "writable: %s",
				    job->pid, strerror(-q->error));
	default:
		return sp_error_set(err, -EPROTO, NULL,
				    "process %d has another version of the "
				    "library loaded: use the sampleprof that "
				    "it is of",
				    job->pid);
	}
}

int sp_attach_begin(uint64_t pid, const char *const *settings, size_t n,
		    struct sp_attach_done *ret, struct sp_error *err)
{
	struct job *job = new_job(SP_ATTACH_BEGIN, err);
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
		r = work(job, err);
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
	const uint64_t until = sp_clock_ns() + GIVE_UP_NS;
	const struct timespec pause = {0, ROUND_NS};
	struct job *job = new_job(SP_ATTACH_END, err);
	int r;

	if (!job)
		return -ENOMEM;
	r = open_job(job, pid, err);
	if (r == 0 && !job->function)
		r = sp_error_set(err, -ESRCH, NULL,
				 "nothing is attached to process %" PRIu64,
				 pid);
	while (r == 0) {
		r = work(job, err);
		if (r < 0 || job->request.result != SP_ATTACH_BUSY ||
		    sp_clock_ns() > until)
			break;
		nanosleep(&pause, NULL);
	}
	if (r == 0 && job->request.result == SP_ATTACH_BUSY)
		r = sp_error_set(err, -EBUSY, NULL,
				 "process %" PRIu64
				 ": the profile is complete, "
				 "but a thread is still in the library; detach "
				 "again to give its memory back",
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
