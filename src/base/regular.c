/* SPDX-License-Identifier: MIT */
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/patience.h"
#include "base/served.h"

/* Of a file that another process holds back by a lease, too. */
#define ALWAYS (O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static int reopen(int fd, int flags, bool has_patience)
{
	struct stat st;
	char path[32];
	int opened, r = sp_patience_know(fd, &st);

	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
	/* A link of the kernel, which leads to nothing else. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	flags = (flags & ~O_NOFOLLOW) | ALWAYS;
	if (has_patience && !sp_patience_has_disk(fd))
		return sp_patience_open(AT_FDCWD, path, flags, 0);
	opened = open(path, flags);
	/* cppcheck-suppress resourceLeak ; it is the caller's */
	return opened < 0 ? -errno : opened;
}

int sp_regular_reopen(int fd, int flags)
{
	return reopen(fd, flags, true);
}

/* Without /proc there is no way but by the name. */
static int open_by_name(const char *path, int flags)
{
	struct stat st;
	int fd;

	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = open(path, flags | ALWAYS);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int sp_regular_open(const char *path, int flags)
{
	const int fd = open(path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
	int opened;

	if (fd < 0)
		return -errno;
	opened = reopen(fd, flags, false);
	close(fd);
	return opened == -ENOENT ? open_by_name(path, flags) : opened;
}

/* Closes `place`, or gives it if a process serves the file. */
static int reopen_found(int place)
{
	struct stat st;
	int fd;

	if (place < 0)
		return place;
	fd = sp_patience_know(place, &st);
	if (fd == 0 && S_ISREG(st.st_mode) && sp_served_is(-1, place))
		return place;
	if (fd == 0)
		fd = reopen(place, O_RDONLY, true);
	close(place);
	return fd;
}

int sp_regular_open_found(const char *path)
{
	return reopen_found(
		sp_patience_open(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0));
}

ssize_t sp_regular_read_found(int fd, void *to, size_t n, off_t at)
{
	const ssize_t r = pread(fd, to, n, at);

	if (r >= 0)
		return r;
	return errno == EBADF ? sp_patience_read(fd, to, n, at) : -errno;
}

int sp_regular_stat_found(int fd, struct stat *ret)
{
	if (sp_patience_is_place(fd))
		return sp_patience_stat(fd, "", ret);
	return fstat(fd, ret) < 0 ? -errno : 0;
}

int sp_regular_look_found(const char *path, struct stat *ret)
{
	const int fd = sp_patience_open(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	int r = fd;

	if (fd >= 0) {
		r = sp_patience_stat(fd, "", ret);
		close(fd);
	}
	return r;
}

int sp_regular_open_foreign(const char *path, int flags, off_t max,
			    struct stat *ret)
{
	struct sp_served_room room = sp_served_room_named();
	const uint64_t since_ns = sp_clock_ns(), bytes = room.bytes;
	int fd = -ETIMEDOUT, r;

	/* Without /proc there is no way but by the name. */
	if (access("/proc/self/fd", F_OK) != 0) {
		fd = sp_regular_open(path, flags);
		return fd >= 0 && fstat(fd, ret) < 0 ? (close(fd), -EIO) : fd;
	}
	if (since_ns < room.until_ns)
		fd = reopen_found(sp_patience_open(
			AT_FDCWD, path, O_PATH | O_CLOEXEC | flags, 0));
	r = fd < 0 ? fd : sp_patience_stat(fd, "", ret);
	if (r == 0 && ret->st_size > max)
		r = -EFBIG;
	if (r == 0 && !sp_patience_is_place(fd))
		return fd;
	if (r == 0)
		r = sp_served_keep(fd, &room);
	else if (fd >= 0)
		close(fd);
	sp_served_use_named(since_ns, bytes - room.bytes);
	return r;
}
