/* SPDX-License-Identifier: MIT */
#include "control/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/patience.h"

/* What linux/openat2.h has, which older systems do not. */
#define RESOLVE_NO_MAGIC_LINKS 0x02
#define RESOLVE_IN_THIS_ROOT   0x10

int sp_inside_find(pid_t pid, const char *path)
{
	char name[64];
	int root, fd;

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = sp_patience_open(root, path, O_PATH | O_CLOEXEC,
			      RESOLVE_IN_THIS_ROOT | RESOLVE_NO_MAGIC_LINKS);
	close(root);
	/* A container's filter may say EPERM to a call that it does not know;
	 * resolving a path gives EACCES. */
	return fd == -EPERM ? -ENOSYS : fd;
}

int sp_inside_look(pid_t pid, const char *path)
{
	int fd = sp_inside_find(pid, path);
	char *name;

	if (fd != -ENOSYS || asprintf(&name, "/proc/%d/root%s", pid, path) < 0)
		return fd;
	fd = sp_patience_open(AT_FDCWD, name, O_PATH | O_CLOEXEC, 0);
	free(name);
	return fd;
}
