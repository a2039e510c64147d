/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/sys/arch.h"
#include "format/layout.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/*
 * System calls of the agent, made directly: no cancellation point, no errno,
 * nothing that another library could interpose.  Each returns the kernel's
 * value, a negative errno on failure.
 *
 * Context: hot-path code makes none; sampled code only mmap, munmap, mremap,
 * madvise and futex, which malloc itself makes; the rest is for start-up, for
 * resident memory every 100 ms (event/resident.h), and for an object whose name
 * is relative (sys/mapname.h).
 */
#ifdef __clang_analyzer__
/* Assembly does not tell it what the kernel writes. */
long sp_syscall(long n, long a, long b, long c, long d, long e, long f);
#else
static inline long sp_syscall(long n, long a, long b, long c, long d, long e,
			      long f)
{
	return sp_arch_syscall(n, a, b, c, d, e, f);
}
#endif

#define SP_SYS0(n)       sp_syscall(SYS_##n, 0, 0, 0, 0, 0, 0)
#define SP_SYS1(n, a)    sp_syscall(SYS_##n, (long)(a), 0, 0, 0, 0, 0)
#define SP_SYS2(n, a, b) sp_syscall(SYS_##n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SP_SYS3(n, a, b, c)                                                    \
	sp_syscall(SYS_##n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SP_SYS4(n, a, b, c, d)                                                 \
	sp_syscall(SYS_##n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* Bytes of a page: 4, 16 or 64 KiB. */
size_t sp_sys_page_bytes(void);

/* What goes back to the kernel at once: 16 KiB, or a page that is larger. */
size_t sp_sys_piece_bytes(void);

/*
 * Anonymous private memory, zeroed; NULL on failure.  Less than 2 MiB has no
 * huge pages, since it may never be touched; more is a table that is touched
 * all over, and has them.
 */
void *sp_sys_map(size_t bytes);

/* The same, but it is zero in a forked child, before any code of that runs, and
 * never has huge pages, each of which the kernel takes 100 us to clear; NULL
 * also before Linux 4.14. */
void *sp_sys_map_wiped(size_t bytes);

/* From now on so many bytes of such memory, and then no more.  Context: cold,
 * one thread. */
void sp_sys_limit_room(size_t bytes);

/* Give that memory back.  Context: as mapping it. */
void sp_sys_unmap(void *p, size_t bytes);

/*
 * The ranges of all this memory, for a process that looks at this one: *ret_n
 * entries, of which those without bytes do not count.  Ranges for which there
 * was no entry are missing.  Context: any.
 */
const struct sp_control_range *sp_sys_ranges(uint64_t *ret_n);

/* Such memory stays mapped for good: sp_sys_wipe does to all that was noted
 * what the kernel does in a forked child.  Context: the first any, the second
 * cold, while no thread uses it. */
void sp_sys_note_wiped(void *p, size_t bytes);
void sp_sys_wipe(void);

/*
 * Threads hand this memory, and all other of the library, to each other by
 * atomic operations.  valgrind's race detectors do not follow them, and would
 * report races in a program that has none: they are to look away from it, once
 * it is known that there is one.  Context: any; cold.
 */
void sp_sys_hide(const void *p, size_t bytes);
void sp_sys_find_detector(void);

/* Does this process run in valgrind? */
bool sp_sys_is_valgrind(void);

/* Map `bytes` of fd from its beginning, shared: the address, or a negative
 * errno. */
long sp_sys_map_file(int fd, size_t bytes);

/*
 * Read the whole of a small file into buf, at most size - 1 bytes, and
 * terminate it.  The number of bytes, or a negative errno.
 */
long sp_sys_read_file(const char *path, char *buf, size_t size);

/* No file of the kernel is opened from now on, in children neither: a system
 * call filter may kill for it.  Context: any. */
void sp_sys_forbid_files(void);
bool sp_sys_forbids_files(void);

/*
 * Block all signals of this thread, and restore its mask.  False: the kernel
 * refused.  Context: cold, and the creation of a file.
 */
bool sp_sys_block_signals(uint64_t *ret_before);
void sp_sys_restore_signals(uint64_t before);

/*
 * Does the word at that address have that value?  0: yes; -EAGAIN: no; -EFAULT:
 * it cannot be read; another negative errno: the kernel does not say.  Raises
 * no fault, and needs only system calls that malloc needs, so that it works in
 * a sandbox, too.  Context: sampled.
 */
long sp_sys_look(uintptr_t word, uint32_t value);

/* Does it differ, or cannot be read?  0: no; 1: yes; a negative errno: the
 * kernel does not say.  Context: sampled. */
int sp_sys_compare(const volatile uint32_t *word, uint32_t value);
