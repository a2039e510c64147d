/* SPDX-License-Identifier: MIT */
#include "agent/sys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/poison.h"

static void *checked(long address)
{
	return address < 0 && address > -4096 ? NULL : (void *)address;
}

void *sp_sys_map(size_t bytes)
{
	void *p = checked(sp_syscall(SYS_mmap, 0, (long)bytes,
				     PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	if (p)
		SP_SYS3(madvise, p, bytes, MADV_NOHUGEPAGE);
	return p;
}

void *sp_sys_map_file(int fd, size_t bytes)
{
	return checked(sp_syscall(SYS_mmap, 0, (long)bytes,
				  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

long sp_sys_read_file(const char *path, char *buf, size_t size)
{
	long fd = SP_SYS4(openat, AT_FDCWD, path,
			  O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	size_t have = 0;
	long n;

	if (fd < 0)
		return fd;
	while (have < size - 1) {
		n = SP_SYS3(read, fd, buf + have, size - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	SP_SYS1(close, fd);
	buf[have] = '\0';
	return (long)have;
}

uint64_t sp_sys_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
