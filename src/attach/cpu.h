/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What calling a function in another process needs to know of the processor and
 * of the kernel's conventions: cpu_x86_64.h and cpu_aarch64.h have all of it,
 * and the file of the build's architecture is included.  Each has:
 *
 * SP_CPU_MACHINE, _NAME    in the header of an ELF file; for messages
 * sp_cpu_regs              what a stopped thread has, as sp_cpu_read gives it
 * sp_cpu_read, sp_cpu_write  of thread `tid`, which is stopped; false: it is
 *                          gone, or in a state that no call can be made from
 * sp_cpu_read_vector, sp_cpu_write_vector
 *                          its vector registers: at most SP_CPU_VECTOR_MAX
 *                          bytes
 * sp_cpu_pc, _sp, _thread_pointer, _result
 * sp_cpu_syscall           the system call that the thread is in, is about to
 *                          begin, or that was interrupted; negative: none
 * sp_cpu_is_interrupted    is it to be begun (again)?
 * sp_cpu_hides_restart     may the kernel go on with that call by what it has
 *                          kept of it, and not say so?  sp_cpu_take_restart
 *                          then takes from the registers at the call's
 *                          beginning what tells, and sp_cpu_skip makes the
 *                          kernel leave the call out
 * sp_cpu_end_wait          a signal comes for which there is a handler: of
 *                          system calls that end with EINTR behind any, the one
 *                          that was interrupted does
 * sp_cpu_dwarf             SP_CPU_DWARF_REGS registers in the order of DWARF
 * sp_cpu_return            an address, of those that a stack has, without a
 *                          signature
 * SP_CPU_OLD_WAITS         system calls that wait, and that newer
 *                          architectures do not have
 * sp_cpu_syscall_code      code of the C library with a system call at
 *                          SP_CPU_SYSCALL_AT, in which no thread waits, and a
 *                          return behind it
 * sp_cpu_return_code       code of the C library that ends a signal handler
 *
 * sp_cpu_code: makes n calls, one after the other, of what struct sp_cpu_call
 * says (of a function with a large result, the first argument is where that
 * goes), and then sends its thread SIGWINCH, which is ignored unless somebody
 * traces the thread: who does is to take it from there, at SP_CPU_CODE_END.  If
 * nobody does, the thread goes back by the signal frame.
 * SP_CPU_FETCHES_STORES: is a plain store enough to write it?
 * sp_cpu_set_run: to run it at pc; `frame` is the signal frame, above the
 * stack; `nice`, or NULL: before it goes back, it makes itself SCHED_OTHER with
 * that niceness.  sp_cpu_set_syscall: to make a system call by the instruction
 * at pc.  sp_cpu_set_way_back: unless somebody stops it behind that, it returns
 * to `code`, sp_cpu_return_code, which takes it back by the signal frame.
 *
 * struct sp_cpu_frame: of a signal handler, as the kernel makes it and takes it
 * back; SP_CPU_FRAME_ODD bytes below an address of 16.  sp_cpu_make_frame: one
 * that takes a thread back to these registers, also an interrupted system call,
 * if nobody does so from outside.  `vector` of n bytes, as sp_cpu_read_vector
 * gives it, is made what the frame needs, with 4 bytes behind it.  `code`: as
 * of sp_cpu_set_way_back, or 0.
 */
#include <stdint.h>

struct sp_cpu_call {
	uint64_t function, args[6], result;
};

#if defined(__x86_64__)
#include "attach/cpu_x86_64.h"
#elif defined(__aarch64__)
#include "attach/cpu_aarch64.h"
#else
#error "sampleprof attach knows x86-64 and aarch64"
#endif
