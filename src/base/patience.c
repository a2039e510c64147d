/* SPDX-License-Identifier: MIT */
#include "base/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* What linux/openat2.h has, which older systems do not. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_FROM_CACHE 0x20

#define STACK_BYTES 65536u
#define BYTES_MAX   (1u << 20)
#define LEAST_NS    20000000u
#define FORGET_NS   60000000000ull
#define LEFT_MAX    64u

struct how {
	uint64_t flags, mode, resolve;
};

/* The kernel writes to it as long as the call goes on, so the caller and the
 * thread have a share each, and whoever gives up the last one frees it. */
struct job {
	long number, args[6], result;
	size_t room;
	bool is_left; /* the caller waits no more */
	_Atomic int shares;
	_Atomic uint32_t has_result; /* a futex */
	union {
		struct {
			struct how how;
			char path[PATH_MAX];
		} open;
		struct {
			struct stat st;
			char path[PATH_MAX];
		} stat;
		struct {
			struct iovec here, there;
		} memory;
	} in;
	char bytes[];
};

static _Atomic uint64_t missed_ns; /* when; 0: never */
static _Atomic uint64_t time_ns = SP_PATIENCE_NS;
static _Atomic uint64_t waited_ns;
static _Atomic unsigned int n_left;

static uint64_t get_time(void)
{
	const uint64_t missed = atomic_load(&missed_ns);

	return missed && sp_clock_ns() - missed < FORGET_NS
		       ? atomic_load(&time_ns)
		       : SP_PATIENCE_NS;
}

static void note_miss(uint64_t ns)
{
	atomic_store(&waited_ns, ns);
	atomic_store(&time_ns, ns / 2 > LEAST_NS ? ns / 2 : LEAST_NS);
	atomic_store(&missed_ns, sp_clock_ns());
}

unsigned int sp_patience_waited_ms(void)
{
	return (unsigned int)(atomic_load(&waited_ns) / 1000000u);
}

static struct job *new_job(size_t bytes, long number)
{
	struct job *job =
		mmap(NULL, sizeof(*job) + bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (job == MAP_FAILED)
		return NULL;
	job->number = number;
	job->room = bytes;
	atomic_store(&job->shares, 2);
	return job;
}

static void give_up(struct job *job)
{
	if (atomic_fetch_sub(&job->shares, 1) != 1)
		return;
	if (job->is_left) {
		if (job->result >= 0 &&
		    (job->number == SYS_openat || job->number == SYS_openat2))
			close((int)job->result);
		atomic_fetch_sub(&n_left, 1);
	}
	munmap(job, sizeof(*job) + job->room);
}

static void *make_call(void *arg)
{
	struct job *job = arg;
	const long *a = job->args;

	job->result = syscall(job->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (job->result < 0)
		job->result = -errno;
	atomic_store(&job->has_result, 1);
	syscall(SYS_futex, &job->has_result, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
		0);
	give_up(job);
	return NULL;
}

/* False: there is none in that time. */
static bool wait_for_result(struct job *job, uint64_t ns)
{
	const uint64_t until = sp_clock_ns() + ns;

	while (!atomic_load(&job->has_result)) {
		const uint64_t now = sp_clock_ns();
		struct timespec left;

		if (now >= until)
			return false;
		left.tv_sec = (time_t)((until - now) / 1000000000u);
		left.tv_nsec = (long)((until - now) % 1000000000u);
		syscall(SYS_futex, &job->has_result, FUTEX_WAIT_PRIVATE, 0,
			&left, NULL, 0);
	}
	return true;
}

/* Signals are the caller's. */
static bool start_thread(struct job *job, pthread_t *ret)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, &attributes, make_call, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return r == 0;
}

/* Frees the job after its bytes are copied. */
static long finish(struct job *job, void *to, const void *from, size_t bytes)
{
	const uint64_t ns = get_time();
	long result = -ETIMEDOUT;
	bool is_started;
	pthread_t thread;

	if (atomic_load(&n_left) >= LEFT_MAX) {
		munmap(job, sizeof(*job) + job->room);
		return result;
	}
	is_started = start_thread(job, &thread);
	/* The user has as many threads as he may have: it is asked here. */
	if (!is_started)
		make_call(job);
	if (!is_started || wait_for_result(job, ns)) {
		result = job->result;
		if (result >= 0 && to)
			memcpy(to, from, bytes ? bytes : (size_t)result);
		if (is_started)
			pthread_join(thread, NULL);
	} else {
		note_miss(ns);
		job->is_left = true;
		atomic_fetch_add(&n_left, 1);
		pthread_detach(thread);
	}
	give_up(job);
	return result;
}

/* ---- the calls ---- */

bool sp_patience_has_disk(int fd)
{
	struct statx known;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		     &known) == 0 &&
	       S_ISREG(known.stx_mode) && known.stx_dev_major;
}

/* What the kernel has of the names is nobody else's to answer. */
static int open_from_cache(int dir, const char *path, int flags,
			   uint64_t resolve)
{
	const struct how how = {.flags = (uint64_t)flags,
				.resolve = resolve | RESOLVE_FROM_CACHE};
	const long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int sp_patience_open(int dir, const char *path, int flags, uint64_t resolve)
{
	/* To open more than a path is a question of its own. */
	const int fd = flags & O_PATH
			       ? open_from_cache(dir, path, flags, resolve)
			       : -EAGAIN;
	struct job *job;

	if (fd >= 0 || resolve & RESOLVE_FROM_CACHE)
		return fd;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	job = new_job(0, resolve ? SYS_openat2 : SYS_openat);
	if (!job)
		return -ENOMEM;
	strcpy(job->in.open.path, path);
	job->in.open.how =
		(struct how){.flags = (uint64_t)flags, .resolve = resolve};
	job->args[0] = dir;
	job->args[1] = (long)job->in.open.path;
	job->args[2] = resolve ? (long)&job->in.open.how : flags;
	job->args[3] = resolve ? (long)sizeof(job->in.open.how) : 0;
	return (int)finish(job, NULL, NULL, 0);
}

int sp_patience_stat(int fd, const char *path, struct stat *ret)
{
	struct job *job;

	if (!*path && sp_patience_has_disk(fd))
		return fstat(fd, ret) < 0 ? -errno : 0;
	job = new_job(0, SYS_newfstatat);
	if (!job)
		return -ENOMEM;
	strncpy(job->in.stat.path, path, PATH_MAX - 1);
	job->args[0] = fd;
	job->args[1] = (long)job->in.stat.path;
	job->args[2] = (long)&job->in.stat.st;
	job->args[3] = AT_EMPTY_PATH;
	return (int)finish(job, ret, &job->in.stat.st, sizeof(*ret));
}

ssize_t sp_patience_read(int fd, void *to, size_t bytes, off_t at)
{
	const size_t n = bytes < BYTES_MAX ? bytes : BYTES_MAX;
	struct job *job;
	ssize_t r;

	if (sp_patience_has_disk(fd)) {
		r = pread(fd, to, n, at);
		return r < 0 ? -errno : r;
	}
	job = new_job(n, SYS_pread64);
	if (!job)
		return -ENOMEM;
	job->args[0] = fd;
	job->args[1] = (long)job->bytes;
	job->args[2] = (long)n;
	job->args[3] = (long)at;
	return finish(job, to, job->bytes, 0);
}

ssize_t sp_patience_memory(pid_t pid, uint64_t from, void *to, size_t bytes)
{
	const size_t n = bytes < BYTES_MAX ? bytes : BYTES_MAX;
	struct job *job = new_job(n, SYS_process_vm_readv);

	if (!job)
		return -ENOMEM;
	job->in.memory.here = (struct iovec){job->bytes, n};
	job->in.memory.there = (struct iovec){(void *)(uintptr_t)from, n};
	job->args[0] = pid;
	job->args[1] = (long)&job->in.memory.here;
	job->args[2] = 1;
	job->args[3] = (long)&job->in.memory.there;
	job->args[4] = 1;
	return finish(job, to, job->bytes, 0);
}
