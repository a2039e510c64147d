/* SPDX-License-Identifier: MIT */
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/patience.h"

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

int sp_regular_open_found(const char *path)
{
	const int fd = sp_patience_open(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	int opened;

	if (fd < 0)
		return fd;
	opened = reopen(fd, O_RDONLY, true);
	close(fd);
	return opened;
}
