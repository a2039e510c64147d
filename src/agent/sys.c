/* SPDX-License-Identifier: MIT */
#include "agent/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/linkmap.h"

#include "agent/poison.h"

static int (*vdso_clock)(clockid_t, struct timespec *);

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

void sp_sys_find_clock(void)
{
	const struct link_map *map = sp_linkmap_first();
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
	void *address = NULL;

	while (map && map->l_addr != vdso)
		map = map->l_next;
	if (vdso && map)
		address = sp_linkmap_find(map, "__vdso_clock_gettime");
	memcpy(&vdso_clock, &address, sizeof(address));
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t = {0, 0};

	if (!vdso_clock || vdso_clock(clock, &t) != 0)
		SP_SYS2(clock_gettime, clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sp_sys_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t sp_sys_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}
