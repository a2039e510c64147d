/* SPDX-License-Identifier: MIT */
/*
 * The end of the main thread's stack is where the name of the program stands;
 * a thread's control block lies above its stack.
 */
#include "agent/stackend.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/auxv.h>

#include "agent/sys.h"

#include "agent/poison.h"

/* No stack of a usual kind is deeper. */
#define STACK_BYTES_MAX (8ul << 20)
/* An alternate stack may have been mapped right below that of its thread, so
 * of a thread's own only the upper part can be told. */
#define THREAD_BYTES  (64ul << 10)
#define PAGE_BYTES    4096ul
#define ARGUMENTS_MAX 65536u
/* What glibc has on the stack above main: 272 bytes in 2.36. */
#define START_BYTES_MAX 384u

static uintptr_t main_end;
/* The main thread's control block, which is not above its stack. */
static uintptr_t main_thread;
/* Where it began, at the number of arguments. */
static uintptr_t main_start;
static uintptr_t n_arguments;

/* How the kernel leaves them: their number, the arguments, a null pointer, the
 * environment.  0: somebody has moved the environment. */
static uintptr_t count_arguments(char *const *environment)
{
	if (environment[-1])
		return 0;
	for (uintptr_t n = 1; n < ARGUMENTS_MAX; n++)
		if ((uintptr_t)environment[-2 - (intptr_t)n] == n)
			return n;
	return 0;
}

void sp_stackend_init(char *const *environment)
{
	uintptr_t at = (uintptr_t)environment;

	main_end = (getauxval(AT_EXECFN) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	main_thread = (uintptr_t)__builtin_thread_pointer();
	if (at < main_end && main_end - at < STACK_BYTES_MAX)
		n_arguments = count_arguments(environment);
	if (n_arguments)
		main_start =
			(uintptr_t)&environment[-2 - (intptr_t)n_arguments];
}

/* glibc leaves 0 there, or the number of arguments, which any function may have
 * there; but only the C library's start is above main. */
bool sp_stackend_is_outermost(uintptr_t bp, uintptr_t sp)
{
	if ((uintptr_t)__builtin_thread_pointer() != main_thread)
		return bp == 0;
	return (bp == 0 || bp == n_arguments) && sp < main_start &&
	       main_start - sp < START_BYTES_MAX;
}

/* Compares the word for a requeue of no waiters. */
bool sp_stackend_probe(uintptr_t address)
{
	static int nobody;
	long ret =
		sp_syscall(SYS_futex, (long)(address & ~3ul),
			   FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)&nobody, 0);

	return ret != -EFAULT;
}

uintptr_t sp_stackend_nearby(uintptr_t here)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	if (self == main_thread)
		return main_end - here < STACK_BYTES_MAX ? main_end : 0;
	return self - here < THREAD_BYTES ? self : 0;
}

uintptr_t sp_stackend_of(struct sp_lane *lane, uintptr_t here)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();
	uintptr_t end = sp_stackend_nearby(here), known, page;

	if (end || self == main_thread || self - here >= STACK_BYTES_MAX)
		return end;
	/* Readable without a gap up to the control block: then it is the
	 * thread's own. */
	known = lane->stack_thread == self ? lane->stack_from
					   : self - THREAD_BYTES;
	for (page = here & ~(PAGE_BYTES - 1); page < known; page += PAGE_BYTES)
		if (!sp_stackend_probe(page))
			return 0;
	if (here < known) {
		lane->stack_thread = self;
		lane->stack_from = here & ~(PAGE_BYTES - 1);
	}
	return self;
}
