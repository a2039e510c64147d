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
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "agent/event/agent.h"
#include "agent/sys/export.h"
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

/* Where to go on: the original of a function that returns with a failure, or of
 * one that ends the process.  `offset` is that of its member in sp_next. */
static __attribute__((used)) const void *sp_leave(size_t offset, int is_end)
{
	const void *original = NULL;

	if (sp_next_resolve())
		__builtin_memcpy(&original, (const char *)&sp_next + offset,
				 sizeof(original));
	sp_agent_leaving(!is_end);
	if (original)
		return original;
	return is_end ? (const void *)(uintptr_t)end_process
		      : (const void *)(uintptr_t)not_there;
}

/* rax says how many vector registers a call with any number of arguments has.
 * None of the library's code touches them. */
#define SP_LEAVING(symbol, member, is_end)                                     \
	void sp_leaving_##member(void) __asm__(symbol);                        \
	__attribute__((naked)) SP_EXPORT void sp_leaving_##member(void)        \
	{                                                                      \
		__asm__("push %%rdi\n\t.cfi_adjust_cfa_offset 8\n\t"           \
			"push %%rsi\n\t.cfi_adjust_cfa_offset 8\n\t"           \
			"push %%rdx\n\t.cfi_adjust_cfa_offset 8\n\t"           \
			"push %%rcx\n\t.cfi_adjust_cfa_offset 8\n\t"           \
			"push %%r8\n\t.cfi_adjust_cfa_offset 8\n\t"            \
			"push %%r9\n\t.cfi_adjust_cfa_offset 8\n\t"            \
			"push %%rax\n\t.cfi_adjust_cfa_offset 8\n\t"           \
			"mov %0, %%edi\n\t"                                    \
			"mov %1, %%esi\n\t"                                    \
			"call sp_leave\n\t"                                    \
			"mov %%rax, %%r11\n\t"                                 \
			"pop %%rax\n\t.cfi_adjust_cfa_offset -8\n\t"           \
			"pop %%r9\n\t.cfi_adjust_cfa_offset -8\n\t"            \
			"pop %%r8\n\t.cfi_adjust_cfa_offset -8\n\t"            \
			"pop %%rcx\n\t.cfi_adjust_cfa_offset -8\n\t"           \
			"pop %%rdx\n\t.cfi_adjust_cfa_offset -8\n\t"           \
			"pop %%rsi\n\t.cfi_adjust_cfa_offset -8\n\t"           \
			"pop %%rdi\n\t.cfi_adjust_cfa_offset -8\n\t"           \
			"jmp *%%r11"                                           \
			:                                                      \
			: "i"(offsetof(struct sp_next, member)), "i"(is_end)); \
	}

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
