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

/* What is known without a question.  *ret_has_disk: the kernel itself answers
 * for the file. */
static int look_at(int fd, mode_t *ret_mode, bool *ret_has_disk)
{
	struct statx known;
	struct stat st;
	int r;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		  &known) == 0) {
		*ret_mode = known.stx_mode;
		*ret_has_disk = known.stx_dev_major != 0;
		return 0;
	}
	*ret_has_disk = false;
	r = sp_patience_stat(fd, "", &st);
	*ret_mode = r < 0 ? 0 : st.st_mode;
	return r;
}

int sp_regular_reopen(int fd, int flags)
{
	bool has_disk;
	char path[32];
	mode_t mode;
	int opened, r = look_at(fd, &mode, &has_disk);

	if (r < 0)
		return r;
	if (!S_ISREG(mode))
		return S_ISLNK(mode) ? -ELOOP : -EINVAL;
	/* A link of the kernel, which leads to nothing else. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	flags = (flags & ~O_NOFOLLOW) | ALWAYS;
	if (!has_disk)
		return sp_patience_open(AT_FDCWD, path, flags, 0);
	opened = open(path, flags);
	/* cppcheck-suppress resourceLeak ; it is the caller's */
	return opened < 0 ? -errno : opened;
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
	const int fd = sp_patience_open(
		AT_FDCWD, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW), 0);
	int opened;

	if (fd < 0)
		return fd;
	opened = sp_regular_reopen(fd, flags);
	close(fd);
	return opened == -ENOENT ? open_by_name(path, flags) : opened;
}
