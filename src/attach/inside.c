/* SPDX-License-Identifier: MIT */
#include "attach/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What linux/openat2.h has, which older systems do not. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_NO_MAGIC_LINKS 0x02
#define RESOLVE_IN_THIS_ROOT   0x10

struct how {
	uint64_t flags, mode, resolve;
};

int sp_inside_find(pid_t pid, const char *path)
{
	const struct how how = {.flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_THIS_ROOT |
					   RESOLVE_NO_MAGIC_LINKS};
	char name[64];
	int root, fd;

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	/* A container's filter may say EPERM to a call that it does not know;
	 * resolving a path gives EACCES. */
	if (fd < 0)
		fd = errno == EPERM ? -ENOSYS : -errno;
	close(root);
	return fd;
}

int sp_inside_look(pid_t pid, const char *path)
{
	int fd = sp_inside_find(pid, path);
	char *name;

	if (fd != -ENOSYS || asprintf(&name, "/proc/%d/root%s", pid, path) < 0)
		return fd;
	fd = open(name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	free(name);
	return fd;
}
