/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * All of the agent that differs from one architecture to another: no other
 * file asks which one this is, or has a line of its assembly (lint.arch).  What
 * instructions look like is in unwind/code_*.c.  Each of the headers below has:
 *
 * sp_arch_syscall      a system call: the kernel's value, or a negative errno
 * sp_arch_pause        a thread waits for another one in a loop
 * sp_arch_ticks        a counter of the processor, cheaper than a clock
 * sp_arch_microsecond  of that counter, about
 * sp_arch_ask_valgrind a request, and what belongs to it: valgrind's answer, or
 *                      0 without valgrind, where the instructions do nothing
 * SP_ARCH_VDSO_CLOCK   the clock_gettime that the kernel maps into a process
 * SP_ARCH_IS_POINTER   of a type of relocation: its word gets the address of a
 *                      function
 * SP_ARCH_MACHINE      of an ELF file
 * SP_ARCH_RELATIVE     the type whose word gets an address of its object
 * SP_ARCH_MODULE       the type whose word says whose thread-local variable
 * sp_arch_thread       the address of the thread's control block
 * SP_ARCH_PASS_ON      a function that keeps all arguments, and jumps on
 *
 * sp_arch_copy_words   n words from one address to another, both of which come
 *                      to stand behind them
 * sp_arch_fill_words   a word, n times
 *
 * Counters of one thread, which a signal handler on it may change anywhere: it
 * finds each of these done, or not begun.  Other threads only read them.
 * Context: hot.
 *
 * sp_arch_add          add to a word
 * sp_arch_swap         exchange a word: its old value
 * sp_arch_charge       subtract n, and 1 if n is 0: is the word negative now?
 * sp_arch_uncharge     the opposite
 * sp_arch_is_low       is the byte, which other threads change, below 128?
 *
 * Registers have the numbers that DWARF gives them:
 *
 * SP_ARCH_FP, _SP      the frame pointer, the stack pointer
 * SP_ARCH_RETURN       where unwind tables have the return address
 * SP_ARCH_PC           that address, or the one that was interrupted
 * SP_ARCH_REGISTERS    how many there are
 * SP_ARCH_KEPT         the mask of those that a function leaves as they were
 * SP_ARCH_INNERMOST    of those, the ones that a call changes
 * sp_arch_context      where register i is, from the stack pointer of the code
 *                      on that a signal handler returns to
 * sp_arch_registers    those of the function it is inlined into that it must
 *                      keep, SP_ARCH_SP and SP_ARCH_PC, at an instruction in
 *                      the middle: their mask
 * sp_arch_save_vectors (x86-64) of vectors and floating point, what code of
 *                      others can change, into SP_ARCH_VECTORS_BYTES aligned
 *                      to 16; sp_arch_restore_vectors: from there
 *
 * Frames:
 *
 * struct sp_call_frame where a function was called: its caller's frame pointer
 *                      as it was left, be it one or a register in other use,
 *                      and where it returns to
 * SP_FRAME_HERE        of the function that this stands in
 * sp_call_frame_end    the stack pointer of its caller
 * sp_arch_return       a return address without the signature that it may have
 * SP_ARCH_SIGNS        the instruction of unwind tables that says it has one
 * sp_arch_is_signed    the letter of a CIE that does
 * SP_ARCH_ALIGNED      of a function: it may be called with a stack that is not
 * SP_ARCH_RECORD_LAST  a frame ends with the two words that its frame pointer
 *                      is at; else they may be anywhere in it
 *
 * A rule of unwind/cfi.h in 48 bits (sp_arch_pack, sp_arch_unpack), if it fits
 * (sp_arch_fits): cfa, bp and pc are in bytes, the last two relative to the
 * CFA.
 */
#if defined(__x86_64__) && !defined(__ILP32__)
#include "agent/sys/arch_x86_64.h"
#elif defined(__aarch64__) && !defined(__ILP32__)
#include "agent/sys/arch_aarch64.h"
#else
#error "sampleprof knows x86-64 and aarch64"
#endif

/* No kernel of either has smaller pages: sp_sys_page_bytes() of them. */
#define SP_ARCH_PAGE_MIN 4096ul
