/* SPDX-License-Identifier: MIT */
/*
 * The ways out of a process, or into another program, that run no destructor:
 * what threads have counted is copied to the file, then the call goes on.
 *
 * These functions are called in signal handlers, in children of fork and in
 * those of vfork, which run on their parent's stack and in its memory; and some
 * take any number of arguments.  So each is a few instructions that keep all
 * arguments, and end in a jump to the original: the program's call is as if we
 * were not there.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "agent/event/lifecycle.h"
#include "agent/sys/arch.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"

#include "agent/sys/poison.h"

/* The C library below has no such function. */
static int not_there(void)
{
	errno = ENOSYS;
	return -1;
}

static void end_process(int status)
{
	for (;;)
		SP_SYS1(exit_group, status);
}

/* A function of another object that the program leaves by. */
struct leaving {
	size_t offset; /* of its member in sp_next */
	bool is_end;   /* ends the process; else it returns if it fails */
};

/* Where to go on: the original. */
static __attribute__((used)) const void *sp_leave(const struct leaving *leaving)
{
	const void *original = NULL;

	if (sp_next_resolve())
		__builtin_memcpy(&original,
				 (const char *)&sp_next + leaving->offset,
				 sizeof(original));
	sp_lifecycle_leaving(!leaving->is_end);
	if (original)
		return original;
	return leaving->is_end ? (const void *)(uintptr_t)end_process
			       : (const void *)(uintptr_t)not_there;
}

#define SP_LEAVING(symbol, member, is_end)                                     \
	static const struct leaving leaving_##member __asm__(                  \
		"leaving_" symbol) __attribute__((used)) = {                   \
		offsetof(struct sp_next, member), is_end};                     \
	SP_ARCH_PASS_ON(symbol, "sp_leave", "leaving_" symbol);

SP_LEAVING("_exit", exit_now, 1)
SP_LEAVING("_Exit", exit_now_c, 1)
SP_LEAVING("quick_exit", quick_exit, 1)
SP_LEAVING("execl", execl, 0)
SP_LEAVING("execle", execle, 0)
SP_LEAVING("execlp", execlp, 0)
SP_LEAVING("execv", execv, 0)
SP_LEAVING("execve", execve, 0)
SP_LEAVING("execvp", execvp, 0)
SP_LEAVING("execvpe", execvpe, 0)
SP_LEAVING("execveat", execveat, 0)
SP_LEAVING("fexecve", fexecve, 0)
