/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Which memory of a stack may be read.  Nobody can be asked for that
 * within malloc: the C library's answer takes a lock and allocates.
 */

/* With the environment that the process began with, or whatever it has become;
 * `of_main` is the main thread's control block, 0 if the main thread calls.
 * Context: cold. */
void sp_stack_bounds_init(char *const *environment, uintptr_t of_main);

/* Memory from low up to high, whole pages of it, that can be read.  No frame of
 * the stack that it is of ends beyond `end`. */
struct sp_stack_bounds_span {
	uintptr_t low, high;
	uintptr_t end;
};

/* What is known of the stack of one thread. */
struct sp_stack_bounds_known {
	uint64_t owner; /* generation and index of the thread */
	uintptr_t self; /* its control block */
	uintptr_t from; /* all from here to there is readable */
	uintptr_t gap;  /* a page below that is not; 0: none known */
};

#define SP_STACK_BOUNDS_KNOWN 16 /* a power of two */

/*
 * What is known around `here`, the present stack pointer or above it: all up to
 * the end of the main stack or of the thread's own one, for which the kernel is
 * asked once a thread; on others, a coroutine's or a signal handler's alternate
 * one, or far below that end, the page.  `known` is the caller's, one for each
 * thread by its index.
 * Context: sampled.
 */
struct sp_stack_bounds_span sp_stack_bounds_around(
	struct sp_stack_bounds_known known[SP_STACK_BOUNDS_KNOWN],
	uintptr_t here);

/* Find out whether the word at `at` can be read, and add its pages to the span:
 * one that they are not next to is replaced.  Context: sampled. */
bool sp_stack_bounds_extend(struct sp_stack_bounds_span *span, uintptr_t at);

/*
 * Is all from `sp` up to `at` one readable piece, as a frame is?  The span then
 * has it.  The kernel is asked about no more than 64 MiB.  Context: sampled.
 */
bool sp_stack_bounds_reach(struct sp_stack_bounds_span *span, uintptr_t sp,
			   uintptr_t at);

/* A word that may be of any type, at any address. */
typedef uintptr_t sp_stack_bounds_word __attribute__((may_alias, aligned(1)));

/* The word at `at`; false if it cannot be read.  Context: sampled. */
static inline __attribute__((no_sanitize_address)) bool sp_stack_bounds_read(
	struct sp_stack_bounds_span *span, uintptr_t at, uintptr_t *ret)
{
	if ((at - span->low >= span->high - span->low ||
	     span->high - at < sizeof(*ret)) &&
	    !sp_stack_bounds_extend(span, at))
		return false;
	/* It is in the span.
	 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	*ret = *(const sp_stack_bounds_word *)at;
	return true;
}

/*
 * With frame pointers: is `bp` what main, or the first function of a thread,
 * finds in rbp, where others find an address?  `sp` is its caller's stack
 * pointer.
 */
bool sp_stack_bounds_is_outermost(uintptr_t bp, uintptr_t sp);

/* Is the frame whose stack ends at sp, of code that says nothing about itself,
 * the main thread's first?  musl leaves anything in rbp there, and the loader
 * begins at the number of arguments. */
bool sp_stack_bounds_is_first(uintptr_t sp);

/*
 * May the word at that address be read?  Asks the kernel in the one way that a
 * program that is locked up to what malloc needs can still do it.
 */
bool sp_stack_bounds_probe(uintptr_t address);
