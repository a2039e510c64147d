/* SPDX-License-Identifier: MIT */
/* The command's side of attach and detach. */
#include "control/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/attach_inner.h"
#include "control/entries.h"
#include "control/room.h"
#include "control/suitable.h"
#include "control/worker.h"
#include "base/clock.h"
#include "base/patience.h"
#include "base/proc.h"
#include "format/layout.h"

/* A process that is younger may not have loaded its libraries yet. */
#define START_NS 1000000000ull
/* A program that has just been executed has loaded them by then. */
#define EXEC_NS 200000000ull
/* How long a process takes to end, or to execute a program, when its threads
 * have ended. */
#define ENDING_NS 500000000ull
/* How long another command is waited for. */
#define LOCK_NS      5000000000ull
#define LOCK_POLL_NS 2000000
/* The memory that a process may need: at once, and for each thread that has
 * counted. */
#define ATTACH_BYTES (1u << 20)
#define DETACH_BYTES (128u << 10)
#define THREAD_BYTES (9u << 10)

/* ---- the worker ---- */

static int explain_worker(const struct sp_attach_job *job, int r,
			  struct sp_error *err)
{
	if (r == -EINTR)
		return sp_error_set(
			err, r, NULL,
			"the helper that traces process %d was killed; the "
			"process continues as before: repeat the command",
			job->pid);
	if (r == -ETIMEDOUT)
		return sp_error_set(
			err, -EBUSY, NULL,
			"process %d: the kernel did not answer in 5 s when its "
			"threads or its memory were looked at (such as memory "
			"of a file system that does not answer); it was let "
			"go: try again",
			job->pid);
	return sp_error_set(err, r, NULL, "no helper can be started: %s",
			    strerror(-r));
}

/* Do the job in a worker. */
static int run_worker(struct sp_attach_job *job, void (*work)(void *arg),
		      struct sp_error *err)
{
	int r;

	atomic_store(&job->worker.is_cancelled, false);
	r = sp_worker_run(&job->worker, work, job, &job->signal);
	sp_hurry_end(&job->hurry);
	if (r < 0)
		return explain_worker(job, r, err);
	if (job->result < 0 && err)
		*err = job->err;
	return job->result;
}

/* ---- attach and detach ---- */

/* glibc before 2.34 has these in libdl, which a program may do without.  Its
 * libc has functions for its own use then, in all versions. */
static void find_loader_functions(struct sp_attach_job *job)
{
	const struct sp_image *image = job->image;

	job->dlopen = sp_image_libc(image, "dlopen");
	job->dlerror = sp_image_libc(image, "dlerror");
	job->lock_probe = sp_image_libc(image, "dladdr");
	if (job->dlopen && job->dlerror && job->lock_probe)
		return;
	job->dlopen = sp_image_libc(image, "__libc_dlopen_mode");
	job->lock_probe = sp_image_libc(image, "_dl_addr");
	job->dlerror = 0;
	job->needs_libdl = true;
}

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
	find_loader_functions(job);
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
	job->entries = sp_image_our_object(image, SP_ATTACH_LIST);
	if (job->syscall && job->dlopen && job->lock_probe &&
	    job->errno_location && job->libc_close)
		return 0;
	return sp_error_set(err, -ENOEXEC, NULL,
			    "the C library of process %d has no %s that the "
			    "command knows: start it under sampleprof run",
			    job->pid, job->syscall ? "dlopen" : "system call");
}

static int read_image(struct sp_attach_job *job, struct sp_error *err)
{
	int r = sp_image_open(job->pid, &job->image, err);

	if (r == 0)
		r = sp_suitable_check_image(job->pid, job->image, err);
	return r == 0 ? find_functions(job, err) : r;
}

/* Whatever has failed, it is because the process has ended. */
static int explain_end(const struct sp_attach_job *job, int r,
		       struct sp_error *err)
{
	if (!sp_suitable_has_ended((uint64_t)job->pid))
		return r;
	return sp_error_set(err, -ESRCH, NULL, "process %d has ended",
			    job->pid);
}

/* Can the image be another one soon?  The process is so young that it may not
 * have loaded its libraries yet, or executes a program just now. */
static bool is_beginning(const struct sp_attach_job *job, int r,
			 uint64_t tried_ns)
{
	if (r == -ENOEXEC &&
	    sp_suitable_age_ms((uint64_t)job->pid) < START_NS / 1000000)
		return tried_ns < START_NS;
	return tried_ns < EXEC_NS &&
	       (r == -ENOEXEC || !job->program.at ||
		sp_suitable_has_executed(job->pid, &job->program));
}

static int open_image(struct sp_attach_job *job, struct sp_error *err)
{
	const struct timespec pause = {0, START_NS / 50};
	const uint64_t began_ns = sp_clock_ns();
	int r;

	for (;;) {
		sp_image_close(job->image);
		job->image = NULL;
		sp_suitable_read_program(job->pid, &job->program);
		r = read_image(job, err);
		if (r == 0)
			return 0;
		if (!is_beginning(job, r, sp_clock_ns() - began_ns))
			return explain_end(job, r, err);
		nanosleep(&pause, NULL);
	}
}

/*
 * Two commands at once would both load the library.  Who may open this file may
 * trace the process, and nobody else can hold the lock.
 */
static int lock_target(struct sp_attach_job *job, struct sp_error *err)
{
	const struct timespec pause = {0, LOCK_POLL_NS};
	const uint64_t until = sp_clock_ns() + LOCK_NS;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/auxv", job->pid);
	job->lock = open(path, O_RDONLY | O_CLOEXEC);
	if (job->lock < 0)
		return 0; /* sp_suitable_check says why */
	while (flock(job->lock, LOCK_EX | LOCK_NB) != 0 &&
	       errno == EWOULDBLOCK) {
		if (sp_clock_ns() > until)
			return sp_error_set(err, -EBUSY, NULL,
					    "process %d: another sampleprof "
					    "attaches to it or detaches from "
					    "it, and was not done in 5 s: try "
					    "again",
					    job->pid);
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int open_job(struct sp_attach_job *job, uint64_t pid,
		    struct sp_error *err)
{
	int r = 0;

	job->pid = (pid_t)pid;
	if (job->lock < 0)
		r = lock_target(job, err);
	if (r == 0)
		r = sp_suitable_check(pid, &job->is_filtered, err);
	return r == 0 ? open_image(job, err) : r;
}

static void close_job(struct sp_attach_job *job)
{
	sp_image_close(job->image);
	sp_library_free(&job->library);
	if (job->lock >= 0)
		close(job->lock);
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
	job->request.attached_by = (uint64_t)getpid();
	job->lock = -1;
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

/* The library has ended the profile at the first request, and then waits until
 * no thread is in it. */
static bool is_complete(const struct sp_attach_job *job)
{
	return job->request.command == SP_ATTACH_END &&
	       job->request.result == SP_ATTACH_BUSY;
}

/* The allocator's own functions, where these do not come by the loader. */
static int write_entries(struct sp_attach_job *job, struct sp_error *err)
{
	if (!job->entries && job->function && job->library.entries)
		job->entries = job->function - job->library.function +
			       job->library.entries;
	return sp_entries_any(job) ? run_worker(job, sp_entries_write, err) : 0;
}

/* Let a worker do what is asked for, until no thread is in the library. */
static int ask_until_free(struct sp_attach_job *job, struct sp_error *err)
{
	const uint64_t until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
	int r;

	for (;;) {
		r = run_worker(job, sp_attach_search, err);
		/* What fails now has not kept the profile from its end. */
		if (r < 0 && is_complete(job))
			return sp_attach_explain_answer(job, err);
		if (r < 0 || job->request.result != SP_ATTACH_BUSY ||
		    job->signal || sp_clock_ns() > until)
			return r < 0 ? r : sp_attach_explain_answer(job, err);
		job->busy++;
		sp_attach_pause(job);
	}
}

/* Nothing is recorded that cannot be seen whole. */
static int begin_job(struct sp_attach_job *job, struct sp_error *err)
{
	int r = ask_until_free(job, err);

	if (r < 0 || job->signal)
		return r;
	r = write_entries(job, err);
	if (r == 0)
		return 0;
	job->request.command = SP_ATTACH_END;
	ask_until_free(job, NULL);
	job->request.command = SP_ATTACH_BEGIN;
	return r;
}

/* What was loaded before the library has looked away is restored behind it. */
static int end_job(struct sp_attach_job *job, struct sp_error *err)
{
	int r = write_entries(job, err);

	if (r == 0)
		r = ask_until_free(job, err);
	if (r == 0)
		r = write_entries(job, err);
	return r;
}

/* Detach copies to the file what each thread has counted.  After an attach, a
 * detach has to be possible. */
static int check_room(const struct sp_attach_job *job, struct sp_error *err)
{
	const bool begins = job->request.command == SP_ATTACH_BEGIN;
	uint64_t threads = sp_suitable_threads((uint64_t)job->pid);

	if (threads > SP_FORMAT_SLOTS)
		threads = SP_FORMAT_SLOTS;
	return sp_room_check(job->pid,
			     (begins ? ATTACH_BYTES : DETACH_BYTES) +
				     threads * THREAD_BYTES,
			     begins ? "attach" : "detach", err);
}

/*
 * After a failure: has the process executed another program?  Its threads end
 * some time before the program is another one, as they do when it ends.
 */
static bool has_executed(const struct sp_attach_job *job, int r)
{
	const struct timespec pause = {0, ENDING_NS / 500};
	const uint64_t until = sp_clock_ns() + ENDING_NS;

	for (;;) {
		if (r == -ESTALE ||
		    sp_suitable_has_executed(job->pid, &job->program))
			return true;
		if (r != -EIO || sp_clock_ns() > until ||
		    sp_suitable_has_ended((uint64_t)job->pid))
			return false;
		nanosleep(&pause, NULL);
	}
}

/* The same, in the program that the process runs then, if it executes another
 * one meanwhile. */
static int run_job(struct sp_attach_job *job, bool ask_before,
		   struct sp_error *err)
{
	const uint64_t until = sp_clock_ns() + SP_ATTACH_GIVE_UP_NS;
	const bool begins = job->request.command == SP_ATTACH_BEGIN;
	int r;

	for (;;) {
		/* The program that was recorded is gone. */
		if (!begins && !job->function && is_complete(job))
			return 0;
		if (!begins && !job->function)
			return sp_attach_explain_not_there((uint64_t)job->pid,
							   err);
		job->request.is_filtered = job->is_filtered;
		job->busy = 0;
		job->loader_lock = 0;
		if (begins)
			decide_heap_query(job, ask_before);
		r = check_room(job, err);
		if (r == 0)
			r = begins ? begin_job(job, err) : end_job(job, err);
		if (r == 0 || job->signal || r == -ENOMEM)
			return r;
		if (!has_executed(job, r))
			return explain_end(job, r, err);
		if (sp_clock_ns() > until)
			return sp_error_set(err, -EBUSY, NULL,
					    "process %d has executed one "
					    "program after the other for 2 s: "
					    "try again",
					    job->pid);
		r = open_job(job, (uint64_t)job->pid, err);
		if (r < 0)
			return r;
	}
}

/* The command is to end: nothing is to be left of an attach. */
static int give_way(struct sp_attach_job *job, int r, struct sp_error *err)
{
	const int signal = job->signal;
	const bool begins = job->request.command == SP_ATTACH_BEGIN;

	if (r == 0 && begins) {
		job->request.command = SP_ATTACH_END;
		end_job(job, NULL);
	}
	raise(signal);
	if (!begins && (r == 0 || is_complete(job)))
		return 0;
	return sp_error_set(err, -EINTR, NULL,
			    "interrupted: process %d is %s recorded", job->pid,
			    begins ? "not" : "still");
}

static int finish_job(struct sp_attach_job *job, int r,
		      struct sp_attach_done *ret, struct sp_error *err)
{
	if (job->signal)
		r = give_way(job, r, err);
	job->done.places = job->request.places;
	job->done.is_complete = is_complete(job);
	*ret = job->done;
	close_job(job);
	return r;
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
	job->request.age_ms = sp_suitable_age_ms(pid);
	if (r == 0)
		r = run_job(job, ask_before, err);
	return finish_job(job, r, ret, err);
}

int sp_attach_end(uint64_t pid, struct sp_attach_done *ret,
		  struct sp_error *err)
{
	struct sp_attach_job *job = new_job(SP_ATTACH_END, err);
	int r;

	if (!job)
		return -ENOMEM;
	r = open_job(job, pid, err);
	if (r == 0)
		r = run_job(job, false, err);
	return finish_job(job, r, ret, err);
}

int sp_attach_sees_our_files(uint64_t pid, struct sp_error *err)
{
	const pid_t thread = sp_proc_thread(pid);
	bool is_filtered;
	char path[64];
	struct stat st, root, here;
	bool can_ask;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", thread);
	can_ask = stat(path, &st) == 0;
	snprintf(path, sizeof(path), "/proc/%d/root", thread);
	can_ask = can_ask && sp_patience_stat(AT_FDCWD, path, &root) == 0;
	if (!can_ask)
		return sp_suitable_check(pid, &is_filtered, err);
	if (stat("/proc/self/ns/mnt", &here) != 0 || here.st_ino != st.st_ino)
		return 0;
	return stat("/", &here) == 0 && here.st_dev == root.st_dev &&
	       here.st_ino == root.st_ino;
}
