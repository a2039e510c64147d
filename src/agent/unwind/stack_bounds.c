/* SPDX-License-Identifier: MIT */
/*
 * The end of the main thread's stack is where the name of the program stands;
 * a thread's control block lies above its stack.
 */
#include "agent/unwind/stack_bounds.h"

#include <errno.h>
#include <sys/auxv.h>

#include "agent/sys/arch.h"
#include "agent/sys/sys.h"
#include "agent/thread/thread.h"

#include "agent/sys/poison.h"

/* So near to the end of the main stack is nothing else; of what is further
 * away, and of a thread's stack, the kernel is asked about as much at a time.
 */
#define STACK_BYTES         (8ul << 20)
#define STACK_BYTES_REACHED (8 * STACK_BYTES)
#define ARGUMENTS_MAX       65536u
/* What glibc has on the stack above main: 272 bytes in 2.36. */
#define START_BYTES_MAX 384u
/* What musl has there: 48 bytes in 1.2.3.  What main calls is further away. */
#define FIRST_BYTES_MAX 64u

static uintptr_t main_end;
/* The main thread's control block, which is not above its stack. */
static uintptr_t main_thread;
/* Where it began, at the number of arguments. */
static uintptr_t main_start;
static uintptr_t n_arguments;

/* How the kernel leaves them: their number, the arguments, a null pointer, the
 * environment.  0: the environment was moved. */
static uintptr_t count_arguments(char *const *environment)
{
	if (environment[-1])
		return 0;
	for (uintptr_t n = 1; n < ARGUMENTS_MAX; n++)
		if ((uintptr_t)environment[-2 - (intptr_t)n] == n)
			return n;
	return 0;
}

void sp_stack_bounds_init(char *const *environment, uintptr_t of_main)
{
	uintptr_t at = (uintptr_t)environment;

	main_end = (getauxval(AT_EXECFN) + SP_ARCH_PAGE_MIN - 1) &
		   ~(SP_ARCH_PAGE_MIN - 1);
	main_thread = of_main ? of_main : sp_arch_thread();
	if (at < main_end && main_end - at < STACK_BYTES)
		n_arguments = count_arguments(environment);
	if (n_arguments)
		main_start =
			(uintptr_t)&environment[-2 - (intptr_t)n_arguments];
}

/* glibc leaves 0 there, or the number of arguments, which any function may have
 * there; but only the C library's start is above main. */
bool sp_stack_bounds_is_outermost(uintptr_t bp, uintptr_t sp)
{
	if (sp_arch_thread() != main_thread)
		return bp == 0;
	return (bp == 0 || bp == n_arguments) && sp < main_start &&
	       main_start - sp < START_BYTES_MAX;
}

bool sp_stack_bounds_is_first(uintptr_t sp)
{
	return sp_arch_thread() == main_thread && main_start && sp < main_end &&
	       (sp >= main_start || main_start - sp < FIRST_BYTES_MAX);
}

bool sp_stack_bounds_probe(uintptr_t address)
{
	return sp_sys_look(address & ~3ul, 0) != -EFAULT;
}

static uintptr_t page_of(uintptr_t at)
{
	return at & ~(SP_ARCH_PAGE_MIN - 1);
}

/*
 * Is all from `here` up to `from`, and so up to the end of the thread's stack,
 * readable?  Then it is its own stack.  What was found out is kept for the
 * thread, and not only for the address of its control block, where the next one
 * has another stack.
 */
static bool is_own_stack(struct sp_stack_bounds_known *known, uintptr_t here,
			 uintptr_t self, uintptr_t from)
{
	const uint64_t owner =
		(uint64_t)sp_thread.generation << 32 | sp_thread.index;
	struct sp_stack_bounds_known *stack =
		&known[sp_thread.index % SP_STACK_BOUNDS_KNOWN];
	uintptr_t page = page_of(here);

	if (stack->self != self || stack->owner != owner)
		*stack = (struct sp_stack_bounds_known){owner, self,
							page_of(from), 0};
	if (page <= stack->gap ||
	    (page < stack->from && stack->from - page > STACK_BYTES))
		return false;
	for (; page < stack->from; page += SP_ARCH_PAGE_MIN) {
		if (!sp_stack_bounds_probe(page)) {
			stack->gap = page;
			return false;
		}
	}
	if (page_of(here) < stack->from)
		stack->from = page_of(here);
	return true;
}

struct sp_stack_bounds_span sp_stack_bounds_around(
	struct sp_stack_bounds_known known[SP_STACK_BOUNDS_KNOWN],
	uintptr_t here)
{
	const uintptr_t self = sp_arch_thread(), page = page_of(here);
	const bool is_main = self == main_thread;
	const uintptr_t end = is_main ? main_end : self;

	/* Above it is no own stack. */
	if (here >= end)
		return (struct sp_stack_bounds_span){
			page, page + SP_ARCH_PAGE_MIN, UINTPTR_MAX};
	if ((is_main && end - here < STACK_BYTES) ||
	    is_own_stack(known, here, self, is_main ? end - STACK_BYTES : end))
		return (struct sp_stack_bounds_span){page, end, end};
	return (struct sp_stack_bounds_span){page, page + SP_ARCH_PAGE_MIN,
					     end};
}

bool sp_stack_bounds_extend(struct sp_stack_bounds_span *span, uintptr_t at)
{
	const uintptr_t first = page_of(at), last = page_of(at + 7);

	if (at + 7 < at || !sp_stack_bounds_probe(first) ||
	    (last != first && !sp_stack_bounds_probe(last)))
		return false;
	if (span->high < first || span->low > last + SP_ARCH_PAGE_MIN)
		*span = (struct sp_stack_bounds_span){
			first, last + SP_ARCH_PAGE_MIN, span->end};
	if (span->low > first)
		span->low = first;
	if (span->high < last + SP_ARCH_PAGE_MIN)
		span->high = last + SP_ARCH_PAGE_MIN;
	return true;
}

bool sp_stack_bounds_reach(struct sp_stack_bounds_span *span, uintptr_t sp,
			   uintptr_t at)
{
	struct sp_stack_bounds_span reached = *span;

	if (at < sp || at > span->end)
		return false;
	if (sp - span->low >= span->high - span->low)
		reached = (struct sp_stack_bounds_span){page_of(sp),
							page_of(sp), span->end};
	if (at >= reached.high && at - reached.high > STACK_BYTES_REACHED)
		return false;
	while (reached.high <= at)
		if (!sp_stack_bounds_extend(&reached, reached.high))
			return false;
	*span = reached;
	return true;
}
