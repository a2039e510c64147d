/* SPDX-License-Identifier: MIT */
#include "base/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/deputy.h"

/* What linux/openat2.h has, which older systems do not. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_FROM_CACHE 0x20

#define BYTES_MAX                                                              \
	(1u << 20)   /* SP_DEPUTY_BYTES has room for a job with them           \
		      */
#define IS_OPEN (-1) /* for flags */

struct how {
	uint64_t flags, mode, resolve;
};

/* In the room of a deputy. */
struct job {
	sp_patience_call *call;
	bool has_own_data; /* else it gets the job */
	int flags;         /* how the child opens what it is called with */
	int other;         /* of the child, or -1 */
	size_t bytes;
	off_t at;
	struct how how;
	struct stat st;
	char path[PATH_MAX]; /* "": that of `other` */
	_Alignas(16) char data[];
};

struct question {
	struct sp_deputy deputy;
	struct sp_deputy_call call;
	struct job *job;
};

static _Atomic uint64_t waited_ns;

unsigned int sp_patience_waited_ms(void)
{
	return (unsigned int)(atomic_load(&waited_ns) / 1000000u);
}

void sp_patience_begin(void)
{
	sp_deputy_begin();
}

void sp_patience_rest(void)
{
	sp_deputy_rest();
}

/* 0: not known without asking. */
static uint64_t device_of(int fd)
{
	struct statx known;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		     &known) == 0
		       ? (uint64_t)known.stx_dev_major << 32 |
				 known.stx_dev_minor
		       : 0;
}

/* ---- a call ---- */

static void name_own(char path[PATH_MAX], int fd)
{
	snprintf(path, PATH_MAX, "/proc/self/fd/%d", fd);
}

static long make_call(void *room, const int fds[2])
{
	struct job *job = room;
	void *arg = job->has_own_data ? job->data : room;
	char path[PATH_MAX];
	long r;
	int fd;

	job->other = fds[1];
	if (job->flags == IS_OPEN)
		return job->call(fds[0], arg);
	name_own(path, fds[0]);
	fd = open(path, job->flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = job->call(fd, arg);
	close(fd);
	return r;
}

static int begin(struct question *q, sp_patience_call *call, int fd, int flags,
		 size_t bytes)
{
	const int r = sp_deputy_take(&q->deputy);

	if (r < 0)
		return r;
	q->call = (struct sp_deputy_call){
		.call = make_call,
		.fds = {fd, -1},
		.device = fd >= 0 ? device_of(fd) : 0,
	};
	q->job = q->deputy.room;
	q->job->call = call;
	q->job->has_own_data = false;
	q->job->flags = flags;
	q->job->bytes = bytes;
	return 0;
}

/* bytes 0: as many as the result. */
static long finish(struct question *q, void *to, const void *from, size_t bytes)
{
	uint64_t ns;
	const long result = sp_deputy_ask(&q->deputy, &q->call, &ns);

	if (result == -ETIMEDOUT && ns)
		atomic_store(&waited_ns, ns);
	if (result >= 0 && to)
		memcpy(to, from, bytes ? bytes : (size_t)result);
	sp_deputy_release(&q->deputy);
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

long sp_patience_ask(int place, int flags, sp_patience_call *call, void *data,
		     size_t bytes)
{
	struct question q;
	const int r = bytes > BYTES_MAX ? -E2BIG
					: begin(&q, call, place, flags, bytes);

	if (r < 0)
		return r;
	q.job->has_own_data = true;
	memcpy(q.job->data, data, bytes);
	return finish(&q, data, q.job->data, bytes);
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

/* Of what the kernel knows on its way the last is it. */
static uint64_t device_on_way(int dir, const char *path, uint64_t resolve)
{
	char *way = strdup(path), *slash = way;
	uint64_t device = 0;
	int fd = -1;

	while (slash && fd < 0) {
		fd = open_from_cache(dir, *way ? way : "/", O_PATH | O_CLOEXEC,
				     resolve);
		slash = *way ? strrchr(way, '/') : NULL;
		if (slash)
			*slash = '\0';
	}
	free(way);
	if (fd >= 0) {
		device = device_of(fd);
		close(fd);
	} else if (dir >= 0) {
		device = device_of(dir);
	}
	return device;
}

/* The child is another process than we are, with other descriptors. */
static bool set_path(struct question *q, int dir, const char *path,
		     uint64_t resolve)
{
	static const char self[] = "/proc/self/", own[] = "/proc/self/fd/";
	char number[16] = "", *to = q->job->path;

	*to = '\0';
	if (!*path)
		return true;
	if (strncmp(path, own, sizeof(own) - 1) == 0) {
		q->call.fds[1] = atoi(path + sizeof(own) - 1);
		q->call.device = device_of(q->call.fds[1]);
		return true;
	}
	q->call.device = device_on_way(dir, path, resolve);
	return strncmp(path, self, sizeof(self) - 1) == 0 &&
			       readlink("/proc/self", number,
					sizeof(number) - 1) > 0
		       ? snprintf(to, PATH_MAX, "/proc/%s/%s", number,
				  path + sizeof(self) - 1) < PATH_MAX
		       : snprintf(to, PATH_MAX, "%s", path) < PATH_MAX;
}

static long call_open(int dir, void *arg)
{
	struct job *job = arg;
	long fd;

	if (job->other >= 0)
		name_own(job->path, job->other);
	fd = job->how.resolve ? syscall(SYS_openat2, dir, job->path, &job->how,
					sizeof(job->how))
			      : openat(dir, job->path, (int)job->how.flags);
	return fd < 0 ? -errno : fd;
}

int sp_patience_open(int dir, const char *path, int flags, uint64_t resolve)
{
	/* To open more than a path is a question of its own. */
	int r = flags & O_PATH ? open_from_cache(dir, path, flags, resolve)
			       : -EAGAIN;
	struct question q;

	/* Nor is that there is none. */
	if (r >= 0 || r == -ENOENT || resolve & RESOLVE_FROM_CACHE)
		return r;
	r = begin(&q, call_open, dir, IS_OPEN, 0);
	if (r < 0)
		return r;
	q.job->how = (struct how){.flags = (uint64_t)flags, .resolve = resolve};
	q.call.gives_descriptor = true;
	if (set_path(&q, dir, path, resolve))
		return (int)finish(&q, NULL, NULL, 0);
	sp_deputy_release(&q.deputy);
	return -ENAMETOOLONG;
}

static long call_stat(int fd, void *arg)
{
	struct job *job = arg;

	if (job->other >= 0)
		name_own(job->path, job->other);
	return fstatat(fd, job->path, &job->st, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

int sp_patience_stat(int fd, const char *path, struct stat *ret)
{
	struct question q;
	int r;

	if (!*path && sp_patience_has_disk(fd))
		return fstat(fd, ret) < 0 ? -errno : 0;
	r = begin(&q, call_stat, fd, IS_OPEN, 0);
	if (r < 0)
		return r;
	if (set_path(&q, fd, path, 0))
		return (int)finish(&q, ret, &q.job->st, sizeof(*ret));
	sp_deputy_release(&q.deputy);
	return -ENAMETOOLONG;
}

static long call_read(int fd, void *arg)
{
	struct job *job = arg;
	const ssize_t n = pread(fd, job->data, job->bytes, job->at);

	if (n < 0 || (job->other >= 0 &&
		      pwrite(job->other, job->data, (size_t)n, job->at) != n))
		return n < 0 ? -errno : -EIO;
	return n;
}

bool sp_patience_is_place(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_PATH;
}

static ssize_t read_to(int fd, int copy, void *to, size_t bytes, off_t at)
{
	const int flags = fcntl(fd, F_GETFL);
	struct question q;
	const int r = flags < 0 ? -EBADF
				: begin(&q, call_read, fd,
					flags & O_PATH ? O_RDONLY : IS_OPEN,
					bytes < BYTES_MAX ? bytes : BYTES_MAX);

	if (r < 0)
		return r;
	q.call.fds[1] = copy;
	q.job->at = at;
	return finish(&q, to, q.job->data, 0);
}

int sp_patience_know(int fd, struct stat *ret)
{
	struct statx known;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_MODE | STATX_INO, &known) != 0)
		return sp_patience_stat(fd, "", ret);
	*ret = (struct stat){
		.st_mode = known.stx_mode,
		.st_ino = known.stx_ino,
		.st_dev = makedev(known.stx_dev_major, known.stx_dev_minor)};
	return 0;
}

ssize_t sp_patience_read(int fd, void *to, size_t bytes, off_t at)
{
	ssize_t r;

	if (!sp_patience_has_disk(fd) || sp_patience_is_place(fd))
		return read_to(fd, -1, to, bytes, at);
	r = pread(fd, to, bytes < BYTES_MAX ? bytes : BYTES_MAX, at);
	return r < 0 ? -errno : r;
}

ssize_t sp_patience_copy(int fd, int copy, size_t bytes, off_t at)
{
	return read_to(fd, copy, NULL, bytes, at);
}

ssize_t sp_patience_memory(pid_t pid, uint64_t from, void *to, size_t bytes)
{
	char path[32];
	ssize_t r;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = sp_patience_read(fd, to, bytes, (off_t)from);
	close(fd);
	return r;
}
