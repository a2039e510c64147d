/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program maps by itself.  The call goes on as it came; of what
 * it did the event is told, for anonymous memory of 64 KiB and more, and for
 * whatever ends a mapping that was recorded.
 *
 * <sys/mman.h> declares mremap with any number of arguments: the declarations
 * are our own.
 */
#include <errno.h>
#include <linux/mman.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "agent/event/maps.h"
#include "agent/sys/arch.h"
#include "agent/sys/export.h"
#include "agent/sys/next.h"
#include "format/layout.h"

#define FAILED      ((void *)-1)
#define ERRNO_LIMIT 4095ul /* negative values down to that are errors */

void *mmap(void *p, size_t n, int protection, int flags, int fd, off_t at);
void *mmap64(void *p, size_t n, int protection, int flags, int fd, off_t at);
void *mremap(void *old, size_t old_n, size_t n, int flags, void *to);
int munmap(void *p, size_t n);
int mprotect(void *p, size_t n, int protection);

/* Without a function below: as the C library does it. */
static long from_kernel(long result)
{
	if ((unsigned long)result < -ERRNO_LIMIT)
		return result;
	errno = (int)-result;
	return -1;
}

static void *map_below(void *p, size_t n, int protection, int flags, int fd,
		       off_t at)
{
	if (sp_next_resolve() && sp_next.mmap)
		return sp_next.mmap(p, n, protection, flags, fd, at);
	return (void *)from_kernel(sp_arch_syscall(SYS_mmap, (long)p, (long)n,
						   protection, flags, fd, at));
}

static bool is_recorded(size_t n, int flags)
{
	return flags & MAP_ANONYMOUS && n >= SP_FORMAT_MAP_BYTES_MIN;
}

static void *map_memory(void *p, size_t n, int protection, int flags, int fd,
			off_t at, const struct sp_call_frame *frame)
{
	struct sp_maps_call ends = {.number = 0};
	void *made;

	/* Only this replaces what is there. */
	if (flags & MAP_FIXED)
		ends = sp_maps_begin();
	made = map_below(p, n, protection, flags, fd, at);
	if (made == FAILED)
		return made;
	if (ends.number)
		sp_maps_ended(&ends, made, n);
	if (is_recorded(n, flags))
		sp_maps_made(made, n, protection ? 0 : SP_MAP_NO_ACCESS, frame);
	return made;
}

SP_EXPORT void *mmap(void *p, size_t n, int protection, int flags, int fd,
		     off_t at)
{
	return map_memory(p, n, protection, flags, fd, at, SP_FRAME_HERE);
}

SP_EXPORT void *mmap64(void *p, size_t n, int protection, int flags, int fd,
		       off_t at)
{
	return map_memory(p, n, protection, flags, fd, at, SP_FRAME_HERE);
}

SP_EXPORT int munmap(void *p, size_t n)
{
	const struct sp_maps_call ends = sp_maps_begin();
	int result;

	if (sp_next_resolve() && sp_next.munmap)
		result = sp_next.munmap(p, n);
	else
		result = (int)from_kernel(sp_arch_syscall(SYS_munmap, (long)p,
							  (long)n, 0, 0, 0, 0));
	if (ends.number && result == 0)
		sp_maps_ended(&ends, p, n);
	return result;
}

/* Reserved first and made accessible piece by piece: so do the heaps of V8 and
 * others.  The other way leaves the memory where it is. */
SP_EXPORT int mprotect(void *p, size_t n, int protection)
{
	int result;

	if (sp_next_resolve() && sp_next.mprotect)
		result = sp_next.mprotect(p, n, protection);
	else
		result = (int)from_kernel(sp_arch_syscall(
			SYS_mprotect, (long)p, (long)n, protection, 0, 0, 0));
	if (protection && result == 0)
		sp_maps_opened(p, n, SP_FRAME_HERE);
	return result;
}

/* What was followed before is one mapping from here on, the caller's of this;
 * what MREMAP_DONTUNMAP leaves behind is empty.
 * `to` is what the register has, where the program gave none. */
SP_EXPORT void *mremap(void *old, size_t old_n, size_t n, int flags, void *to)
{
	const struct sp_maps_call ends = sp_maps_begin_move(old, old_n);
	void *made;

	if (sp_next_resolve() && sp_next.mremap)
		made = sp_next.mremap(old, old_n, n, flags, to);
	else
		made = (void *)from_kernel(
			sp_arch_syscall(SYS_mremap, (long)old, (long)old_n,
					(long)n, flags, (long)to, 0));
	if (made == FAILED || !ends.number)
		return made;
	/* A smaller one in its place: the rest stays what it is. */
	if (made == old && n <= old_n) {
		if (n < old_n)
			sp_maps_ended(&ends, (char *)old + n, old_n - n);
		return made;
	}
	sp_maps_moved(&ends, old, old_n, made, n, SP_FRAME_HERE);
	return made;
}
